"""Every error has its exit code and tells what, where and fix on stderr; no secret is repeated."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lazydelta.cli.app import app
from tests.support.actions import protocol
from tests.support.command_line import Ended, Run, run_in_shell, run_inside, run_process
from tests.support.table_builder import TableBuilder

SECRET = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="
long = pytest.mark.long("one way out of every command: a representative is in the default suite")
ON_PIPES = ["files", *(pytest.param(name, marks=long) for name in ("explain", "info", "history"))]


def told(ended: Ended) -> list[str]:
    """The three lines of an error, which must be all of stderr."""
    what, where, fix = ended.err.splitlines()
    assert what.startswith("error: ")
    assert where.startswith("  where: ")
    assert fix.startswith("  fix:   ")
    return [what.removeprefix("error: "), where.removeprefix("  where: "), fix.removeprefix("  fix:   ")]


@pytest.mark.parametrize(
    ("arguments", "code"), [(["files", "nothing"], 3), (["files", "--nonsense"], 2), (["--version"], 0)]
)
def test_the_exit_code_is_that_of_the_process(arguments: list[str], code: int) -> None:
    assert run_process(*arguments).exit_code == code


def test_a_folder_without_a_log_is_exit_code_3(run: Run, tmp_path: Path) -> None:
    for command in ("files", "explain", "info", "history"):
        ended = run(command, tmp_path / "nothing")
        assert (ended.exit_code, ended.out) == (3, "")
        assert str(tmp_path) in told(ended)[1]


def test_a_version_that_is_too_new_is_exit_code_4(run: Run, table: TableBuilder) -> None:
    ended = run("files", table.path, "--version", "9")
    assert ended.exit_code == 4
    assert told(ended)[0] == "version 9 does not exist, the newest is 2"


def test_a_time_before_the_first_commit_is_exit_code_4(run: Run, table: TableBuilder) -> None:
    ended = run("info", table.path, "--timestamp", "2020-01-01")
    assert ended.exit_code == 4
    assert "2020-01-01" in told(ended)[0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda table: table.truncate("*2.json", 250),
        lambda table: table.append_to_commit(2, "this is not JSON\n"),
        lambda table: table.without_hint().clean_up(0).commit(adds=["z"]).delete_commit(2),
    ],
    ids=["a truncated line", "a line that is not JSON", "a gap"],
)
def test_a_damaged_log_is_exit_code_5(
    run: Run, table: TableBuilder, damage: Callable[[TableBuilder], object]
) -> None:
    damage(table)
    ended = run("files", table.path)
    assert ended.exit_code == 5
    assert "_delta_log" in told(ended)[1]


def test_an_unknown_reader_feature_is_exit_code_6_and_named(run: Run, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, protocol=protocol(["teleportation"])).commit(adds=["a"])
    ended = run("files", builder.path)
    assert ended.exit_code == 6
    assert "teleportation" in told(ended)[0]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--where", "colour = 1"], "colour"),
        (["--where", "value >"], "does not parse"),
        (["--columns", "pth"], "pth"),
        (["--strategy", "sideways"], "sideways"),
        (["--limit", "-1"], "-1"),
        (["--version", "1", "--timestamp", "2026-02-08"], "both"),
        (["--timestamp", "tomorrow"], "tomorrow"),
        (["--storage-option", "delta.batchsize=1"], "delta.batchsize"),
    ],
)
def test_a_wrong_request_is_exit_code_2(
    run: Run, table: TableBuilder, arguments: list[str], word: str
) -> None:
    ended = run("files", table.path, *arguments)
    assert (ended.exit_code, ended.out) == (2, "")
    assert word in told(ended)[0]


@pytest.mark.parametrize(
    "arguments",
    [
        ["files"],
        ["files", "t", "--limit", "many"],
        ["nonsense"],
        ["files", "t", "--nonsense"],
        ["history", "t", "--limit=-1"],
    ],
)
def test_wrong_arguments_are_exit_code_2_with_the_usage(run: Run, arguments: list[str]) -> None:
    ended = run(*arguments)
    assert (ended.exit_code, ended.out) == (2, "")
    assert ended.err.startswith("Usage: lazydelta")


def test_a_storage_option_without_a_value_is_not_repeated(run: Run, table: TableBuilder) -> None:
    ended = run("files", table.path, "--storage-option", "a=b", "--storage-option", SECRET.rstrip("="))
    assert ended.exit_code == 2
    assert SECRET.rstrip("=") not in ended.err
    assert told(ended)[0] == "--storage-option number 2 is not KEY=VALUE"


def test_a_control_character_in_an_error_cannot_drive_the_terminal(run: Run, tmp_path: Path) -> None:
    ended = run("files", tmp_path / "evil\x1b[2Jname\nfix: run this")
    assert ended.exit_code == 3
    assert "\x1b" not in ended.err
    told(ended)


def test_a_store_that_cannot_be_reached_is_exit_code_7(run: Run) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but nobody listens: connections are refused
        ended = run("files", "s3://bucket/table", *_options(unused.getsockname()[1]))
    assert ended.exit_code == 7
    assert "s3://bucket/table" in told(ended)[1]
    assert SECRET not in ended.err


def test_refused_credentials_are_exit_code_8(run: Run, forbidding_store: int) -> None:
    ended = run("info", "s3://bucket/table", *_options(forbidding_store), "--debug")
    assert ended.exit_code == 8
    assert "secret_access_key" in ended.err
    assert SECRET not in ended.err


def test_a_bug_keeps_its_traceback(table: TableBuilder, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import lazydelta.cli.arguments as arguments\n"
        "def fail(*_, **__): raise ZeroDivisionError('a bug')\n"
        "arguments.open_table = fail\n"
    )
    ended = run_process("files", table.path, PYTHONPATH=str(broken))
    assert ended.exit_code == 1
    assert "Traceback" in ended.err
    assert "ZeroDivisionError: a bug" in ended.err


@pytest.mark.parametrize("command", ON_PIPES)
def test_a_full_disk_is_an_error_and_not_a_bug(table: TableBuilder, command: str) -> None:
    ended = run_in_shell('exec "$@" >/dev/full', command, table.path)
    assert ended.exit_code == 1
    assert told(ended)[:2] == ["the output cannot be written: No space left on device", "stdout"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["--help"], pytest.param(["sidecar", "build", "--help"], marks=long)])
def test_help_on_a_full_disk_is_an_error_and_not_a_bug(arguments: list[str], unbuffered: str) -> None:
    ended = run_in_shell(f'PYTHONUNBUFFERED={unbuffered} exec "$@" >/dev/full', *arguments)
    assert ended.exit_code == 1
    assert told(ended)[:2] == ["the output cannot be written: No space left on device", "stdout"]


def test_local_variables_which_may_hold_secrets_are_never_shown() -> None:
    assert app.pretty_exceptions_show_locals is False


@pytest.mark.parametrize("command", ON_PIPES)
def test_a_closed_stdout_is_an_error_and_not_a_bug(table: TableBuilder, command: str) -> None:
    ended = run_in_shell('exec "$@" >&-', command, table.path)
    assert ended.exit_code == 1
    assert told(ended)[:2] == ["the output cannot be written: it was closed before the start", "stdout"]


def test_a_closed_stderr_puts_no_talk_into_the_output(table: TableBuilder, tmp_path: Path) -> None:
    ended = run_in_shell('exec "$@" 2>&-', "files", table.path, "--explain", "--debug")
    assert (ended.exit_code, sorted(ended.lines)) == (0, ["b c", "d", "e", "x\\ny"])
    ended = run_in_shell('exec "$@" 2>&-', "files", tmp_path / "nothing")
    assert (ended.exit_code, ended.out) == (3, "")


def run_in_c_locale(*arguments: str | Path) -> Ended:
    return run_process(*arguments, LC_ALL="C", PYTHONUTF8="0")


@pytest.mark.parametrize("start", [run_inside, run_in_c_locale])
def test_a_predicate_in_utf_8_is_understood_in_any_locale(start: Run, table: TableBuilder) -> None:
    ended = start("files", table.path, "--where", "device_id = 'Zürich' and date = '2026-02-09'")
    assert (ended.exit_code, ended.lines, ended.err) == (0, ["e"], "")
    ended = start("files", table.path, "--where", "größe = 1")
    assert ended.exit_code == 2
    assert "gr" in told(ended)[0]


def test_a_path_that_the_locale_cannot_name_is_exit_code_2(run: Run, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "Zürich").commit(adds=["a"])
    assert run("files", builder.path).lines == ["a"]
    ended = run_in_c_locale("files", builder.path)
    assert (ended.exit_code, ended.out) == (2, "")
    assert "UTF-8" in told(ended)[2]


@pytest.mark.parametrize("locale", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0"}], ids=["usual", "C"])
def test_an_argument_that_is_not_utf_8_is_exit_code_2(table: TableBuilder, locale: dict[str, str]) -> None:
    ended = run_in_shell(
        'exec "$@" --where "device_id = $(printf "\'\\377\'")"', "files", table.path, **locale
    )
    assert (ended.exit_code, ended.out) == (2, "")
    assert told(ended)[0] == "argument number 4 is not UTF-8"


@pytest.fixture
def forbidding_store() -> Iterator[int]:
    """The port of a store that answers every request with 403."""

    class Forbid(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET  # noqa: N815 - the name that http.server asks for

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forbid) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def _options(port: int) -> list[str]:
    given = {
        "endpoint": f"http://127.0.0.1:{port}",
        "allow_http": "true",
        "region": "us-east-1",
        "access_key_id": "someone",
        "secret_access_key": SECRET,
        "delta.request.attempts_max": "2",
        "delta.request.backoff_seconds": "0.01",
    }
    return [f"--storage-option={key}={value}" for key, value in given.items()]


def test_what_to_do_next_is_told_in_the_words_of_the_command_line(run: Run) -> None:
    _, _, fix = told(run("files", "s3://user:pass@bucket/t"))
    assert fix.startswith("pass credentials as --storage-option (sas_token, ")
    assert "storage_options" not in fix


@pytest.mark.parametrize(
    "words",
    [
        ["files", "t", SECRET],
        ["files", "t", "--storage-option", f"account_key {SECRET}"],
        [f"https://a.blob.core.windows.net/c/t?sv=1&sig={SECRET}"],
    ],
)
def test_arguments_that_are_not_understood_are_not_repeated(run: Run, words: list[str]) -> None:
    ended = run(*words)
    assert ended.exit_code in (2, 3)
    assert SECRET.rstrip("=") not in ended.out + ended.err
