using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace LazyDelta
{
    /// <summary>A number as it was spelled: whoever needs it decides how exact it must be.</summary>
    internal struct JsonNumber
    {
        internal readonly string Text;

        internal JsonNumber(string text)
        {
            Text = text;
        }
    }

    /// <summary>
    /// JSON as RFC 8259 has it, and nothing else: no comments, no commas too many, no member twice, no lone surrogate,
    /// nesting up to a bound.
    /// </summary>
    /// <remarks>
    /// An object is a <c>Dictionary&lt;string, object&gt;</c>, an array a <c>List&lt;object&gt;</c>, a number a
    /// <see cref="JsonNumber"/>; text is <c>string</c>, the rest <c>bool</c> and null. Written because the frameworks
    /// this runs on have no JSON reader in common.
    /// </remarks>
    internal sealed class JsonReader
    {
        internal const int DepthMax = 64;

        private readonly string text;
        private int at;

        private JsonReader(string text)
        {
            this.text = text;
        }

        /// <summary>The value that the text is.</summary>
        /// <exception cref="FormatException">It is none; says where.</exception>
        internal static object Read(string text)
        {
            var reader = new JsonReader(text);
            reader.SkipSpace();
            object value = reader.Value(0);
            reader.SkipSpace();
            if (reader.at != text.Length) throw reader.Wrong("something follows the value");
            return value;
        }

        private object Value(int depth)
        {
            if (depth > DepthMax) throw Wrong("it is nested too deeply");
            if (at == text.Length) throw Wrong("a value is missing");
            switch (text[at])
            {
                case '{': return Members(depth);
                case '[': return Items(depth);
                case '"': return Quoted();
                case 't': return Word("true", true);
                case 'f': return Word("false", false);
                case 'n': return Word("null", null);
                default: return Number();
            }
        }

        private Dictionary<string, object> Members(int depth)
        {
            var members = new Dictionary<string, object>(StringComparer.Ordinal);
            at++;
            SkipSpace();
            if (Skipped('}')) return members;
            while (true)
            {
                if (at == text.Length || text[at] != '"') throw Wrong("a name in quotes is missing");
                string name = Quoted();
                SkipSpace();
                if (!Skipped(':')) throw Wrong("a colon is missing");
                SkipSpace();
                object value = Value(depth + 1);
                if (members.ContainsKey(name)) throw Wrong("the member " + name + " comes twice");
                members.Add(name, value);
                SkipSpace();
                if (Skipped('}')) return members;
                if (!Skipped(',')) throw Wrong("a comma or } is missing");
                SkipSpace();
            }
        }

        private List<object> Items(int depth)
        {
            var items = new List<object>();
            at++;
            SkipSpace();
            if (Skipped(']')) return items;
            while (true)
            {
                items.Add(Value(depth + 1));
                SkipSpace();
                if (Skipped(']')) return items;
                if (!Skipped(',')) throw Wrong("a comma or ] is missing");
                SkipSpace();
            }
        }

        private string Quoted()
        {
            int start = ++at;
            while (at < text.Length && text[at] != '"' && text[at] != '\\' && text[at] >= ' ' && !char.IsSurrogate(text[at])) at++;
            if (at < text.Length && text[at] == '"') return text.Substring(start, at++ - start); // most are plain
            var read = new StringBuilder(text, start, at - start, Math.Max(16, 2 * (at - start)));
            while (true)
            {
                if (at == text.Length) throw Wrong("the closing quote is missing");
                char letter = text[at++];
                if (letter == '"') break;
                if (letter < ' ') throw Wrong("a control character is not escaped");
                read.Append(letter == '\\' ? Escaped() : letter);
            }
            CheckSurrogates(read);
            return read.ToString();
        }

        private char Escaped()
        {
            if (at == text.Length) throw Wrong("the closing quote is missing");
            char letter = text[at++];
            switch (letter)
            {
                case '"': case '\\': case '/': return letter;
                case 'b': return '\b';
                case 'f': return '\f';
                case 'n': return '\n';
                case 'r': return '\r';
                case 't': return '\t';
                case 'u': return Unicode();
                default: throw Wrong("there is no escape \\" + letter);
            }
        }

        private char Unicode()
        {
            int code = 0;
            for (int i = 0; i < 4; i++, at++)
            {
                int digit = at < text.Length ? Uri.IsHexDigit(text[at]) ? Convert.ToInt32(text[at].ToString(), 16) : -1 : -1;
                if (digit < 0) throw Wrong("\\u needs four digits");
                code = code * 16 + digit;
            }
            return (char)code;
        }

        private void CheckSurrogates(StringBuilder read)
        {
            for (int i = 0; i < read.Length; i++)
            {
                if (!char.IsSurrogate(read[i])) continue;
                if (!char.IsHighSurrogate(read[i]) || i + 1 == read.Length || !char.IsLowSurrogate(read[i + 1]))
                    throw Wrong("half of a surrogate pair stands alone");
                i++;
            }
        }

        private JsonNumber Number()
        {
            int start = at;
            Skipped('-');
            if (!Skipped('0')) Digits();
            if (Skipped('.')) Digits();
            if (Skipped('e') || Skipped('E'))
            {
                if (!Skipped('+')) Skipped('-');
                Digits();
            }
            return new JsonNumber(text.Substring(start, at - start));
        }

        private void Digits()
        {
            int start = at;
            while (at < text.Length && text[at] >= '0' && text[at] <= '9') at++;
            if (at == start) throw Wrong("a value or a digit is missing");
        }

        private object Word(string word, object value)
        {
            if (string.CompareOrdinal(text, at, word, 0, word.Length) != 0) throw Wrong("this is no value");
            at += word.Length;
            return value;
        }

        private bool Skipped(char letter)
        {
            if (at == text.Length || text[at] != letter) return false;
            at++;
            return true;
        }

        private void SkipSpace()
        {
            while (at < text.Length && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r')) at++;
        }

        private FormatException Wrong(string why)
        {
            return new FormatException("not JSON: " + why + ", at character " + at.ToString(CultureInfo.InvariantCulture));
        }
    }
}
