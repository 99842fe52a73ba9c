// Answers questions of stdin, one JSON array a line, by Kusto's own client: [kind, text, options].
import readline from "node:readline";
import { Client, ClientRequestProperties, KustoConnectionStringBuilder } from "azure-kusto-data";

const [url, token] = process.argv.slice(2);
const address = token ? KustoConnectionStringBuilder.withAccessToken(url, token) : url;
const client = new Client(address);

async function answered(kind, text, options) {
  const properties = new ClientRequestProperties();
  for (const [name, value] of Object.entries(options?.Options ?? {})) properties.setOption(name, value);
  for (const [name, value] of Object.entries(options?.Parameters ?? {})) properties.setParameter(name, value);
  const run = kind === "v1" ? client.executeQueryV1.bind(client) : client.execute.bind(client);
  const found = await run(options?.db ?? "main", text, properties);
  return found.primaryResults[0]._rows;
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const [kind, text, options] = JSON.parse(line);
  let answer;
  try {
    answer = await answered(kind, text, options);
  } catch (problem) {
    answer = { error: JSON.stringify(problem.response?.data ?? String(problem)), status: problem.response?.status };
  }
  console.log(JSON.stringify(answer));
}
client.close();
