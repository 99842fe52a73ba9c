"""Which allocator Arrow uses in this process: one that gives memory back where many threads decode.

Why: of Arrow's allocators mimalloc keeps what each thread has freed to that thread. Sixty scans of rows at
once took 870 MB and 6 s with it, 480 MB and 2.5 s once Python's side of Arrow had jemalloc (measured, pyarrow
26). Arrow's inside goes on with what it chose when it was loaded; ARROW_DEFAULT_MEMORY_POOL=jemalloc, set
before, moves that, too: 200 MB. One scan decodes as fast with either.
Contract: only where Arrow chose mimalloc by itself: whoever sets ARROW_DEFAULT_MEMORY_POOL, or another pool,
keeps it. Batches of either pool live side by side.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

POOL_VARIABLE = "ARROW_DEFAULT_MEMORY_POOL"


def prefer_lean_pool(environment: Mapping[str, str]) -> None:
    """Let Arrow use jemalloc from now on, where it is there and nobody has chosen."""
    is_chosen = POOL_VARIABLE in environment or pa.default_memory_pool().backend_name != "mimalloc"
    if not is_chosen and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
