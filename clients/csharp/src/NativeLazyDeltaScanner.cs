using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace LazyDelta
{
    /// <summary>Scans in this process, by the C library <c>libdelta_lazy.so</c>.</summary>
    /// <remarks>
    /// The library must be where the runtime looks for it (<c>LD_LIBRARY_PATH</c>, or beside the program), and finds
    /// Python by itself (docs/c-api.md). A scan has a thread of its own, and stays at most
    /// <see cref="FilesAheadMax"/> files ahead of its caller. A scan that is stopped lets its caller go at once;
    /// its thread ends at the next file that is found.
    /// </remarks>
    public sealed class NativeLazyDeltaScanner : ILazyDeltaScanner, IAsyncDisposable
    {
        /// <summary>How many files wait at most for the caller.</summary>
        public const int FilesAheadMax = 1024;

        private readonly CancellationTokenSource ended = new CancellationTokenSource();

        /// <summary>The version of the library.</summary>
        public static string LibraryVersion
        {
            get { return DeltaLazyLibrary.Version(); }
        }

        /// <inheritdoc/>
        public IAsyncEnumerable<DeltaFile> ScanFilesAsync(
            string tablePath,
            ScanOptions options = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            if (tablePath == null) throw new ArgumentNullException(nameof(tablePath));
            if (ended.IsCancellationRequested) throw new ObjectDisposedException(nameof(NativeLazyDeltaScanner));
            byte[] path = DeltaLazyLibrary.Bytes(tablePath);
            byte[] json = DeltaLazyLibrary.Bytes(NativeOptions((options ?? new ScanOptions()).Checked()));
            return new ScanStream((token, link) => new NativeScan(path, json, token, link, ended.Token), cancellationToken);
        }

        /// <summary>Call back for each file, in this thread, until there are no more or the callback says false.</summary>
        /// <param name="tablePath">A path or URL.</param>
        /// <param name="predicateJson">A filter, or null.</param>
        /// <param name="limit">At most so many files; 0 for all.</param>
        /// <param name="callback">Takes the files. What it throws ends the scan and is thrown here.</param>
        public static void Scan(string tablePath, string predicateJson, ulong limit, FileCallback callback)
        {
            if (tablePath == null) throw new ArgumentNullException(nameof(tablePath));
            if (callback == null) throw new ArgumentNullException(nameof(callback));
            Exception thrown = null;
            int code;
            unsafe
            {
                DeltaLazyLibrary.PathCallback guarded = (path, size) =>
                {
                    try
                    {
                        return callback(DeltaLazyLibrary.Text(path), size);
                    }
                    catch (Exception problem) // nothing may be thrown through C
                    {
                        thrown = problem;
                        return false;
                    }
                };
                code = Called(tablePath, predicateJson, limit, guarded);
                GC.KeepAlive(guarded);
            }
            if (thrown != null) System.Runtime.ExceptionServices.ExceptionDispatchInfo.Capture(thrown).Throw();
            if (code != 0) throw DeltaLazyLibrary.Failure(code);
        }

        /// <summary>Ends every scan of this scanner.</summary>
        public void Dispose()
        {
            ended.Cancel(); // kept, not disposed: enumerators may still ask it
        }

        /// <summary>The same, for <c>await using</c>.</summary>
        public ValueTask DisposeAsync()
        {
            Dispose();
            return default(ValueTask);
        }

        private static int Called(string tablePath, string predicateJson, ulong limit, DeltaLazyLibrary.PathCallback callback)
        {
            byte[] path = DeltaLazyLibrary.Bytes(tablePath), predicate = DeltaLazyLibrary.Bytes(predicateJson);
            try
            {
                return DeltaLazyLibrary.ScanLazy(path, predicate, new UIntPtr(limit), callback);
            }
            catch (Exception problem) when (DeltaLazyLibrary.Missing(problem) != null)
            {
                throw DeltaLazyLibrary.Missing(problem);
            }
        }

        private static string NativeOptions(ScanOptions options)
        {
            var json = new JsonWriter();
            json.Add("strategy", options.Strategy.ToString().ToLowerInvariant());
            if (options.PredicateJson != null) json.Add("predicate", options.PredicateJson);
            if (options.Limit != null) json.Add("limit", options.Limit.Value);
            if (options.Version != null) json.Add("version", options.Version.Value);
            if (options.StorageOptions != null) json.Add("storage_options", options.StorageOptions);
            return json.ToString();
        }
    }
}
