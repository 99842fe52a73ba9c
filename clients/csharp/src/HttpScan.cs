using System;
using System.Collections.Generic;
using System.IO;
using System.Net.Http;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace LazyDelta
{
    /// <summary>One scan over HTTP: the answer's lines, read as files are asked for, page after page.</summary>
    internal sealed class HttpScan : IAsyncEnumerator<DeltaFile>
    {
        private readonly HttpClient client;
        private readonly SharingQuery query;
        private readonly TimeSpan responseTimeout;
        private readonly CancellationToken cancelled;
        private readonly IDisposable link; // of tokens, if there is one
        private readonly CancellationToken disposed;
        private readonly CancellationTokenSource ending; // of the request, by whoever
        private readonly int filesMax;
        private HttpResponseMessage response;
        private LineReader reader;
        private SharingLines lines;
        private bool hasEndLine; // the server promised one
        private bool isFramed; // HTTP says itself where the answer ends
        private bool hasHead; // of the first page at the latest
        private int fileCount;
        private bool isOver;

        internal HttpScan(
            HttpClient client,
            SharingQuery query,
            TimeSpan responseTimeout,
            CancellationToken cancelled,
            IDisposable link,
            CancellationToken disposed)
        {
            this.client = client;
            this.query = query;
            this.responseTimeout = responseTimeout;
            this.cancelled = cancelled;
            this.link = link;
            this.disposed = disposed;
            ending = CancellationTokenSource.CreateLinkedTokenSource(cancelled, disposed);
            filesMax = query.Limit;
        }

        /// <summary>The file.</summary>
        public DeltaFile Current { get; private set; }

        /// <summary>On to the next; false at the end.</summary>
        public ValueTask<bool> MoveNextAsync()
        {
            if (isOver) return new ValueTask<bool>(false);
            return new ValueTask<bool>(MovedAsync());
        }

        /// <summary>Closes the connection, which ends the scan at the server.</summary>
        public ValueTask DisposeAsync()
        {
            Close();
            link?.Dispose();
            return default(ValueTask);
        }

        private async Task<bool> MovedAsync()
        {
            try
            {
                CheckStopped();
                if (await FoundAsync().ConfigureAwait(false)) return true;
            }
            catch (Exception problem)
            {
                Close();
                CheckStopped(); // what a stop breaks is not an error
                throw Judged(problem);
            }
            Close();
            return false;
        }

        private async Task<bool> FoundAsync()
        {
            if (fileCount == filesMax) return false;
            if (reader == null) await AskAsync(null).ConfigureAwait(false);
            while (true)
            {
                while (reader.TryTake(out string line))
                {
                    Current = string.IsNullOrWhiteSpace(line) ? null : lines.Read(line);
                    if (Current == null) continue;
                    fileCount++;
                    return true;
                }
                if (await reader.FillAsync().ConfigureAwait(false)) continue;
                if ((hasEndLine || !isFramed) && !lines.IsEnded) throw new EndOfStreamException("the answer broke off before its last line");
                hasHead = hasHead || lines.HasHead;
                if (!hasHead) throw new FormatException("it has no protocol, or no metadata");
                if (lines.NextPageToken == null) return false;
                await AskAsync(lines.NextPageToken).ConfigureAwait(false);
            }
        }

        private async Task AskAsync(string pageToken)
        {
            response?.Dispose();
            using (HttpRequestMessage request = query.Request(pageToken))
            using (var patience = CancellationTokenSource.CreateLinkedTokenSource(ending.Token))
            {
                patience.CancelAfter(responseTimeout);
                try
                {
                    response = await client.SendAsync(request, HttpCompletionOption.ResponseHeadersRead, patience.Token).ConfigureAwait(false);
                }
                catch (OperationCanceledException problem) when (!ending.IsCancellationRequested)
                {
                    throw new TimeoutException("the server did not answer within " + responseTimeout, problem);
                }
            }
            HttpResponseMessage answer = response;
            ending.Token.Register(answer.Dispose); // a read that waits ends with its connection
            if (!answer.IsSuccessStatusCode)
            {
                string body = await answer.Content.ReadAsStringAsync().ConfigureAwait(false);
                throw SharingStatus.Failure((int)answer.StatusCode, body, query.Address.ToString());
            }
            hasEndLine = answer.Headers.TryGetValues(SharingQuery.CapabilitiesHeader, out IEnumerable<string> values)
                && string.Join(";", values).ToLowerInvariant().Replace(" ", "").Contains("includeendstreamaction=true");
            isFramed = answer.Content.Headers.ContentLength != null || answer.Headers.TransferEncodingChunked == true || answer.Version.Major >= 2;
            lines = new SharingLines();
            reader = new LineReader(await answer.Content.ReadAsStreamAsync().ConfigureAwait(false));
        }

        private Exception Judged(Exception problem)
        {
            string where = query.Address.ToString();
            if (problem is DeltaException) return problem;
            if (problem is FormatException || problem is DecoderFallbackException)
                return DeltaException.Because(
                    DeltaCode.CorruptLog, "the server's answer is damaged: " + problem.Message, where, "ask again; does the address belong to Delta Sharing?", problem);
            bool isOfTheLine = problem is IOException || problem is HttpRequestException || problem is TimeoutException
                || problem is InvalidOperationException || problem is System.Net.WebException; // the framework's many words for it
            if (!isOfTheLine) return problem;
            return DeltaException.Because(
                DeltaCode.Storage, "the server cannot be reached, or broke off: " + Innermost(problem).Message, where, "ask again; is the server up?", problem);
        }

        private static Exception Innermost(Exception problem)
        {
            while (problem.InnerException != null) problem = problem.InnerException;
            return problem;
        }

        private void CheckStopped()
        {
            cancelled.ThrowIfCancellationRequested();
            if (disposed.IsCancellationRequested) throw new ObjectDisposedException(nameof(HttpLazyDeltaScanner));
        }

        private void Close()
        {
            if (isOver) return;
            isOver = true;
            Current = null;
            ending.Cancel(); // before the answer is disposed: a connection with more to read must not be read to its end
            response?.Dispose();
            ending.Dispose();
        }
    }
}
