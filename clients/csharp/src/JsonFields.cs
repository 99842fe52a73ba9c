using System;
using System.Collections.Generic;
using System.Globalization;

namespace LazyDelta
{
    /// <summary>Members of JSON objects, in the type that is expected of them.</summary>
    internal static class JsonFields
    {
        /// <summary>The object, or null where there is none.</summary>
        internal static Dictionary<string, object> Object(Dictionary<string, object> of, string name)
        {
            return As<Dictionary<string, object>>(of, name, "an object");
        }

        /// <summary>The text, or null where there is none.</summary>
        internal static string Text(Dictionary<string, object> of, string name)
        {
            return As<string>(of, name, "text");
        }

        /// <summary>The whole number, or null where there is none.</summary>
        internal static long? Whole(Dictionary<string, object> of, string name)
        {
            if (!of.TryGetValue(name, out object value) || value == null) return null;
            // Some servers quote 64-bit numbers, as protocol buffers do in JSON.
            string spelled = value is JsonNumber number ? number.Text : value as string;
            if (long.TryParse(spelled, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out long whole)) return whole;
            throw new FormatException("the member " + name + " is not a whole number");
        }

        /// <summary>What must be there.</summary>
        internal static T Needed<T>(T value, string name)
        {
            if (value == null) throw new FormatException("the member " + name + " is missing");
            return value;
        }

        private static T As<T>(Dictionary<string, object> of, string name, string kind)
            where T : class
        {
            if (!of.TryGetValue(name, out object value) || value == null) return null;
            return value as T ?? throw new FormatException("the member " + name + " is not " + kind);
        }
    }
}
