"""Delta kernel (Rust) through delta-kernel-rust-sharing-wrapper: all columns, batch by batch."""

from collections.abc import Iterator

import delta_kernel_rust_sharing_wrapper as kernel
from rows_measure import first_rows


def rows(table: str) -> Iterator[int]:
    url = f"file://{table}/"
    interface = kernel.PythonInterface(url)
    snapshot = kernel.Table(url).snapshot(interface)
    for batch in kernel.ScanBuilder(snapshot).build().execute(interface):
        yield batch.num_rows


first_rows("kernel-rust", rows)
