// Kusto's own parser: a query a line comes in as JSON ({query, tables}), what it says of it goes out ({errors, columns}).
'use strict';
const path = require('path');
const folder = path.resolve(process.argv[2], '@kusto', 'language-service-next');
require(path.join(folder, 'bridge.min.js'));
require(path.join(folder, 'Kusto.Language.Bridge.min.js'));
const { KustoCode, GlobalState, Symbols } = Kusto.Language;

function items(list, shown) {
  const found = [];
  for (let at = 0; at < list.Count; at++) found.push(shown(list.getItem(at)));
  return found;
}

function told({ query, tables }) {
  const symbols = Object.entries(tables).map(([name, columns]) => Symbols.TableSymbol.From(columns).WithName(name));
  const globals = GlobalState.Default.WithDatabase(new Symbols.DatabaseSymbol.ctor('db', symbols));
  const code = KustoCode.ParseAndAnalyze(query, globals);
  const errors = items(code.GetDiagnostics(), (one) => [one.Severity, one.Code, one.Start, one.Message])
    .filter(([severity]) => severity === 'Error')
    .map(([, ...rest]) => rest);
  const type = code.ResultType;
  const columns = type && type.Columns ? items(type.Columns, (one) => [one.Name, one.Type.Name]) : null;
  return { errors, columns };
}

require('readline')
  .createInterface({ input: process.stdin })
  .on('line', (line) => process.stdout.write(JSON.stringify(told(JSON.parse(line))) + '\n'));
