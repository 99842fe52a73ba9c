"""What the entry point has in place before a command is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROBE = """
import sys
sys.argv = ["lazydelta", *sys.argv[1:]]
from lazydelta.cli import app, start

def run(arguments):
    import pyarrow as pa
    assert pa.array([1, 2]).to_pylist() == [1, 2] and pa.scalar(False).as_py() is False
    print("pandas" in sys.modules)

app.run = run
start.main()
"""


@pytest.mark.parametrize(("command", "is_there"), [("files", "False"), ("sql", "False"), ("ingest", "True")])
def test_arrow_brings_pandas_only_where_a_command_may_need_it(command: str, is_there: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, command], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.split() == [is_there], done.stderr
