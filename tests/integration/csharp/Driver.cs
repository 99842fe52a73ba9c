// What the tests do in C#: Driver ACTION …. Each action prints what the test compares.
// `Driver resident` takes actions from its input, a line of JSON each, and answers with a line of JSON.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using LazyDelta;

internal static class Driver
{
    private static readonly DateTime Epoch = new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc);
    private static StreamWriter output;

    private static int Main(string[] words)
    {
        output = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false)) { AutoFlush = false };
        if (words[0] == "resident") return Resident();
        int code = CodeOf(words, out string error);
        if (error != "") Console.Error.WriteLine(error);
        output.Flush();
        return code;
    }

    private static int CodeOf(string[] words, out string error)
    {
        error = "";
        try
        {
            Run(words).GetAwaiter().GetResult();
            return 0;
        }
        catch (DeltaException problem)
        {
            error = problem.Message;
            return (int)problem.Code;
        }
    }

    // Many actions in one process: their exit code, output and error, as a process of their own would give them.
    private static int Resident()
    {
        StreamWriter answers = output;
        foreach (string line in Lines())
        {
            string[] words = ((List<object>)JsonReader.Read(line)).Cast<string>().ToArray();
            var told = new MemoryStream();
            output = new StreamWriter(told, new UTF8Encoding(false));
            var answer = new JsonWriter();
            answer.Add("code", CodeOf(words, out string error));
            output.Flush();
            answer.Add("out", Encoding.UTF8.GetString(told.ToArray()));
            answer.Add("err", error == "" ? "" : error + "\n");
            answers.WriteLine(answer);
            answers.Flush();
        }
        return 0;
    }

    private static async Task Run(string[] words)
    {
        switch (words[0])
        {
            case "json": ReadAll(words.Skip(1)); break;
            case "predicate": WriteConditions(words.Skip(1)); break;
            case "callback": Callback(words[1], words[2] == "-" ? null : words[2], ulong.Parse(words[3]), int.Parse(words[4])); break;
            case "throw": Throw(words[1]); break;
            case "forget": Forget(words[1]); break;
            case "leave": Leave(words[1], int.Parse(words[2])); break;
            case "arguments": Arguments(); break;
            default: await Scan(words); break;
        }
    }

    // native TABLE OPTIONS… or http URL TOKEN TABLE OPTIONS…, where OPTIONS are name=value.
    private static async Task Scan(string[] words)
    {
        bool isNative = words[1] == "native";
        var options = new ScanOptions();
        foreach (string[] pair in words.Skip(isNative ? 3 : 5).Select(word => word.Split(new[] { '=' }, 2))) Set(options, pair[0], pair[1]);
        string table = isNative ? words[2] : words[4];
        using (ILazyDeltaScanner scanner = isNative ? (ILazyDeltaScanner)new NativeLazyDeltaScanner() : new HttpLazyDeltaScanner(new Uri(words[2]), words[3] == "-" ? null : words[3]))
        {
            switch (words[0])
            {
                case "list": await List(scanner, table, options, int.MaxValue); break;
                case "break": await List(scanner, table, options, stopAfter); break;
                case "cancel": await Cancel(scanner, table, options); break;
                case "cancel-waiting": await CancelWaiting(scanner, table, options); break;
                case "dispose": await Dispose(scanner, table, options); break;
                case "many": await Many(scanner, table, options); break;
                case "count": await Count(scanner, table, options); break;
                case "twice": await List(scanner, table, options, 1); await List(scanner, table, options, int.MaxValue); break;
                case "stall": await Stall(scanner, table, options); break;
                default: throw new ArgumentException(words[0]);
            }
        }
        if (words[0] == "break" || words[0] == "dispose") // the process lives on: only the scan has ended
        {
            output.Flush();
            Console.In.ReadLine();
        }
    }

    private static int stopAfter = 3;

    private static void Set(ScanOptions options, string name, string value)
    {
        if (name == "predicate") options.PredicateJson = value;
        else if (name == "limit") options.Limit = int.Parse(value);
        else if (name == "strategy") options.Strategy = (ScanStrategy)Enum.Parse(typeof(ScanStrategy), value);
        else if (name == "version") options.Version = long.Parse(value);
        else if (name == "rows") options.RowLimitHint = long.Parse(value);
        else throw new ArgumentException(name);
    }

    private static async Task List(ILazyDeltaScanner scanner, string table, ScanOptions options, int filesMax)
    {
        IAsyncEnumerator<DeltaFile> files = scanner.ScanFilesAsync(table, options).GetAsyncEnumerator();
        try
        {
            for (int i = 0; i < filesMax && await files.MoveNextAsync(); i++) Show(files.Current);
        }
        finally
        {
            await files.DisposeAsync();
        }
        if (await files.MoveNextAsync()) output.WriteLine("a file after the end");
    }

    private static async Task Count(ILazyDeltaScanner scanner, string table, ScanOptions options)
    {
        IAsyncEnumerator<DeltaFile> files = scanner.ScanFilesAsync(table, options).GetAsyncEnumerator();
        var watch = Stopwatch.StartNew();
        long count = 0, bytes = 0, memory = 0;
        while (await files.MoveNextAsync())
        {
            count++;
            bytes += files.Current.Size;
            if (count % 20000 == 0) memory = Math.Max(memory, GC.GetTotalMemory(false));
        }
        await files.DisposeAsync();
        output.WriteLine(count + " " + bytes + " " + memory + " " + watch.ElapsedMilliseconds);
    }

    // One file, then nothing for a while: what waits is bounded.
    private static async Task Stall(ILazyDeltaScanner scanner, string table, ScanOptions options)
    {
        IAsyncEnumerator<DeltaFile> files = scanner.ScanFilesAsync(table, options).GetAsyncEnumerator();
        await files.MoveNextAsync();
        output.WriteLine("stalled");
        output.Flush();
        Console.In.ReadLine();
        int count = 1;
        while (await files.MoveNextAsync()) count++;
        output.WriteLine(count);
        await files.DisposeAsync();
    }

    private static async Task Cancel(ILazyDeltaScanner scanner, string table, ScanOptions options)
    {
        foreach (bool isOfTheCall in new[] { true, false })
        {
            var source = new CancellationTokenSource();
            var other = new CancellationTokenSource(); // a token that is never cancelled must not hide the one that is
            IAsyncEnumerable<DeltaFile> all = scanner.ScanFilesAsync(table, options, isOfTheCall ? source.Token : other.Token);
            IAsyncEnumerator<DeltaFile> files = all.GetAsyncEnumerator(isOfTheCall ? other.Token : source.Token);
            await files.MoveNextAsync();
            source.Cancel();
            output.WriteLine(await Outcome(files));
            await files.DisposeAsync();
        }
    }

    // Cancelled while the next file is being waited for.
    private static async Task CancelWaiting(ILazyDeltaScanner scanner, string table, ScanOptions options)
    {
        var source = new CancellationTokenSource();
        IAsyncEnumerator<DeltaFile> files = scanner.ScanFilesAsync(table, options, source.Token).GetAsyncEnumerator();
        for (int i = 0; i < stopAfter; i++) await files.MoveNextAsync();
        source.CancelAfter(300);
        output.WriteLine(await Outcome(files));
        await files.DisposeAsync();
    }

    private static async Task Dispose(ILazyDeltaScanner scanner, string table, ScanOptions options)
    {
        IAsyncEnumerator<DeltaFile> files = scanner.ScanFilesAsync(table, options).GetAsyncEnumerator();
        await files.MoveNextAsync();
        scanner.Dispose();
        output.WriteLine(await Outcome(files));
        try
        {
            scanner.ScanFilesAsync(table);
        }
        catch (ObjectDisposedException problem)
        {
            output.WriteLine(problem.GetType().Name);
        }
    }

    private static async Task Many(ILazyDeltaScanner scanner, string table, ScanOptions options)
    {
        IEnumerable<Task<int>> scans = Enumerable.Range(0, 8).Select(_ => Task.Run(async () =>
        {
            IAsyncEnumerator<DeltaFile> files = scanner.ScanFilesAsync(table, options).GetAsyncEnumerator();
            int count = 0;
            while (await files.MoveNextAsync()) count++;
            await files.DisposeAsync();
            return count;
        }));
        output.WriteLine(string.Join(" ", await Task.WhenAll(scans)));
    }

    private static async Task<string> Outcome(IAsyncEnumerator<DeltaFile> files)
    {
        try
        {
            while (await files.MoveNextAsync()) continue;
            return "ended";
        }
        catch (Exception problem)
        {
            return problem.GetType().Name;
        }
    }

    // An enumerator that is neither read to its end nor disposed of: its thread ends once it is collected.
    private static void Forget(string table)
    {
        for (int i = 0; i < 4; i++) BeginAndForget(table);
        output.WriteLine(NativeScan.RunningCount > 0 ? "scanning" : "not begun");
        for (int i = 0; i < 200 && NativeScan.RunningCount > 0; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            Thread.Sleep(20);
        }
        // Mono takes whatever looks like a reference on a stack for one, so that one of them may stay.
        output.WriteLine(NativeScan.RunningCount < 2 ? "ended" : "still there: " + NativeScan.RunningCount);
    }

    [System.Runtime.CompilerServices.MethodImpl(System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]
    private static void BeginAndForget(string table)
    {
        // On a thread of its own: no register or stack slot of ours keeps the enumerator.
        var thread = new Thread(() => new NativeLazyDeltaScanner().ScanFilesAsync(table).GetAsyncEnumerator().MoveNextAsync().AsTask().Wait());
        thread.Start();
        thread.Join();
    }

    // The program ends while scans run: the runtime ends their threads wherever they are.
    private static void Leave(string table, int milliseconds)
    {
        for (int i = 0; i < 4; i++)
        {
            new Thread(() =>
            {
                IAsyncEnumerator<DeltaFile> files = new NativeLazyDeltaScanner().ScanFilesAsync(table).GetAsyncEnumerator();
                while (files.MoveNextAsync().AsTask().Result) Thread.Sleep(0);
            }) { IsBackground = true }.Start();
        }
        Thread.Sleep(milliseconds);
    }

    private static void Callback(string table, string predicate, ulong limit, int filesMax)
    {
        int count = 0;
        NativeLazyDeltaScanner.Scan(table, predicate, limit, (path, size) =>
        {
            output.WriteLine(path + "\t" + size);
            return ++count != filesMax;
        });
        output.WriteLine(NativeLazyDeltaScanner.LibraryVersion);
    }

    private static void Throw(string table)
    {
        try
        {
            NativeLazyDeltaScanner.Scan(table, null, 0, (path, size) => { throw new InvalidDataException("thrown within"); });
        }
        catch (InvalidDataException problem)
        {
            output.WriteLine(problem.Message);
        }
    }

    private static void Arguments()
    {
        var native = new NativeLazyDeltaScanner();
        var http = new HttpLazyDeltaScanner(new Uri("http://localhost"));
        Expect("null table", () => native.ScanFilesAsync(null));
        Expect("zero in table", () => native.ScanFilesAsync("a\0b"));
        Expect("limit", () => native.ScanFilesAsync("t", new ScanOptions { Limit = -1 }));
        Expect("version", () => native.ScanFilesAsync("t", new ScanOptions { Version = -1 }));
        Expect("strategy", () => native.ScanFilesAsync("t", new ScanOptions { Strategy = (ScanStrategy)9 }));
        Expect("null share", () => http.ScanFilesAsync(null));
        Expect("two names", () => http.ScanFilesAsync("schema.table"));
        Expect("dots", () => http.ScanFilesAsync("share/../table"));
        Expect("predicate", () => http.ScanFilesAsync("a.b.c", new ScanOptions { PredicateJson = "{\"a\": {\"near\": 1}}" }));
        Expect("not JSON", () => http.ScanFilesAsync("a.b.c", new ScanOptions { PredicateJson = "{\"a\": " }));
        Expect("scheme", () => new HttpLazyDeltaScanner(new Uri("ftp://localhost")));
        Expect("line break", () => new HttpLazyDeltaScanner(new Uri("http://localhost"), "a\r\nb: c"));
        Expect("profile", () => HttpLazyDeltaScanner.FromProfile("{\"shareCredentialsVersion\": 2, \"endpoint\": \"http://localhost\"}"));
        Expect("callback", () => NativeLazyDeltaScanner.Scan("t", null, 0, null));
        HttpLazyDeltaScanner.FromProfile("{\"shareCredentialsVersion\": 1, \"endpoint\": \"http://localhost/x\", \"bearerToken\": \"t\"}").Dispose();
    }

    private static void Expect(string what, Action action)
    {
        try
        {
            action();
            output.WriteLine(what + ": nothing");
        }
        catch (Exception problem)
        {
            output.WriteLine(what + ": " + problem.GetType().Name);
        }
    }

    // Texts of JSON in, the same values in one spelling out, or the errors.
    private static void ReadAll(IEnumerable<string> texts)
    {
        foreach (string line in texts)
        {
            try
            {
                output.WriteLine(Spelled(JsonReader.Read(line)));
            }
            catch (FormatException problem)
            {
                output.WriteLine("! " + problem.Message);
            }
        }
    }

    private static void WriteConditions(IEnumerable<string> texts)
    {
        foreach (string line in texts)
        {
            try
            {
                output.WriteLine(string.Join(" AND ", PredicateText.Conditions((Dictionary<string, object>)JsonReader.Read(line))));
            }
            catch (FormatException problem)
            {
                output.WriteLine("! " + problem.Message);
            }
        }
    }

    private static IEnumerable<string> Lines()
    {
        var input = new StreamReader(Console.OpenStandardInput(), new UTF8Encoding(false, true));
        for (string line = input.ReadLine(); line != null; line = input.ReadLine()) yield return line;
    }

    private static string Spelled(object value)
    {
        if (value == null) return "null";
        if (value is bool flag) return flag ? "true" : "false";
        if (value is JsonNumber number) return number.Text;
        if (value is string text) return "\"" + string.Concat(text.Select(letter => "\\u" + ((int)letter).ToString("x4", CultureInfo.InvariantCulture))) + "\"";
        if (value is List<object> items) return "[" + string.Join(",", items.Select(Spelled)) + "]";
        var members = (Dictionary<string, object>)value;
        return "{" + string.Join(",", members.Select(member => Spelled(member.Key) + ":" + Spelled(member.Value))) + "}";
    }

    private static void Show(DeltaFile file)
    {
        var line = new JsonWriter();
        line.Add("path", file.Path);
        line.Add("size", file.Size);
        if (file.ModificationTime != null) line.Add("modified", (long)(file.ModificationTime.Value - Epoch).TotalMilliseconds);
        line.Add("partitions", file.PartitionValues.ToDictionary(pair => pair.Key, pair => pair.Value));
        DeltaDeletionVector vector = file.DeletionVector;
        if (vector != null) line.Add("vector", new[] { vector.StorageType, vector.PathOrInlineDv, vector.Offset?.ToString(), vector.SizeInBytes.ToString(), vector.Cardinality.ToString() });
        output.WriteLine(line);
    }
}
