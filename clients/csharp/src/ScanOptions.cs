using System;
using System.Collections.Generic;

namespace LazyDelta
{
    /// <summary>In which order the log is read. The files are the same.</summary>
    public enum ScanStrategy
    {
        /// <summary>Chosen from what the log looks like.</summary>
        Auto,

        /// <summary>Commits newest first, then the checkpoint if it is still needed.</summary>
        Reverse,

        /// <summary>The checkpoint first.</summary>
        Forward
    }

    /// <summary>What a scan looks for, and how.</summary>
    public sealed class ScanOptions
    {
        /// <summary>
        /// A filter: <c>{"date": "2026-02-08"}</c>, <c>{"value": {"gte": 1, "lt": 9}}</c>, or SQL text. Files that
        /// cannot match are left out; of a file that might match, rows may not. Over HTTP the server may give
        /// more files than in process, never fewer. Null, empty text and <c>null</c> of JSON for every file.
        /// </summary>
        public string PredicateJson { get; set; }

        /// <summary>At most so many files; null or 0 for all of them.</summary>
        public int? Limit { get; set; }

        /// <summary>How the log is read; a server chooses for itself.</summary>
        public ScanStrategy Strategy { get; set; } = ScanStrategy.Auto;

        /// <summary>The version of the table; null for the newest.</summary>
        public long? Version { get; set; }

        /// <summary>
        /// Over HTTP: how many rows the caller means to read. The server may then leave out files that hold rows
        /// beyond them, so that fewer than <see cref="Limit"/> files come. In process it has no effect.
        /// </summary>
        public long? RowLimitHint { get; set; }

        /// <summary>In process: options of the object store, as lazydelta takes them. Null for those of the environment.</summary>
        public IDictionary<string, string> StorageOptions { get; set; }

        internal ScanOptions Checked()
        {
            if (Limit < 0) throw new ArgumentOutOfRangeException("options", "Limit is " + Limit + "; give 1 or more, or null or 0 for all files");
            if (Version < 0) throw new ArgumentOutOfRangeException("options", "Version is " + Version + "; give 0 or more, or null for the newest");
            if (RowLimitHint < 0) throw new ArgumentOutOfRangeException("options", "RowLimitHint is " + RowLimitHint + "; give 0 or more, or null");
            if (!Enum.IsDefined(typeof(ScanStrategy), Strategy)) throw new ArgumentOutOfRangeException("options", "there is no strategy " + Strategy);
            return (ScanOptions)MemberwiseClone();
        }
    }
}
