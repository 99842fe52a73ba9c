"""Delta Sharing streams the files of a large table: `python -m bench.serve_sharing --files 100000`.

Why: a server must not hold what it sends; memory is to be that of a batch, however many files there are.
Contract: the server is a process of its own and serves two tables, one three times the other. Each is asked
for twice to warm up, then measured: the growth of resident memory over the warm server, at its peak; the time
to the first line and to the last; and once with a client that stalls after the first lines. Every answer is
counted. The verdict: the larger table takes at most `GROWTH_MAX_MB` more than the other.
"""

from __future__ import annotations

import argparse
import http.client
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.bars import save_bars
from bench.serving import forget_peak, http_server, status_mb
from bench.spec import TableSpec
from bench.tables import cached_table
from lazydelta.serve.sharing import PREFIX

GROWTH_MAX_MB = 16.0
STALLED_MAX_MB = 64.0  # what a scan of a checkpoint holds
_STALL_SECONDS = 3.0
_CAPABILITIES = "responseformat=delta;readerfeatures=deletionvectors;includeEndStreamAction=true"


class Streamed(msgspec.Struct, frozen=True, kw_only=True):
    """One answer."""

    files: int
    megabytes: float
    first_line_ms: float
    seconds: float
    growth_mb: float  # of the server, at its peak


def main() -> int:
    """Measure, tell, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    files = parser.parse_args().files
    tables = {name: _table(count) for name, count in (("small", files), ("large", 3 * files))}
    with http_server(tables) as (process_id, port):
        for name in ("small", "large", "small", "large"):
            _asked(process_id, port, name)
        found = {name: _asked(process_id, port, name) for name in tables}
        stalled_mb = _stalled(process_id, port)
    for name, one in found.items():
        rate = one.files / one.seconds
        print(f"{name}: {one.files:,} files, {one.megabytes:.0f} MB of lines in {one.seconds:.2f} s", end=" ")
        print(f"({rate:,.0f} files/s), first line after {one.first_line_ms:.0f} ms, +{one.growth_mb:.1f} MB")
    print(f"stalled client: +{stalled_mb:.1f} MB")
    extra = found["large"].growth_mb - found["small"].growth_mb
    print(f"three times the files take {extra:+.1f} MB more; at most {GROWTH_MAX_MB:.0f} MB are promised")
    megabytes = {f"{one.files:,} files": one.growth_mb for one in found.values()}
    rates = {f"{one.files:,} files": one.files / one.seconds for one in found.values()}
    growth = megabytes | {"stalled client": stalled_mb}
    print(save_bars("serve-sharing", {"growth of the server, MB": growth, "files a second": rates}))
    is_whole = found["small"].files >= files and found["large"].files >= 3 * files
    return 0 if is_whole and extra <= GROWTH_MAX_MB and stalled_mb <= STALLED_MAX_MB else 1


def _table(files: int) -> Path:
    return cached_table(TableSpec(files=files, order="spark", stats="json", checkpoint_dv_every=0)).path


def _asked(process_id: int, port: int, table: str) -> Streamed:
    """All files of a table, read and counted a chunk at a time."""
    before_mb = _reset(process_id)
    began = time.perf_counter()
    with _answer(port, table) as answer:
        first = answer.readline()
        first_line_ms = 1000 * (time.perf_counter() - began)
        files, size, last = 0, len(first), b""
        for line in answer:
            files += line.startswith(b'{"file"')
            size += len(line)
            last = line
    assert last.startswith(b'{"endStreamAction"') and b"errorMessage" not in last, last[:500]
    return Streamed(
        files=files,
        megabytes=size / 1e6,
        first_line_ms=first_line_ms,
        seconds=time.perf_counter() - began,
        growth_mb=_peak_mb(process_id) - before_mb,
    )


def _stalled(process_id: int, port: int) -> float:
    """How much the server grows for a client that reads one line and no more."""
    before_mb = _reset(process_id)
    with _answer(port, "large") as answer:
        answer.readline()
        time.sleep(_STALL_SECONDS)
        return _peak_mb(process_id) - before_mb


@contextmanager
def _answer(port: int, table: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    path = f"{PREFIX}/shares/lazydelta/schemas/main/tables/{table}/query"
    connection.request("POST", path, b"{}", {"delta-sharing-capabilities": _CAPABILITIES})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    try:
        yield answer
    finally:
        connection.close()


def _reset(process_id: int) -> float:
    """Set the high-water mark back; resident memory now."""
    forget_peak(process_id)
    return status_mb(process_id, "VmRSS")


def _peak_mb(process_id: int) -> float:
    return status_mb(process_id, "VmHWM")


if __name__ == "__main__":
    sys.exit(main())
