"""`lazydelta kql`."""

from __future__ import annotations

import codecs
import csv
import json
import os
import pty
import select
import signal
import time
from pathlib import Path

import psutil
import pytest

from lazydelta.cli.kql_completion import candidates
from lazydelta.cli.line_history import history_file
from tests.support.command_line import COMMAND, Run, environment
from tests.support.kql_tables import telemetry_table
from tests.support.kusto import ENDLESS
from tests.support.row_tables import eventually

FIRST, MORE = "kql> ", "   > "
CTRL_C = "\x03"
BUSY = "no prompt: the query works"
COLUMNS = {"Telemetry": ["device_id", "number", "timestamp"], "devices": ["id"]}


@pytest.fixture(scope="module")
def telemetry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return telemetry_table(tmp_path_factory.mktemp("kql") / "TelemetryDelta")


def test_a_pipe_gets_csv_with_a_header(run: Run, telemetry: Path) -> None:
    query = (
        "external_table('TelemetryDelta') | where number < 2 | sort by number asc | project number, device_id"
    )
    ended = run("kql", telemetry, query)
    assert (ended.exit_code, ended.err) == (0, "")
    assert list(csv.reader(ended.lines)) == [["number", "device_id"], ["0", "sensor-40"], ["1", "sensor-41"]]


def test_json_has_dynamic_values_as_they_are_and_timespans_as_text(run: Run, telemetry: Path) -> None:
    query = "t | take 1 | project a = dynamic({'k': [1, null]}), s = 1d + 2ms, n = long(null), e = ''"
    ended = run("kql", telemetry, query, "--json")
    assert json.loads(ended.out) == {"a": {"k": [1, None]}, "s": "1.00:00:00.0020000", "n": None, "e": ""}


def test_the_table_has_these_names(run: Run, telemetry: Path) -> None:
    for name in ("t", "this", "TelemetryDelta", "Other"):
        ended = run("kql", telemetry, f"{name} | count", "--name", "Other")
        assert ended.lines == ["Count", "1440"], ended.err


def test_another_table_is_joined(run: Run, telemetry: Path) -> None:
    query = "t | join kind=inner (d | where number < 3) on number | count"
    assert run("kql", telemetry, query, "--table", f"d={telemetry}").lines == ["Count", "3"]


def test_a_query_is_read_from_stdin(run: Run, telemetry: Path) -> None:
    ended = run("kql", telemetry, stdin=b"// how many\nt\n| count\n")
    assert (ended.exit_code, ended.lines) == (0, ["Count", "1440"])


def test_parameters_are_given_by_name(run: Run, telemetry: Path) -> None:
    query = "declare query_parameters(most:long); t | where number < most | count"
    assert run("kql", telemetry, query, "--parameter", "most=5").lines == ["Count", "5"]
    assert run("kql", telemetry, query).exit_code == 2
    assert run("kql", telemetry, query, "--parameter", "most").exit_code == 2


