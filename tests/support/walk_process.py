"""What the code passes through for one call, counted in a process of its own.

`python -m tests.support.walk_process open|files|sql|kql TABLE` prints JSON: how many functions of the package
are called, in how many of its files, how deep they stack in the caller's thread, and how many of its modules
are loaded by then. Calls in the package's own threads count, too. Comprehensions and lambdas do not count;
what runs while a module is imported does not, either.

What depends on the machine is fixed: the folder counts as a quick one, DuckDB has one thread, and no garbage
is collected on the way.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import lazydelta as ld
from lazydelta import limits

PACKAGE = str(Path(ld.__file__).parent) + "/"


def main(walk: str, url: str) -> None:
    """Count one walk and print its figures."""
    limits.QUICK_READ_SECONDS = 60.0
    if walk in ("sql", "kql"):
        _give_duckdb_one_thread()
    table = None if walk == "open" else ld.open(url)
    walks: dict[str, Callable[[], object]] = {
        "open": lambda: ld.open(url),
        "files": lambda: next(table.scan("value > 20", limit=100).files()),
        "sql": lambda: table.sql("select count(*) from t where value > 20").fetchall(),
        "kql": lambda: table.kql("t | where value > 20 | count").fetchall(),
    }
    print(json.dumps(counted(walks[walk])))


def counted(call: Callable[[], object]) -> dict[str, int]:
    """The figures of a call."""
    functions: set[CodeType] = set()
    main_thread, depth = threading.get_ident(), 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth
        if event != "call" or not _is_function(frame.f_code):
            return
        stacked, above = 0, frame
        while above is not None:
            if above.f_code.co_name == "<module>" and above.f_code.co_filename.startswith(PACKAGE):
                return  # an import is under way
            stacked += _is_function(above.f_code)
            above = above.f_back
        functions.add(frame.f_code)
        if threading.get_ident() == main_thread:
            depth = max(depth, stacked)

    gc.disable()
    threading.setprofile(count)
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {
        "functions": len(functions),
        "files": len({code.co_filename for code in functions}),
        "depth": depth,
        "modules": sum(name.split(".")[0] == "lazydelta" for name in sys.modules),
    }


def _is_function(code: CodeType) -> bool:
    return code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<")


def _give_duckdb_one_thread() -> None:
    """Otherwise it calls back on threads of its own, which no profiler sees."""
    import duckdb

    connect = duckdb.connect

    def connect_with_one_thread(database: str, config: dict[str, Any]) -> object:
        return connect(database, config={**config, "threads": "1"})

    duckdb.connect = connect_with_one_thread


if __name__ == "__main__":
    main(*sys.argv[1:])
