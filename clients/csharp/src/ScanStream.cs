using System;
using System.Collections.Generic;
using System.Threading;

namespace LazyDelta
{
    /// <summary>Files that each enumeration finds anew.</summary>
    internal sealed class ScanStream : IAsyncEnumerable<DeltaFile>
    {
        private readonly Func<CancellationToken, IDisposable, IAsyncEnumerator<DeltaFile>> begin;
        private readonly CancellationToken ofTheCall;

        /// <summary><paramref name="begin"/> takes the token of a scan and what it must dispose with itself, or null.</summary>
        internal ScanStream(Func<CancellationToken, IDisposable, IAsyncEnumerator<DeltaFile>> begin, CancellationToken ofTheCall)
        {
            this.begin = begin;
            this.ofTheCall = ofTheCall;
        }

        /// <summary>A new scan, which ends with either token.</summary>
        public IAsyncEnumerator<DeltaFile> GetAsyncEnumerator(CancellationToken cancellationToken = default(CancellationToken))
        {
            if (!ofTheCall.CanBeCanceled) return begin(cancellationToken, null);
            if (!cancellationToken.CanBeCanceled || cancellationToken == ofTheCall) return begin(ofTheCall, null);
            var either = CancellationTokenSource.CreateLinkedTokenSource(ofTheCall, cancellationToken);
            return begin(either.Token, either);
        }
    }
}
