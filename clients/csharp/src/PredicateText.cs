using System;
using System.Collections.Generic;
using System.Linq;

namespace LazyDelta
{
    /// <summary>The short JSON form of a filter as SQL text, which is what Delta Sharing's <c>predicateHints</c> are.</summary>
    internal static class PredicateText
    {
        private static readonly Dictionary<string, string> Operators = new Dictionary<string, string>
        {
            { "eq", "=" }, { "ne", "<>" }, { "gt", ">" }, { "gte", ">=" }, { "lt", "<" }, { "lte", "<=" }, { "like", "LIKE" }
        };

        /// <summary>Conditions, all of which hold. Hints may be left out: an empty list, which SQL cannot spell, is.</summary>
        /// <exception cref="FormatException">The filter is not of that form.</exception>
        internal static List<string> Conditions(Dictionary<string, object> filter)
        {
            return filter.SelectMany(member => OfColumn(Column(member.Key), member.Value)).Where(condition => condition != null).ToList();
        }

        private static IEnumerable<string> OfColumn(string column, object wanted)
        {
            if (wanted is Dictionary<string, object> conditions)
            {
                if (conditions.Count == 0) throw new FormatException("the column " + column + " has no condition");
                return conditions.Select(condition => OfWord(column, condition.Key, condition.Value));
            }
            return new[] { wanted is List<object> values ? In(column, values, false) : OfWord(column, "eq", wanted) };
        }

        private static string OfWord(string column, string word, object value)
        {
            if (value == null && (word == "eq" || word == "ne")) return column + (word == "eq" ? " IS NULL" : " IS NOT NULL");
            if (word == "is_null" && value is bool isNull) return column + (isNull ? " IS NULL" : " IS NOT NULL");
            if (word == "in" || word == "not_in")
                return In(column, value as List<object> ?? throw new FormatException(word + " needs a list"), word == "not_in");
            if (!Operators.TryGetValue(word, out string sign)) throw new FormatException("there is no condition " + word);
            return column + " " + sign + " " + Literal(value);
        }

        private static string In(string column, List<object> values, bool isNot)
        {
            if (values.Count == 0) return null;
            return column + (isNot ? " NOT IN (" : " IN (") + string.Join(", ", values.Select(Literal)) + ")";
        }

        private static string Literal(object value)
        {
            if (value is string text) return "'" + text.Replace("'", "''") + "'";
            if (value is JsonNumber number) return number.Text;
            if (value is bool flag) return flag ? "TRUE" : "FALSE";
            throw new FormatException("a value is neither text, number nor true or false");
        }

        private static string Column(string name)
        {
            bool isPlain = name.Length > 0 && name.All(letter => letter == '_' || (letter < 128 && char.IsLetterOrDigit(letter)));
            return isPlain && !char.IsDigit(name[0]) ? name : "`" + name.Replace("`", "``") + "`";
        }
    }
}
