using System;
using System.Collections.Generic;
using System.Threading.Tasks;
using LazyDelta;

/// <summary>List the newest files of a table: ListFiles TABLE [LIMIT [SERVER]]</summary>
internal static class ListFiles
{
    private static int Main(string[] words)
    {
        try
        {
            int limit = words.Length > 1 ? int.Parse(words[1]) : 10;
            using (ILazyDeltaScanner scanner = words.Length > 2 ? (ILazyDeltaScanner)new HttpLazyDeltaScanner(new Uri(words[2])) : new NativeLazyDeltaScanner())
            {
                List(scanner, words[0], new ScanOptions { Limit = limit }).GetAwaiter().GetResult();
            }
            return 0;
        }
        catch (DeltaException problem)
        {
            Console.Error.WriteLine("error: " + problem.Message);
            return (int)problem.Code;
        }
    }

    // With C# 8 this is: await foreach (DeltaFile file in scanner.ScanFilesAsync(table, options)) …
    private static async Task List(ILazyDeltaScanner scanner, string table, ScanOptions options)
    {
        IAsyncEnumerator<DeltaFile> files = scanner.ScanFilesAsync(table, options).GetAsyncEnumerator();
        try
        {
            while (await files.MoveNextAsync()) Console.WriteLine(files.Current.Path + "\t" + files.Current.Size);
        }
        finally
        {
            await files.DisposeAsync();
        }
    }
}
