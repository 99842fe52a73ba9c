using System;

namespace LazyDelta
{
    /// <summary>Why a table cannot be read: the codes of delta_lazy.h and of the command <c>lazydelta</c>.</summary>
    public enum DeltaCode
    {
        /// <summary>Something else; also a bug.</summary>
        Error = 1,

        /// <summary>The call is wrong: a column, a predicate, an option.</summary>
        InvalidRequest = 2,

        /// <summary>There is no Delta table at the address, or it may not be read.</summary>
        TableNotFound = 3,

        /// <summary>The version asked for cannot be read, any more or yet.</summary>
        VersionNotFound = 4,

        /// <summary>The log is damaged, or a server's answer is.</summary>
        CorruptLog = 5,

        /// <summary>The table needs something that this reader does not have.</summary>
        UnsupportedTable = 6,

        /// <summary>The store or the server refused, timed out or broke off: asking again may help.</summary>
        Storage = 7,

        /// <summary>The credentials were refused.</summary>
        AccessDenied = 8,

        /// <summary>A data file or its deletion vector is missing or damaged.</summary>
        CorruptData = 9,

        /// <summary>In process: Python or lazydelta could not be started.</summary>
        NoRuntime = 20
    }

    /// <summary>A table cannot be read. The message says what happened, where, and what to do next.</summary>
    public sealed class DeltaException : Exception
    {
        /// <summary>Make one.</summary>
        public DeltaException(DeltaCode code, string message, Exception inner = null)
            : base(message, inner)
        {
            Code = code;
        }

        /// <summary>Of which kind.</summary>
        public DeltaCode Code { get; }

        internal static DeltaException Because(DeltaCode code, string what, string where, string fix, Exception inner = null)
        {
            return new DeltaException(code, what + "\n  where: " + where + "\n  fix:   " + fix, inner);
        }
    }
}
