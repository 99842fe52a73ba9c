import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;

/**
 * Asks a Flight SQL server by JDBC. Questions come on stdin, a line each, their parts apart by tabs; answers go
 * to stdout as JSON, a line each: rows, or {"error": text}.
 */
public class JdbcClient {
  public static void main(String[] arguments) throws Exception {
    try (Connection connection = DriverManager.getConnection(arguments[0]);
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, "UTF-8"))) {
      System.setOut(new java.io.PrintStream(System.out, true, "UTF-8"));
      for (String line; (line = questions.readLine()) != null; ) {
        try {
          System.out.println(answer(connection, line.split("\t", -1)));
        } catch (SQLException error) {
          System.out.println("{\"error\": " + text(error.getMessage()) + "}");
        }
      }
    }
  }

  private static String answer(Connection connection, String[] asked) throws SQLException {
    DatabaseMetaData about = connection.getMetaData();
    switch (asked[0]) {
      case "catalogs":
        return rows(about.getCatalogs());
      case "schemas":
        return rows(about.getSchemas());
      case "tables":
        return rows(about.getTables(null, null, asked[1], null));
      case "columns":
        return rows(about.getColumns(null, null, asked[1], "%"));
      case "table types":
        return rows(about.getTableTypes());
      case "primary keys":
        return rows(about.getPrimaryKeys(null, null, asked[1]));
      case "imported keys":
        return rows(about.getImportedKeys(null, null, asked[1]));
      case "product":
        return "[[" + text(about.getDatabaseProductName()) + ", " + about.isReadOnly() + ", "
            + about.supportsTransactions() + ", " + text(about.getIdentifierQuoteString()) + "]]";
      case "update":
        try (Statement statement = connection.createStatement()) {
          return "" + statement.executeUpdate(asked[1]);
        }
      case "cancel":
        return cancelled(connection, asked[1]);
      case "prepared":
        return prepared(connection, asked);
      default:
        try (Statement statement = connection.createStatement()) {
          return rows(statement.executeQuery(asked[1]));
        }
    }
  }

  /** Each further part is a run: values apart by bars, a letter for their type before each. */
  private static String prepared(Connection connection, String[] asked) throws SQLException {
    List<String> runs = new ArrayList<>();
    try (PreparedStatement statement = connection.prepareStatement(asked[1])) {
      for (int run = 2; run < asked.length; run++) {
        String[] values = asked[run].split("\\|");
        for (int place = 1; place <= values.length; place++) {
          bind(statement, place, values[place - 1].charAt(0), values[place - 1].substring(1));
        }
        runs.add(rows(statement.executeQuery()));
      }
    }
    return "[" + String.join(", ", runs) + "]";
  }

  private static void bind(PreparedStatement statement, int place, char type, String value)
      throws SQLException {
    switch (type) {
      case 'l':
        statement.setLong(place, Long.parseLong(value));
        break;
      case 'd':
        statement.setDouble(place, Double.parseDouble(value));
        break;
      case 't':
        statement.setTimestamp(place, new Timestamp(Long.parseLong(value)));
        break;
      case 'n':
        statement.setNull(place, Types.VARCHAR);
        break;
      default:
        statement.setString(place, value);
    }
  }

  /** Reads a row, cancels, and says how the rest ended. */
  private static String cancelled(Connection connection, String query) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      ResultSet rows = statement.executeQuery(query);
      rows.next();
      statement.cancel();
      try {
        while (rows.next()) {}
        return "\"to the end\"";
      } catch (SQLException error) {
        return "\"cancelled\"";
      }
    }
  }

  private static String rows(ResultSet rows) throws SQLException {
    List<String> found = new ArrayList<>();
    int columns = rows.getMetaData().getColumnCount();
    while (rows.next()) {
      List<String> row = new ArrayList<>();
      for (int place = 1; place <= columns; place++) {
        // The driver has no object for a moment.
        boolean isMoment = rows.getMetaData().getColumnType(place) == Types.TIMESTAMP_WITH_TIMEZONE;
        row.add(value(isMoment ? rows.getTimestamp(place) : rows.getObject(place)));
      }
      found.add("[" + String.join(", ", row) + "]");
    }
    rows.close();
    return "[" + String.join(", ", found) + "]";
  }

  private static String value(Object value) {
    if (value == null || value instanceof Boolean || value instanceof Long || value instanceof Integer
        || value instanceof Short || value instanceof Byte) {
      return String.valueOf(value);
    }
    if (value instanceof Double || value instanceof Float) {
      double number = ((Number) value).doubleValue();
      return Double.isFinite(number) ? String.valueOf(number) : text(String.valueOf(number));
    }
    if (value instanceof Timestamp) {
      return String.valueOf(((Timestamp) value).getTime());
    }
    if (value instanceof Date) {
      return text(value.toString());
    }
    return text(value.toString());
  }

  private static String text(String value) {
    StringBuilder out = new StringBuilder("\"");
    for (char each : String.valueOf(value).toCharArray()) {
      if (each == '"' || each == '\\') {
        out.append('\\').append(each);
      } else if (each < ' ') {
        out.append(String.format("\\u%04x", (int) each));
      } else {
        out.append(each);
      }
    }
    return out.append('"').toString();
  }
}
