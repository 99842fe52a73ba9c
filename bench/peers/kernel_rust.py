"""Delta kernel (Rust) through delta-kernel-rust-sharing-wrapper: the first rows of the newest file."""

import delta_kernel_rust_sharing_wrapper as kernel
from measure import Measurement, arguments, cannot

table, query = arguments()
if query != "hundred":
    cannot("kernel-rust", query, "its Python wrapper gives rows, not files")
else:
    url = f"file://{table}/"
    run = Measurement("kernel-rust", query)
    run.start()
    interface = kernel.PythonInterface(url)
    snapshot = kernel.Table(url).snapshot(interface)
    batch = next(iter(kernel.ScanBuilder(snapshot).build().execute(interface)))
    assert batch.num_rows
    run.saw(1)
    run.finish(files=None, complete=False, note="first rows")
