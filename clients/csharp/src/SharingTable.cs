using System;
using System.Linq;

namespace LazyDelta
{
    /// <summary>A table as Delta Sharing addresses it.</summary>
    internal sealed class SharingTable
    {
        /// <summary>Its path below the endpoint, escaped.</summary>
        internal readonly string UrlPath;

        private SharingTable(string share, string schema, string table)
        {
            UrlPath = "shares/" + Uri.EscapeDataString(share) + "/schemas/" + Uri.EscapeDataString(schema)
                + "/tables/" + Uri.EscapeDataString(table);
        }

        /// <summary><c>share.schema.table</c>, or with slashes, where a name has dots.</summary>
        internal static SharingTable Parse(string tablePath)
        {
            if (tablePath == null) throw new ArgumentNullException(nameof(tablePath));
            string[] names = tablePath.Split(tablePath.IndexOf('/') >= 0 ? '/' : '.');
            if (names.Length != 3 || names.Any(name => name.Length == 0 || name == "." || name == ".."))
                throw new ArgumentException("the table is " + tablePath + "; give share.schema.table, or share/schema/table", nameof(tablePath));
            return new SharingTable(names[0], names[1], names[2]);
        }
    }
}
