using System;
using System.Collections.Generic;

namespace LazyDelta
{
    /// <summary>What an HTTP status of a sharing server means.</summary>
    internal static class SharingStatus
    {
        /// <summary>The answer's own words, and a code that says what to do.</summary>
        internal static DeltaException Failure(int status, string body, string where)
        {
            string message = Message(body, out string errorCode);
            string what = "the server answered " + status + (message.Length == 0 ? "" : ": " + message);
            if (errorCode == "VERSION_NOT_FOUND")
                return DeltaException.Because(DeltaCode.VersionNotFound, what, where, "ask for another version, or for the newest");
            switch (status)
            {
                case 400:
                    return DeltaException.Because(DeltaCode.InvalidRequest, what, where, "mend the request: the table's name, the predicate, the version");
                case 401:
                case 403:
                    return DeltaException.Because(DeltaCode.AccessDenied, what, where, "give a bearer token that the server knows");
                case 404:
                    return DeltaException.Because(DeltaCode.TableNotFound, what, where, "check share.schema.table, and whether this client may read it");
                case 422:
                    return DeltaException.Because(DeltaCode.CorruptLog, what, where, "the table is damaged: its owner must mend it");
                case 501:
                    return DeltaException.Because(DeltaCode.UnsupportedTable, what, where, "the server cannot share this table with this client");
                default:
                    return DeltaException.Because(DeltaCode.Storage, what, where, "try again later, or look at the server's log");
            }
        }

        private static string Message(string body, out string errorCode)
        {
            string text = (body ?? "").Trim();
            errorCode = null;
            try
            {
                if (text.StartsWith("{", StringComparison.Ordinal) && JsonReader.Read(text) is Dictionary<string, object> error)
                {
                    errorCode = JsonFields.Text(error, "errorCode");
                    return JsonFields.Text(error, "message") ?? errorCode ?? text;
                }
            }
            catch (FormatException)
            {
                // A proxy's page, say: shown as it is.
            }
            return text.Length > 500 ? text.Substring(0, 500) + "…" : text;
        }
    }
}
