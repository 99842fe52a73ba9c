// Delta kernel (Java): live files through getScanFiles, measured inside its own JVM.
// Arguments: table folder, query (hundred, all, predicate, hour). Prints one JSON line, as measure.py does.

import io.delta.kernel.Scan;
import io.delta.kernel.ScanBuilder;
import io.delta.kernel.Snapshot;
import io.delta.kernel.Table;
import io.delta.kernel.data.FilteredColumnarBatch;
import io.delta.kernel.data.Row;
import io.delta.kernel.defaults.engine.DefaultEngine;
import io.delta.kernel.engine.Engine;
import io.delta.kernel.expressions.Column;
import io.delta.kernel.expressions.Literal;
import io.delta.kernel.expressions.Predicate;
import io.delta.kernel.utils.CloseableIterator;
import java.io.FileWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;

public class KernelReader {
  private static final Map<Integer, Double> MARKS = new TreeMap<>();
  private static long startNanos;

  public static void main(String[] arguments) throws Exception {
    String table = arguments[0];
    String query = arguments[1];
    Engine engine = DefaultEngine.create(new Configuration());
    System.gc();
    resetPeak();
    long baseKb = statusKb("VmRSS:");
    double cpuBefore = cpuSeconds();
    startNanos = System.nanoTime();

    Snapshot snapshot = Table.forPath(engine, table).getLatestSnapshot(engine);
    long files = countFiles(snapshot, engine, query);

    double all = elapsed();
    System.out.println(
        String.format(
            Locale.ROOT,
            "{\"reader\":\"kernel-java\",\"query\":\"%s\",\"files\":%d,\"first_s\":%s,\"hundred_s\":%s,"
                + "\"thousand_s\":%s,\"all_s\":%s,\"cpu_s\":%.3f,\"peak_mb\":%.1f}",
            query, files, mark(1), mark(100), mark(1000),
            query.equals("hundred") ? "null" : String.format(Locale.ROOT, "%.4f", all),
            cpuSeconds() - cpuBefore, (statusKb("VmHWM:") - baseKb) / 1024.0));
  }

  private static long countFiles(Snapshot snapshot, Engine engine, String query) throws Exception {
    ScanBuilder builder = snapshot.getScanBuilder();
    if (query.equals("predicate")) {
      builder = builder.withFilter(new Predicate("<", new Column("value"), Literal.ofDouble(100.05)));
    }
    if (query.equals("hour")) {
      builder =
          builder.withFilter(
              new Predicate(">=", new Column("_event_hour"), Literal.ofString("2026020923")));
    }
    Scan scan = builder.build();
    long files = 0;
    try (CloseableIterator<FilteredColumnarBatch> batches = scan.getScanFiles(engine)) {
      while (batches.hasNext()) {
        try (CloseableIterator<Row> rows = batches.next().getRows()) {
          while (rows.hasNext()) {
            Row add = rows.next().getStruct(0);
            if (add.getString(0).isEmpty()) {
              throw new IllegalStateException("a file without a path");
            }
            files++;
            if (files == 1 || files == 100 || files == 1000) {
              MARKS.put((int) files, elapsed());
            }
            if (files == 100 && query.equals("hundred")) {
              return files;
            }
          }
        }
      }
    }
    return files;
  }

  private static double elapsed() {
    return (System.nanoTime() - startNanos) / 1e9;
  }

  private static String mark(int files) {
    return MARKS.containsKey(files) ? String.format(Locale.ROOT, "%.4f", MARKS.get(files)) : "null";
  }

  private static double cpuSeconds() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime()
        / 1e9;
  }

  private static void resetPeak() throws Exception {
    try (FileWriter writer = new FileWriter("/proc/self/clear_refs")) {
      writer.write("5");
    }
  }

  private static long statusKb(String field) throws Exception {
    for (String line : Files.readAllLines(Paths.get("/proc/self/status"))) {
      if (line.startsWith(field)) {
        return Long.parseLong(line.replaceAll("[^0-9]", ""));
      }
    }
    throw new IllegalStateException(field);
  }
}
