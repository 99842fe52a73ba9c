using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;

namespace LazyDelta
{
    /// <summary>The functions and structures of delta_lazy.h.</summary>
    internal static unsafe class DeltaLazyLibrary
    {
        private const string Name = "delta_lazy";
        private static readonly DateTime Epoch = new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc);
        private static readonly IReadOnlyDictionary<string, string> NoPartitions = new Dictionary<string, string>();

        // C's bool is one byte; a delegate returns four unless told otherwise.
        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        [return: MarshalAs(UnmanagedType.I1)]
        internal delegate bool PathCallback(byte* path, long size);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        [return: MarshalAs(UnmanagedType.I1)]
        internal delegate bool NativeFileCallback(NativeFile* file, IntPtr userData);

        [DllImport(Name, EntryPoint = "delta_scan_lazy", CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ScanLazy(byte[] tablePath, byte[] predicateJson, UIntPtr limit, PathCallback callback);

        [DllImport(Name, EntryPoint = "delta_scan_files", CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ScanFiles(byte[] tablePath, byte[] optionsJson, NativeFileCallback callback, IntPtr userData);

        [DllImport(Name, EntryPoint = "delta_last_error", CallingConvention = CallingConvention.Cdecl)]
        private static extern byte* LastError();

        [DllImport(Name, EntryPoint = "delta_version", CallingConvention = CallingConvention.Cdecl)]
        private static extern byte* NativeVersion();

        /// <summary>Of the library that is loaded.</summary>
        internal static string Version()
        {
            return Text(NativeVersion());
        }

        /// <summary>What went wrong in this thread's latest call.</summary>
        internal static DeltaException Failure(int code)
        {
            DeltaCode known = Enum.IsDefined(typeof(DeltaCode), code) ? (DeltaCode)code : DeltaCode.Error;
            return new DeltaException(known, Text(LastError()));
        }

        /// <summary>The library is not there, or another's; null where the problem is something else.</summary>
        internal static DeltaException Missing(Exception problem)
        {
            if (!(problem is DllNotFoundException || problem is EntryPointNotFoundException || problem is BadImageFormatException)) return null;
            return DeltaException.Because(
                DeltaCode.NoRuntime, "libdelta_lazy.so cannot be loaded: " + problem.Message, "delta_lazy",
                "build it by make capi, and name its folder in LD_LIBRARY_PATH or put it beside the program", problem);
        }

        /// <summary>UTF-8 with its zero byte; null stays null.</summary>
        internal static byte[] Bytes(string text)
        {
            if (text == null) return null;
            if (text.IndexOf('\0') >= 0) throw new ArgumentException("the text holds a zero character, which C cannot read");
            return Encoding.UTF8.GetBytes(text + "\0");
        }

        /// <summary>A copy of what C owns.</summary>
        internal static string Text(byte* text)
        {
            if (text == null) return null;
            int length = 0;
            while (text[length] != 0) length++;
            return Text(text, length);
        }

        /// <summary>A copy of the file.</summary>
        internal static DeltaFile Copy(NativeFile* file)
        {
            DateTime modified = Epoch.AddMilliseconds(file->ModificationTime);
            return new DeltaFile(Text(file->Path), file->Size, Partitions(file), modified, Vector(file->DeletionVector));
        }

        private static IReadOnlyDictionary<string, string> Partitions(NativeFile* file)
        {
            int count = (int)file->PartitionCount;
            if (count == 0) return NoPartitions;
            var values = new Dictionary<string, string>(count);
            for (int i = 0; i < count; i++)
            {
                NativePartitionValue* value = file->PartitionValues + i;
                values[Text(value->Name)] = value->Value == null ? null : Text(value->Value, (int)value->ValueLength);
            }
            return values;
        }

        private static DeltaDeletionVector Vector(NativeDeletionVector* vector)
        {
            if (vector == null) return null;
            int? offset = vector->Offset < 0 ? (int?)null : (int)vector->Offset;
            return new DeltaDeletionVector(
                Text(vector->StorageType), Text(vector->PathOrInlineDv), offset, vector->SizeInBytes, vector->Cardinality);
        }

        private static string Text(byte* text, int length)
        {
            return length == 0 ? "" : Encoding.UTF8.GetString(text, length);
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct NativeFile
        {
            internal byte* Path;
            internal long Size;
            internal long ModificationTime;
            internal UIntPtr PartitionCount;
            internal NativePartitionValue* PartitionValues;
            internal NativeDeletionVector* DeletionVector;
            internal byte* Stats;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct NativePartitionValue
        {
            internal byte* Name;
            internal byte* Value;
            internal UIntPtr ValueLength;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct NativeDeletionVector
        {
            internal byte* StorageType;
            internal byte* PathOrInlineDv;
            internal long Offset;
            internal long SizeInBytes;
            internal long Cardinality;
        }
    }
}
