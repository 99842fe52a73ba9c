using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace LazyDelta
{
    /// <summary>One JSON object, a member at a time.</summary>
    internal sealed class JsonWriter
    {
        private readonly StringBuilder text = new StringBuilder();

        internal void Add(string name, string value)
        {
            Name(name);
            Quote(text, value);
        }

        internal void Add(string name, long value)
        {
            Name(name);
            text.Append(value.ToString(CultureInfo.InvariantCulture));
        }

        internal void Add(string name, IEnumerable<string> values)
        {
            Name(name);
            text.Append('[');
            string separator = "";
            foreach (string value in values)
            {
                text.Append(separator);
                Quote(text, value);
                separator = ",";
            }
            text.Append(']');
        }

        internal void Add(string name, IDictionary<string, string> members)
        {
            var inner = new JsonWriter();
            foreach (KeyValuePair<string, string> member in members) inner.Add(member.Key, member.Value);
            Name(name);
            text.Append(inner);
        }

        /// <summary>The object.</summary>
        public override string ToString()
        {
            return "{" + text + "}";
        }

        private static void Quote(StringBuilder text, string value)
        {
            if (value == null)
            {
                text.Append("null");
                return;
            }
            text.Append('"');
            foreach (char letter in value)
            {
                // Lone surrogates would be lost in UTF-8: every one is escaped.
                if (letter == '"' || letter == '\\') text.Append('\\').Append(letter);
                else if (letter < ' ' || char.IsSurrogate(letter)) text.Append("\\u").Append(((int)letter).ToString("x4", CultureInfo.InvariantCulture));
                else text.Append(letter);
            }
            text.Append('"');
        }

        private void Name(string name)
        {
            if (text.Length > 0) text.Append(',');
            Quote(text, name);
            text.Append(':');
        }
    }
}
