import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.microsoft.azure.kusto.data.Client;
import com.microsoft.azure.kusto.data.ClientFactory;
import com.microsoft.azure.kusto.data.ClientRequestProperties;
import com.microsoft.azure.kusto.data.KustoOperationResult;
import com.microsoft.azure.kusto.data.KustoResultSetTable;
import com.microsoft.azure.kusto.data.StreamingClient;
import com.microsoft.azure.kusto.data.auth.ConnectionStringBuilder;
import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Answers questions of stdin, one JSON array a line, by Kusto's own client: [kind, text, options]. */
public class KustoClient {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] words) throws Exception {
        String token = words.length > 1 ? words[1] : "";
        ConnectionStringBuilder address = token.isEmpty()
                ? new ConnectionStringBuilder(words[0])
                : ConnectionStringBuilder.createWithAadAccessTokenAuthentication(words[0], token);
        Client client = ClientFactory.createClient(address);
        StreamingClient streaming = ClientFactory.createStreamingClient(address);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode question = JSON.readTree(line);
            Object answer;
            try {
                answer = answered(client, streaming, question);
            } catch (Exception problem) {
                answer = Map.of("error", told(problem));
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
        System.out.flush();
        System.exit(0);
    }

    private static Object answered(Client client, StreamingClient streaming, JsonNode question) throws Exception {
        String kind = question.get(0).asText(), text = question.get(1).asText();
        ClientRequestProperties properties = new ClientRequestProperties();
        JsonNode given = question.size() > 2 ? question.get(2) : JSON.createObjectNode();
        given.path("Options").fields().forEachRemaining(
                one -> properties.setOption(one.getKey(), JSON.convertValue(one.getValue(), Object.class)));
        given.path("Parameters").fields().forEachRemaining(
                one -> properties.setParameter(one.getKey(), one.getValue().asText()));
        String database = given.path("db").asText("main");
        if (kind.equals("stream")) {
            try (InputStream stream = streaming.executeStreamingQuery(database, text, properties)) {
                return JSON.readTree(stream);
            }
        }
        KustoOperationResult found = kind.equals("mgmt")
                ? client.executeMgmt(database, text, properties)
                : client.executeQuery(database, text, properties);
        KustoResultSetTable table = found.getPrimaryResults();
        if (kind.equals("typed")) {
            return typed(table);
        }
        return table.getData();
    }

    /** The values as the client's own methods give them. */
    private static Object typed(KustoResultSetTable table) throws Exception {
        List<Object> rows = new ArrayList<>();
        while (table.next()) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("b", table.getBooleanObject("b"));
            row.put("i", table.getIntegerObject("i"));
            row.put("l", table.getLongObject("l"));
            row.put("r", table.getObject("r") == null ? null : table.getDouble("r"));
            row.put("d", table.getBigDecimal("d") == null ? null : table.getBigDecimal("d").toPlainString());
            row.put("t", table.getObject("t") == null ? null : table.getKustoDateTime("t").toString());
            row.put("g", table.getUUID("g") == null ? null : table.getUUID("g").toString());
            row.put("s", table.getString("s"));
            rows.add(row);
        }
        return rows;
    }

    private static String told(Throwable problem) {
        StringBuilder found = new StringBuilder();
        for (Throwable one = problem; one != null; one = one.getCause()) {
            found.append(one.getClass().getSimpleName()).append(": ").append(one.getMessage()).append("; ");
        }
        return found.toString();
    }
}
