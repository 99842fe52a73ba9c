using System;
using System.Collections.Generic;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Text;

namespace LazyDelta
{
    /// <summary>The request of a scan, a page at a time.</summary>
    internal sealed class SharingQuery
    {
        internal const string CapabilitiesHeader = "delta-sharing-capabilities";

        private const string Capabilities =
            "responseformat=delta,parquet;readerfeatures=deletionvectors,columnmapping,timestampntz,typewidening,"
            + "varianttype,v2checkpoint,vacuumprotocolcheck;includeendstreamaction=true";

        private readonly string bearerToken;
        private readonly ScanOptions options;
        private readonly List<string> conditions; // SQL, or null
        private readonly string jsonPredicate; // Delta Sharing's own form, or null

        internal SharingQuery(Uri endpoint, string bearerToken, SharingTable table, ScanOptions options)
        {
            Address = new Uri(endpoint, table.UrlPath + "/query");
            this.bearerToken = bearerToken;
            this.options = options;
            string predicate = options.PredicateJson;
            if (predicate == null || predicate.Trim().Length == 0 || predicate.Trim() == "null") return;
            if (!predicate.TrimStart().StartsWith("{", StringComparison.Ordinal)) conditions = new List<string> { predicate };
            else if (Parsed(predicate) is Dictionary<string, object> filter && filter.ContainsKey("op") && filter.ContainsKey("children")) jsonPredicate = predicate;
            else conditions = Conditions(predicate);
        }

        internal Uri Address { get; }

        /// <summary>At most so many files.</summary>
        internal int Limit
        {
            get { return options.Limit == null || options.Limit == 0 ? int.MaxValue : options.Limit.Value; }
        }

        /// <summary>For the first page, or for the one that the token names.</summary>
        internal HttpRequestMessage Request(string pageToken)
        {
            var request = new HttpRequestMessage(HttpMethod.Post, Address);
            if (bearerToken != null) request.Headers.Authorization = new AuthenticationHeaderValue("Bearer", bearerToken);
            request.Headers.TryAddWithoutValidation(CapabilitiesHeader, Capabilities);
            request.Content = new StringContent(Body(pageToken), new UTF8Encoding(false), "application/json");
            return request;
        }

        // The limit is not sent: limitHint counts rows, and pages (maxFiles) may come in another order than a stream.
        private string Body(string pageToken)
        {
            var body = new JsonWriter();
            if (conditions != null) body.Add("predicateHints", conditions);
            if (jsonPredicate != null) body.Add("jsonPredicateHints", jsonPredicate);
            if (options.RowLimitHint != null) body.Add("limitHint", options.RowLimitHint.Value);
            if (options.Version != null) body.Add("version", options.Version.Value);
            if (pageToken != null) body.Add("pageToken", pageToken);
            return body.ToString();
        }

        private static List<string> Conditions(string predicate)
        {
            try
            {
                return PredicateText.Conditions((Dictionary<string, object>)JsonReader.Read(predicate));
            }
            catch (FormatException problem)
            {
                throw Wrong(predicate, problem);
            }
        }

        private static object Parsed(string predicate)
        {
            try
            {
                return JsonReader.Read(predicate);
            }
            catch (FormatException problem)
            {
                throw Wrong(predicate, problem);
            }
        }

        private static ArgumentException Wrong(string predicate, FormatException problem)
        {
            return new ArgumentException("PredicateJson is " + predicate + ": " + problem.Message, "options", problem);
        }
    }
}
