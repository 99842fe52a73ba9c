using System;
using System.IO;
using System.Text;
using System.Threading.Tasks;

namespace LazyDelta
{
    /// <summary>Lines of UTF-8 from a stream, each of a bounded length.</summary>
    internal sealed class LineReader
    {
        internal const int LineBytesMax = 16 * 1024 * 1024;
        private const int FirstBytes = 64 * 1024;

        private static readonly UTF8Encoding Strict = new UTF8Encoding(false, true);

        private readonly Stream stream;
        private byte[] buffer = new byte[FirstBytes];
        private int start; // of what is not handed out
        private int searched; // up to where there is no end of line
        private int end; // of what was read
        private bool isAtEnd;

        internal LineReader(Stream stream)
        {
            this.stream = stream;
        }

        /// <summary>A line that is here already.</summary>
        internal bool TryTake(out string line)
        {
            int at = Array.IndexOf(buffer, (byte)'\n', searched, end - searched);
            if (at < 0 && isAtEnd && end > start) at = end; // the last one may lack its end
            searched = at < 0 ? end : Math.Min(at + 1, end);
            line = at < 0 ? null : Strict.GetString(buffer, start, at - start);
            if (at >= 0) start = searched;
            return at >= 0;
        }

        /// <summary>Read on; false at the end of the stream.</summary>
        internal async Task<bool> FillAsync()
        {
            if (isAtEnd) return false;
            MakeRoom();
            int count = await stream.ReadAsync(buffer, end, buffer.Length - end).ConfigureAwait(false);
            end += count;
            isAtEnd = count == 0;
            return !isAtEnd || end > start;
        }

        private void MakeRoom()
        {
            if (start > 0)
            {
                Buffer.BlockCopy(buffer, start, buffer, 0, end - start);
                searched -= start;
                end -= start;
                start = 0;
            }
            if (end < buffer.Length) return;
            if (buffer.Length >= LineBytesMax) throw new FormatException("a line is longer than " + LineBytesMax + " bytes");
            Array.Resize(ref buffer, buffer.Length * 2);
        }
    }
}
