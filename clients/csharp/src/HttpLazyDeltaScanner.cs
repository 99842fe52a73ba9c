using System;
using System.Collections.Generic;
using System.Net.Http;
using System.Threading;
using System.Threading.Tasks;

namespace LazyDelta
{
    /// <summary>Scans by a server that speaks Delta Sharing, as <c>lazydelta serve</c> does.</summary>
    /// <remarks>
    /// Files are handed out while the server still finds them; the answer is read as it is asked for, so a slow caller
    /// slows the server down and memory stays flat. Stopping closes the connection, which ends the scan there.
    /// An answer that breaks off is an error, never a shorter list.
    /// </remarks>
    public sealed class HttpLazyDeltaScanner : ILazyDeltaScanner, IAsyncDisposable
    {
        private readonly CancellationTokenSource ended = new CancellationTokenSource();
        private readonly HttpClient client;
        private readonly Uri endpoint;
        private readonly string bearerToken;

        /// <summary>Talk to a server.</summary>
        /// <param name="endpoint">Its address with the prefix of Delta Sharing, such as <c>https://host/delta-sharing</c>.</param>
        /// <param name="bearerToken">Who the client is; null where the server does not ask.</param>
        /// <param name="handler">How requests are sent (proxy, certificates); null for the usual way. Disposed with the scanner.</param>
        public HttpLazyDeltaScanner(Uri endpoint, string bearerToken = null, HttpMessageHandler handler = null)
        {
            if (endpoint == null) throw new ArgumentNullException(nameof(endpoint));
            if (!endpoint.IsAbsoluteUri || (endpoint.Scheme != "http" && endpoint.Scheme != "https"))
                throw new ArgumentException("the endpoint is " + endpoint + "; give an http or https address", nameof(endpoint));
            foreach (char letter in bearerToken ?? "")
                if (char.IsControl(letter)) throw new ArgumentException("the token has a control character, such as the end of a line", nameof(bearerToken));
            this.endpoint = endpoint.AbsoluteUri.EndsWith("/", StringComparison.Ordinal) ? endpoint : new Uri(endpoint.AbsoluteUri + "/");
            this.bearerToken = bearerToken;
            // A stream may last: what is bounded is the wait for its first byte, by ResponseTimeout.
            client = new HttpClient(handler ?? UsualHandler(), true) { Timeout = Timeout.InfiniteTimeSpan };
        }

        /// <summary>How long the server may take to begin its answer; a minute unless set.</summary>
        public TimeSpan ResponseTimeout { get; set; } = TimeSpan.FromMinutes(1);

        /// <summary>By a profile of Delta Sharing: the JSON text with <c>endpoint</c> and <c>bearerToken</c>.</summary>
        /// <exception cref="FormatException">It is not a profile.</exception>
        public static HttpLazyDeltaScanner FromProfile(string profileJson, HttpMessageHandler handler = null)
        {
            if (profileJson == null) throw new ArgumentNullException(nameof(profileJson));
            if (!(JsonReader.Read(profileJson) is Dictionary<string, object> profile)) throw new FormatException("the profile is not an object");
            if (JsonFields.Whole(profile, "shareCredentialsVersion") != 1) throw new FormatException("the profile's shareCredentialsVersion is not 1");
            string endpoint = JsonFields.Needed(JsonFields.Text(profile, "endpoint"), "endpoint");
            return new HttpLazyDeltaScanner(new Uri(endpoint), JsonFields.Text(profile, "bearerToken"), handler);
        }

        /// <inheritdoc/>
        public IAsyncEnumerable<DeltaFile> ScanFilesAsync(
            string tablePath,
            ScanOptions options = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            if (ended.IsCancellationRequested) throw new ObjectDisposedException(nameof(HttpLazyDeltaScanner));
            var query = new SharingQuery(endpoint, bearerToken, SharingTable.Parse(tablePath), (options ?? new ScanOptions()).Checked());
            return new ScanStream((token, link) => new HttpScan(client, query, ResponseTimeout, token, link, ended.Token), cancellationToken);
        }

        /// <summary>Ends every scan of this scanner, and its connections.</summary>
        public void Dispose()
        {
            ended.Cancel(); // kept, not disposed: enumerators may still ask it
            client.Dispose();
        }

        /// <summary>The same, for <c>await using</c>.</summary>
        public ValueTask DisposeAsync()
        {
            Dispose();
            return default(ValueTask);
        }

        private static HttpMessageHandler UsualHandler()
        {
            // Every scan holds a connection: the old default of two would make the third wait for the first.
            return new HttpClientHandler { MaxConnectionsPerServer = 256, AllowAutoRedirect = false };
        }
    }
}
