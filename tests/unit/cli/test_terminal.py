"""On a terminal: aligned rows under a header, as they come, nothing cut."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
from pathlib import Path

from lazydelta.cli.text import human_bytes, human_time, one_line
from tests.support.table_builder import TableBuilder
from tests.unit.cli.conftest import COMMAND, environment


def test_files_are_a_table_on_a_terminal(table: TableBuilder) -> None:
    lines = on_terminal("files", table.path)
    assert lines[0].split() == ["size", "modification_time", "partition_values", "deletion_vector", "path"]
    rows = {line.split()[-1]: line for line in lines[1:]}
    at = lines[0].index("path")
    assert rows["e"] == f"{'1.0 KB  2026-02-02 02:40:00  date=2026-02-09':<{at}}e"
    assert "2 rows deleted" in rows["d"]
    assert "x\\ny" in rows


def test_columns_and_json_work_on_a_terminal_too(table: TableBuilder) -> None:
    lines = on_terminal("files", table.path, "--columns", "path,size")
    assert lines[0].split() == ["path", "size"]
    assert on_terminal("files", table.path, "--json", "--limit", "1")[0].startswith('{"path":')


def test_a_long_path_is_never_cut(tmp_path: Path) -> None:
    path = "part=" + "x" * 300
    builder = TableBuilder(tmp_path).commit(adds=[path])
    assert on_terminal("files", builder.path)[-1].endswith(path)


def test_history_is_a_table_on_a_terminal(table: TableBuilder) -> None:
    lines = on_terminal("history", table.path)
    assert lines[0].split()[:3] == ["version", "timestamp", "operation"]
    assert [line.split()[0] for line in lines[1:]] == ["2", "1", "0"]
    assert lines[2].index("yes") == lines[0].index("checkpoint")


def test_info_keeps_its_words_on_a_terminal(table: TableBuilder) -> None:
    assert "files             4" in on_terminal("info", table.path)


def test_the_first_rows_show_before_the_scan_ends(large_table: Path) -> None:
    """A terminal holds a few KiB, so that nobody who collects first gets past the first screen."""
    parent, child = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "files", str(large_table)],
        stdout=child,
        stderr=subprocess.PIPE,
        env=environment(TERM="xterm"),
    ) as process:
        os.close(child)
        assert b"modification_time" in os.read(parent, 4096)
        process.send_signal(signal.SIGINT)
        while _read(parent):
            pass
        assert process.wait(60) == 130
    os.close(parent)


def test_sizes_and_times_are_for_people() -> None:
    assert [human_bytes(count) for count in (0, 999, 1000, 999_949, 999_950, 3_100_000, 10**18, 10**21)] == [
        "0 B",
        "999 B",
        "1.0 KB",
        "999.9 KB",
        "1.0 MB",
        "3.1 MB",
        "1.0 EB",
        "1,000.0 EB",
    ]
    assert human_time(1_770_000_000_000) == "2026-02-02 02:40:00"
    assert human_time(10**18) == "1000000000000000000"
    assert one_line("a\tb\x1b\x7f\x9bc\\") == "a\\tb\\x1b\\x7f\\x9bc\\"


def on_terminal(*arguments: str | Path) -> list[str]:
    """What a person sees, without styles."""
    parent, child = pty.openpty()
    command = [*COMMAND, *map(str, arguments)]
    with subprocess.Popen(command, stdout=child, stderr=child, env=environment(TERM="xterm")) as process:
        os.close(child)
        shown = b""
        while piece := _read(parent):
            shown += piece
        assert process.wait(60) == 0, shown
    os.close(parent)
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r\n", "\n").splitlines()


def _read(terminal: int) -> bytes:
    """Nothing once the other side is closed, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