def test_explain_tells_the_sql_what_was_pushed_and_what_was_read(run: Run, telemetry: Path) -> None:
    ended = run("kql", telemetry, "t | where timestamp >= datetime(2026-02-10 23:00) | count", "--explain")
    assert ended.lines == ["Count", "60"]
    for said in ("SQL", "pushed", "timestamptz '2026-02-10 23:00:00+00'", "1 row groups of 1 files", "bytes"):
        assert said in ended.err


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("t | wher number > 1", "did you mean where?"),
        ("t | where Number > 1", "did you mean number?"),
        ("tt", "did you mean t?"),
        (".drop table t", "only queries run here"),
        ("", "the query is empty"),
    ],
)
def test_a_wrong_query_is_told_with_exit_code_2(run: Run, telemetry: Path, query: str, said: str) -> None:
    ended = run("kql", telemetry, query)
    assert (ended.exit_code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert said in ended.err


def test_a_file_is_written(run: Run, telemetry: Path, tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    assert run("kql", telemetry, "t | count", "--output", target).exit_code == 0
    assert target.read_text() == "Count\n1440\n"


def test_a_prompt_asks_completes_goes_on_after_errors_and_keeps_its_history(
    telemetry: Path, tmp_path: Path
) -> None:
    typed = [
        ("t | whe\tnumber < 3\n", "where", MORE),  # the tab completes the operator
        ("| project num\t\n", "number", MORE),
        ("\n", "     0\n     1\n     2", FIRST),
        ("t | wher x\n", "wher", MORE),
        ("\n", "did you mean where?", FIRST),
        (f"not a query{CTRL_C}", "^C", FIRST),
        ("#tables\n", "TelemetryDelta", FIRST),
        ("#explain\n", "explain is on", FIRST),
        ("t | count\n", "count", MORE),
        ("\n", "1440", FIRST),
        ("\x04", "", ""),
    ]
    code, shown = _at_a_terminal([*COMMAND, "kql", str(telemetry)], typed, XDG_STATE_HOME=str(tmp_path))
    assert code == 0, shown
    history = (tmp_path / "lazydelta" / "kql_history").read_text()
    assert "t | where number < 3" in history
    assert (tmp_path / "lazydelta" / "kql_history").stat().st_mode & 0o077 == 0


def test_ctrl_c_ends_a_query_that_runs_and_the_prompt_goes_on(telemetry: Path, tmp_path: Path) -> None:
    typed = [
        (f"{ENDLESS}\n", "summarize", MORE),
        ("\n", "", BUSY),
        (CTRL_C, "the query was ended", FIRST),
        ("t | count\n", "count", MORE),
        ("\n", "1440", FIRST),
        ("#quit\n", "", ""),
    ]
    code, shown = _at_a_terminal([*COMMAND, "kql", str(telemetry)], typed, XDG_STATE_HOME=str(tmp_path))
    assert code == 0, shown


@pytest.mark.parametrize(
    ("before", "word", "expected"),
    [
        ("Tele", "Tele", ["Telemetry"]),
        (
            "Telemetry | proj",
            "proj",
            ["project", "project-away", "project-keep", "project-rename", "project-reorder"],
        ),
        ("Telemetry | where num", "num", ["number"]),
        ("Telemetry | extend xyz = 1 | where xy", "xy", ["xyz"]),
        ("external_table('de", "de", ["devices"]),
        ("Telemetry | join (de", "de", ["devices"]),
        ("Telemetry | summarize make_l", "make_l", ["make_list"]),
        ("#sch", "#sch", ["#schema"]),
        ("#schema dev", "dev", ["devices"]),
        ("Telemetry | where zzz", "zzz", []),
    ],
)
def test_what_may_follow_is_suggested(before: str, word: str, expected: list[str]) -> None:
    assert candidates(before, word, COLUMNS) == expected


def test_the_history_is_kept_where_the_system_keeps_state() -> None:
    assert history_file({"HOME": "/mine"}) == Path("/mine/.local/state/lazydelta/kql_history")
    assert history_file({"HOME": "/mine", "XDG_STATE_HOME": "/s"}) == Path("/s/lazydelta/kql_history")


def _at_a_terminal(command: list[str], typed: list[tuple[str, str, str]], **more: str) -> tuple[int, str]:
    """Type texts; each shall show something and end with a prompt, or have it work; unless that is empty."""
    process, leader = pty.fork()  # whose terminal it is, so that Ctrl-C is a signal there
    if process == 0:
        os.execve(command[0], command, environment(TERM="xterm", **more))
    try:
        shown = _seen(leader, "", FIRST)
        assert shown.endswith(FIRST), shown  # what is typed before is not for the prompt
        for text, expected, prompt in typed:
            used = _seconds_used(process)
            os.write(leader, text.encode())
            if prompt == BUSY:
                assert eventually(lambda used=used: _seconds_used(process) > used + 0.5)
                continue
            if text.endswith(CTRL_C) and text != CTRL_C:
                _press_until_seen(leader)
            shown += (part := _seen(leader, expected, prompt))
            assert expected in part.replace("\r", ""), shown[-3000:]
        code = _exit_code(process)
    except BaseException:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        raise
    finally:
        os.close(leader)
    return code, shown


def _press_until_seen(leader: int) -> None:
    """Ctrl-C again where it went unseen: Python takes a signal just before it waits at the next one."""
    while not select.select([leader], [], [], 5.0)[0]:
        os.write(leader, CTRL_C.encode())


def _seconds_used(process: int) -> float:
    """Of the processors, by a process."""
    try:
        return psutil.Process(process).cpu_times().user
    except psutil.NoSuchProcess:
        return 0.0


def _exit_code(process: int, seconds: float = 60.0) -> int:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    raise AssertionError("the prompt does not end")


def _seen(leader: int, expected: str, prompt: str, seconds: float = 240.0) -> str:
    """What is shown until the text stands there, with the prompt after it."""
    shown, until = "", time.monotonic() + seconds
    decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end within a character
    while time.monotonic() < until:
        plain = shown.replace("\r", "")
        if expected in plain and plain.endswith(prompt) and (expected or prompt):
            break
        ready, _, _ = select.select([leader], [], [], 0.2)
        if not ready and not (expected or prompt):
            break
        if ready:
            try:
                shown += decoder.decode(os.read(leader, 65536))
            except OSError:  # the process is gone
                break
    return shown


def test_json_is_one_array_however_many_rows_there_are(run: Run, telemetry: Path) -> None:
    for query, count in (("t | project number, d = pack_array(number)", 1440), ("t | take 0", 0)):
        ended = run("kql", str(telemetry), query, "--format", "json")
        assert (ended.exit_code, ended.err) == (0, "")
        rows = json.loads(ended.out)
        assert len(rows) == count
        assert all(row == {"number": row["number"], "d": [row["number"]]} for row in rows)
