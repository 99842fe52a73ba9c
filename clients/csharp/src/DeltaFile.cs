using System;
using System.Collections.Generic;

namespace LazyDelta
{
    /// <summary>Takes a file of a scan; false ends it.</summary>
    /// <param name="path">Of the file, below the table's root, or a URI outside of it.</param>
    /// <param name="size">In bytes.</param>
    /// <returns>Whether the scan shall go on.</returns>
    public delegate bool FileCallback(string path, long size);

    /// <summary>A live file of a Delta table.</summary>
    public sealed class DeltaFile
    {
        /// <summary>Make one.</summary>
        public DeltaFile(
            string path,
            long size,
            IReadOnlyDictionary<string, string> partitionValues,
            DateTime? modificationTime,
            DeltaDeletionVector deletionVector = null)
        {
            Path = path ?? throw new ArgumentNullException(nameof(path));
            Size = size;
            PartitionValues = partitionValues;
            ModificationTime = modificationTime;
            DeletionVector = deletionVector;
        }

        /// <summary>In process: below the table's root, or a URI outside of it. Over HTTP: a URL to read the file from.</summary>
        public string Path { get; }

        /// <summary>In bytes.</summary>
        public long Size { get; }

        /// <summary>By column name, as the log has them; a null value is null.</summary>
        public IReadOnlyDictionary<string, string> PartitionValues { get; }

        /// <summary>When the file was written, in UTC; null where a server does not say.</summary>
        public DateTime? ModificationTime { get; }

        /// <summary>Rows of the file that are no longer there; null where all are. Whoever reads the file must apply it.</summary>
        public DeltaDeletionVector DeletionVector { get; }

        /// <summary>The path and the size, for people.</summary>
        public override string ToString()
        {
            return Path + " (" + Size + " bytes)";
        }
    }

    /// <summary>Rows that are no longer there, as Delta's protocol describes them.</summary>
    public sealed class DeltaDeletionVector
    {
        /// <summary>Make one.</summary>
        public DeltaDeletionVector(string storageType, string pathOrInlineDv, int? offset, long sizeInBytes, long cardinality)
        {
            StorageType = storageType;
            PathOrInlineDv = pathOrInlineDv;
            Offset = offset;
            SizeInBytes = sizeInBytes;
            Cardinality = cardinality;
        }

        /// <summary><c>u</c>, <c>i</c> or <c>p</c>.</summary>
        public string StorageType { get; }

        /// <summary>Where it is, or itself.</summary>
        public string PathOrInlineDv { get; }

        /// <summary>Of its first byte in its file; null where it is inline.</summary>
        public int? Offset { get; }

        /// <summary>Of its bytes.</summary>
        public long SizeInBytes { get; }

        /// <summary>How many rows are gone.</summary>
        public long Cardinality { get; }
    }
}
