using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace LazyDelta
{
    /// <summary>Between a thread that finds files and a caller who awaits them; holds a bounded number.</summary>
    internal sealed class FileQueue
    {
        private readonly object gate = new object();
        private readonly Queue<DeltaFile> files = new Queue<DeltaFile>();
        private readonly int filesMax;
        private TaskCompletionSource<bool> awaited; // by a caller who found nothing
        private bool isStopped; // nobody wants more
        private bool isEnded; // nothing more will come
        private Exception failure; // why it ended, if not well

        internal FileQueue(int filesMax)
        {
            this.filesMax = filesMax;
        }

        /// <summary>Add a file, once there is room; false when nobody wants it.</summary>
        internal bool Put(DeltaFile file)
        {
            TaskCompletionSource<bool> woken;
            lock (gate)
            {
                while (!isStopped && files.Count >= filesMax) Monitor.Wait(gate);
                if (isStopped) return false;
                files.Enqueue(file);
                woken = awaited;
                awaited = null;
            }
            woken?.TrySetResult(true);
            return true;
        }

        /// <summary>Nothing more will come.</summary>
        internal void End(Exception why)
        {
            TaskCompletionSource<bool> woken;
            lock (gate)
            {
                isEnded = true;
                failure = failure ?? why;
                woken = awaited;
                awaited = null;
            }
            woken?.TrySetResult(true);
        }

        /// <summary>Nobody wants more.</summary>
        internal void Stop()
        {
            TaskCompletionSource<bool> woken;
            lock (gate)
            {
                isStopped = true;
                files.Clear();
                woken = awaited;
                awaited = null;
                Monitor.PulseAll(gate);
            }
            woken?.TrySetResult(true);
        }

        /// <summary>A file, or null at the end; a task where one must be waited for: then ask again.</summary>
        internal DeltaFile Take(out Task wait)
        {
            lock (gate)
            {
                wait = null;
                if (files.Count > 0)
                {
                    DeltaFile file = files.Dequeue();
                    if (files.Count == filesMax / 2) Monitor.PulseAll(gate); // not for every file: waking costs
                    return file;
                }
                if (isStopped) return null;
                if (isEnded)
                {
                    if (failure != null) throw failure;
                    return null;
                }
                awaited = new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);
                wait = awaited.Task;
                return null;
            }
        }
    }
}
