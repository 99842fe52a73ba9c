using System;
using System.Collections.Generic;
using System.Threading;

namespace LazyDelta
{
    /// <summary>Streams the live files of Delta tables as they are found, newest first.</summary>
    /// <remarks>
    /// Nothing is read before the first file is asked for. Whoever stops asking (<c>break</c> in
    /// <c>await foreach</c>, or disposing the enumerator) ends the scan, and disposing the scanner ends all
    /// of its scans. A scanner may serve several threads; an enumerator belongs to one caller at a time.
    /// </remarks>
    public interface ILazyDeltaScanner : IDisposable
    {
        /// <summary>The files of one version of the table that might match.</summary>
        /// <param name="tablePath">Which table: a path or URL in process, <c>share.schema.table</c> over HTTP.</param>
        /// <param name="options">What to look for, and how; null for every file.</param>
        /// <param name="cancellationToken">Ends the scan with an <see cref="OperationCanceledException"/>.</param>
        /// <returns>The files; each enumeration is a scan of its own.</returns>
        /// <exception cref="DeltaException">While enumerating: the table cannot be read, and why.</exception>
        IAsyncEnumerable<DeltaFile> ScanFilesAsync(
            string tablePath,
            ScanOptions options = null,
            CancellationToken cancellationToken = default(CancellationToken));
    }
}
