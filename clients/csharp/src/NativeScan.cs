using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace LazyDelta
{
    /// <summary>One scan in process: a thread that runs it, and a queue that the caller takes from.</summary>
    /// <remarks>The thread knows the queue alone, so that an enumerator that nobody disposed of ends its scan when it is collected.</remarks>
    internal sealed class NativeScan : IAsyncEnumerator<DeltaFile>
    {
        private static readonly unsafe DeltaLazyLibrary.NativeFileCallback OnFile = Found;

        private static int runningCount;

        private readonly byte[] tablePath;
        private readonly byte[] optionsJson;
        private readonly CancellationToken cancelled;
        private readonly CancellationToken disposed;
        private readonly IDisposable link; // of tokens, if there is one
        private readonly FileQueue queue = new FileQueue(NativeLazyDeltaScanner.FilesAheadMax);
        private CancellationTokenRegistration onCancel;
        private CancellationTokenRegistration onDispose;
        private bool isBegun;
        private bool isLeft;

        internal NativeScan(byte[] tablePath, byte[] optionsJson, CancellationToken cancelled, IDisposable link, CancellationToken disposed)
        {
            this.link = link;
            this.tablePath = tablePath;
            this.optionsJson = optionsJson;
            this.cancelled = cancelled;
            this.disposed = disposed;
        }

        /// <summary>How many scans have a thread.</summary>
        internal static int RunningCount
        {
            get { return Volatile.Read(ref runningCount); }
        }

        /// <summary>Ends the scan of who forgot to.</summary>
        ~NativeScan()
        {
            queue.Stop();
        }

        /// <summary>The file.</summary>
        public DeltaFile Current { get; private set; }

        /// <summary>On to the next; false at the end.</summary>
        public ValueTask<bool> MoveNextAsync()
        {
            Begin();
            if (isLeft) return new ValueTask<bool>(false);
            CheckStopped();
            Current = queue.Take(out Task wait);
            return wait == null ? new ValueTask<bool>(Told()) : new ValueTask<bool>(Awaited(wait));
        }

        /// <summary>Ends the scan.</summary>
        public ValueTask DisposeAsync()
        {
            isLeft = true;
            queue.Stop();
            onCancel.Dispose();
            onDispose.Dispose();
            link?.Dispose();
            GC.SuppressFinalize(this);
            return default(ValueTask);
        }

        [System.Runtime.CompilerServices.MethodImpl(System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]
        private static unsafe bool Found(DeltaLazyLibrary.NativeFile* file, IntPtr userData)
        {
            var queue = (FileQueue)GCHandle.FromIntPtr(userData).Target;
            try
            {
                return queue.Put(DeltaLazyLibrary.Copy(file));
            }
            catch (Exception problem) // nothing may be thrown through C
            {
                queue.End(problem);
                return false;
            }
        }

        private void Begin()
        {
            if (isBegun) return;
            isBegun = true;
            onCancel = cancelled.Register(queue.Stop);
            onDispose = disposed.Register(queue.Stop);
            if (cancelled.IsCancellationRequested || disposed.IsCancellationRequested) return;
            Start(tablePath, optionsJson, queue);
        }

        private static void Start(byte[] tablePath, byte[] optionsJson, FileQueue queue)
        {
            new Thread(() => Run(tablePath, optionsJson, queue)) { IsBackground = true, Name = "lazydelta-scan" }.Start();
        }

        private static void Run(byte[] tablePath, byte[] optionsJson, FileQueue queue)
        {
            GCHandle handle = GCHandle.Alloc(queue);
            Interlocked.Increment(ref runningCount);
            try
            {
                int code = DeltaLazyLibrary.ScanFiles(tablePath, optionsJson, OnFile, GCHandle.ToIntPtr(handle));
                queue.End(code == 0 ? null : DeltaLazyLibrary.Failure(code));
            }
            catch (Exception problem)
            {
                queue.End(DeltaLazyLibrary.Missing(problem) ?? problem);
            }
            finally
            {
                handle.Free();
                Interlocked.Decrement(ref runningCount);
            }
        }

        private async Task<bool> Awaited(Task wait)
        {
            while (wait != null)
            {
                await wait.ConfigureAwait(false);
                CheckStopped();
                Current = queue.Take(out wait);
            }
            return Told();
        }

        private bool Told()
        {
            if (Current == null) CheckStopped(); // ended by a stop: not the end of the files
            return Current != null;
        }

        private void CheckStopped()
        {
            cancelled.ThrowIfCancellationRequested();
            if (disposed.IsCancellationRequested) throw new ObjectDisposedException(nameof(NativeLazyDeltaScanner));
        }
    }
}
