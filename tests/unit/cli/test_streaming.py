"""Output comes as it is found; a closed pipe and Ctrl-C stop the reads."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import lazydelta as ld
from tests.support.command_line import COMMAND, environment
from tests.support.table_builder import TableBuilder

FILES = 200_000  # and some more in the tail
long = pytest.mark.long("what it varies does not change how a command ends")


@pytest.mark.parametrize("form", [[], ["--json"], pytest.param(["--columns", "path,size"], marks=long)])
def test_the_first_line_comes_long_before_the_last(large_table: Path, form: list[str]) -> None:
    """The pipe holds 64 KiB: a command that collected first could not stop with most files unread."""
    with started("files", large_table, "--explain", *form) as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith(b"\n")
        process.stdout.close()
        assert process.wait(60) == 0
        assert 0 < emitted(process) < FILES / 4


@pytest.mark.parametrize("call", ["write_lines(['a'])", "write_json_lines(['a'])"])
def test_a_single_line_is_not_kept_back(call: str) -> None:
    code = f"from lazydelta.cli.streams import *; import sys; {call}; sys.stdin.readline()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        assert b"a" in process.stdout.readline()  # the process still waits for its input
        process.communicate(b"\n", timeout=60)
        assert process.returncode == 0


def test_head_ends_the_command_quietly(large_table: Path) -> None:
    shell = f'set -o pipefail; {" ".join(COMMAND)} files "{large_table}" | head -n 1'
    done = subprocess.run(
        ["bash", "-c", shell], capture_output=True, env=environment(), timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"\n") == 1


def test_history_ends_quietly_on_a_closed_pipe(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path)
    for _ in range(300):
        builder.commit(commit_info={"operation": "x" * 1000})
    with started("history", builder.path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"299\t")
        process.stdout.close()
        assert process.wait(60) == 0
        assert read_err(process) == ""


@pytest.mark.parametrize("arguments", [["info"], pytest.param(["explain"], marks=long), ["--help"]])
def test_a_pipe_that_is_closed_from_the_start_is_not_an_error(
    table: TableBuilder, arguments: list[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    target = [] if "--help" in arguments else [str(table.path)]
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [*COMMAND, *arguments, *target],
            stdout=closed,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_every_file_comes_out_in_the_end(large_table: Path) -> None:
    with started("files", large_table) as process:
        out, err = process.communicate(timeout=120)
    lines = out.splitlines()
    assert (process.returncode, err) == (0, b"")
    assert len(lines) == len(set(lines)) == ld.open(large_table).info().num_files


@pytest.mark.parametrize(
    ("command", "number", "code"),
    [
        ("files", signal.SIGINT, 130),
        pytest.param("explain", signal.SIGINT, 130, marks=long),
        ("files", signal.SIGTERM, 143),
    ],
)
def test_ctrl_c_during_a_scan_is_130_and_sigterm_143_without_a_word(
    large_table: Path, command: str, number: signal.Signals, code: int
) -> None:
    with started(command, large_table, "--debug") as process:
        assert process.stderr is not None
        assert b'"event":"opened"' in process.stderr.readline()
        assert b'"event":"scan"' in process.stderr.readline()  # it has begun
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert process.returncode == code
    assert b"Traceback" not in err
    assert out.count(b"\n") < FILES / 2


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=long)]
)
def test_ctrl_c_ends_the_wait_for_a_store_that_stalls(number: signal.Signals, code: int) -> None:
    """The main thread waits inside the store's client, where Python cannot deliver the signal."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = {
            "endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "allow_http": "true",
            "region": "us-east-1",
            "access_key_id": "x",
            "secret_access_key": "y",
            "delta.request.timeout_seconds": "800",  # a quarter of it without a byte ends an attempt
        }
        given = [f"--storage-option={key}={value}" for key, value in options.items()]
        with started("files", "s3://bucket/table", *given) as process:
            connection, _ = silent.accept()
            with connection:
                assert connection.recv(1)  # a request is under way and will never be answered
                process.send_signal(number)
                out, err = process.communicate(timeout=100)
    assert (process.returncode, out, err) == (code, b"", b"")


@pytest.mark.parametrize(
    "module",
    [
        *("lazydelta.cli.app", "pyarrow.lib"),
        *(
            pytest.param(name, marks=long)
            for name in ("typer", "msgspec", "numpy", "lazydelta.cli.show_files")
        ),
    ],
)
def test_ctrl_c_while_modules_are_loaded_is_130_without_a_word(
    table: TableBuilder, tmp_path: Path, module: str
) -> None:
    done = interrupted_at_import(module, tmp_path / "hook", "files", table.path)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_ctrl_c_stays_ignored_where_the_caller_ignores_it(table: TableBuilder, tmp_path: Path) -> None:
    done = interrupted_at_import("typer", tmp_path / "hook", "files", table.path, ignored=True)
    assert (done.returncode, done.stdout.count(b"\n"), done.stderr) == (0, 4, b"")


def interrupted_at_import(
    module: str, hook: Path, *arguments: str | Path, ignored: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """A command that gets SIGINT at the moment it begins to import a module."""
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    script = 'trap "" INT; exec "$@"' if ignored else 'exec "$@"'
    return subprocess.run(
        ["bash", "-c", script, "bash", *COMMAND, *map(str, arguments)],
        capture_output=True,
        env=environment(PYTHONPATH=str(hook)),
        timeout=60,
        check=False,
    )


@contextmanager
def started(*arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command with its output on pipes; killed if a test leaves it running."""
    command = [*COMMAND, *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment()
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def emitted(process: subprocess.Popen[bytes]) -> int:
    """How many files the report on stderr counts; nothing else may stand there."""
    text = read_err(process)
    assert text.startswith("table ")
    match = re.search(r"^files +([\d,]+) emitted", text, re.MULTILINE)
    assert match is not None
    return int(match[1].replace(",", ""))


def read_err(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    return process.stderr.read().decode()
