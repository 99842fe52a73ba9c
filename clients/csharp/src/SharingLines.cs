using System;
using System.Collections.Generic;

namespace LazyDelta
{
    /// <summary>The lines of a Delta Sharing answer, in both of its formats, as files.</summary>
    internal sealed class SharingLines
    {
        private static readonly DateTime Epoch = new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc);
        private static readonly IReadOnlyDictionary<string, string> NoPartitions = new Dictionary<string, string>();

        private readonly Dictionary<string, string> logicalNames = new Dictionary<string, string>(StringComparer.Ordinal);
        private bool hasProtocol;
        private bool hasMetadata;

        /// <summary>Whether the lines came that every answer begins with.</summary>
        internal bool HasHead
        {
            get { return hasProtocol && hasMetadata; }
        }

        /// <summary>Whether the line came that says that all is there.</summary>
        internal bool IsEnded { get; private set; }

        /// <summary>Where the next page begins; null where this was the last.</summary>
        internal string NextPageToken { get; private set; }

        /// <summary>The file of the line, or null where it is about something else.</summary>
        /// <exception cref="FormatException">It is not a line of Delta Sharing.</exception>
        internal DeltaFile Read(string line)
        {
            var action = JsonReader.Read(line) as Dictionary<string, object>;
            if (action == null) throw new FormatException("a line is not an object");
            if (IsEnded) throw new FormatException("a line follows the end");
            Dictionary<string, object> file = JsonFields.Object(action, "file");
            if (file != null) return OfFile(file);
            Dictionary<string, object> end = JsonFields.Object(action, "endStreamAction");
            if (end != null) ReadEnd(end);
            hasProtocol = hasProtocol || JsonFields.Object(action, "protocol") != null;
            Dictionary<string, object> metadata = JsonFields.Object(action, "metaData");
            hasMetadata = hasMetadata || metadata != null;
            if (metadata != null) ReadNames(JsonFields.Object(metadata, "deltaMetadata"));
            return null; // of what is unknown too: the protocol grows
        }

        private DeltaFile OfFile(Dictionary<string, object> file)
        {
            Dictionary<string, object> single = JsonFields.Object(file, "deltaSingleAction");
            if (single != null) return OfAdd(JsonFields.Needed(JsonFields.Object(single, "add"), "add"));
            string url = JsonFields.Needed(JsonFields.Text(file, "url"), "url");
            return new DeltaFile(url, Size(file), Partitions(file), Moment(JsonFields.Whole(file, "timestamp")));
        }

        private DeltaFile OfAdd(Dictionary<string, object> add)
        {
            string path = JsonFields.Needed(JsonFields.Text(add, "path"), "path");
            DateTime? modified = Moment(JsonFields.Whole(add, "modificationTime"));
            return new DeltaFile(path, Size(add), Partitions(add), modified, Vector(JsonFields.Object(add, "deletionVector")));
        }

        private void ReadEnd(Dictionary<string, object> end)
        {
            string problem = JsonFields.Text(end, "errorMessage");
            if (problem != null)
            {
                int status = (int)(JsonFields.Whole(end, "httpStatusErrorCode") ?? 500);
                throw SharingStatus.Failure(status, problem, "the server's answer");
            }
            IsEnded = true;
            string token = JsonFields.Text(end, "nextPageToken");
            NextPageToken = string.IsNullOrEmpty(token) ? null : token;
        }

        // With column mapping, Delta's own actions name partitions by their physical names.
        private void ReadNames(Dictionary<string, object> metadata)
        {
            string schema = metadata == null ? null : JsonFields.Text(metadata, "schemaString");
            if (schema == null || !(JsonReader.Read(schema) is Dictionary<string, object> root)) return;
            if (!root.TryGetValue("fields", out object fields) || !(fields is List<object> all)) return;
            foreach (object each in all)
            {
                if (!(each is Dictionary<string, object> field)) continue;
                Dictionary<string, object> more = JsonFields.Object(field, "metadata");
                string physical = more == null ? null : JsonFields.Text(more, "delta.columnMapping.physicalName");
                if (physical != null) logicalNames[physical] = JsonFields.Needed(JsonFields.Text(field, "name"), "name");
            }
        }

        private IReadOnlyDictionary<string, string> Partitions(Dictionary<string, object> of)
        {
            Dictionary<string, object> values = JsonFields.Object(of, "partitionValues");
            if (values == null || values.Count == 0) return NoPartitions;
            var named = new Dictionary<string, string>(values.Count);
            foreach (string name in values.Keys)
                named[logicalNames.TryGetValue(name, out string logical) ? logical : name] = JsonFields.Text(values, name);
            return named;
        }

        private static DeltaDeletionVector Vector(Dictionary<string, object> vector)
        {
            if (vector == null) return null;
            return new DeltaDeletionVector(
                JsonFields.Needed(JsonFields.Text(vector, "storageType"), "storageType"),
                JsonFields.Needed(JsonFields.Text(vector, "pathOrInlineDv"), "pathOrInlineDv"),
                (int?)JsonFields.Whole(vector, "offset"),
                JsonFields.Whole(vector, "sizeInBytes") ?? 0,
                JsonFields.Whole(vector, "cardinality") ?? 0);
        }

        private static long Size(Dictionary<string, object> of)
        {
            return JsonFields.Needed(JsonFields.Whole(of, "size"), "size").Value;
        }

        private static DateTime? Moment(long? milliseconds)
        {
            return milliseconds == null ? (DateTime?)null : Epoch.AddMilliseconds(milliseconds.Value);
        }
    }
}
