"""The library in processes of every kind: threads, forks, plug-ins, an early end, no Python to be found."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.capi.build import LIBRARY, SOURCES
from tests.support.actions import add, stats
from tests.support.capi_library import PROGRAMS, Run, c_environment, library_folder
from tests.support.compiled_once import c_program
from tests.support.row_tables import readings_table
from tests.support.table_builder import TableBuilder

OTHER = pytest.mark.long("other moments at which the same process ends")


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> str:
    return readings_table(tmp_path_factory.mktemp("readings"), hours=4)


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More than threads go through in a moment, some of them in a checkpoint."""
    builder = TableBuilder(tmp_path_factory.mktemp("many"))
    builder.commit([add(f"part-{i}.parquet", stats=stats(1)) for i in range(20_000)]).checkpoint()
    return builder.commit([add(f"late-{i}.parquet") for i in range(20_000)]).path


def test_scans_of_many_threads_run_side_by_side_each_with_its_own_error(
    probe: Run, mixed_table: Path
) -> None:
    done = probe("threads", mixed_table, 8, 3)
    files = list(ld.open(mixed_table).scan().files())
    expected = f"{3 * len(files)}\t{3 * sum(file.size for file in files)}"
    assert (done.returncode, done.stdout.splitlines()) == (0, [expected] * 8), done.stderr


def test_a_python_that_has_looked_at_capsules_is_taken_as_it_is(readings: str) -> None:
    """cffi's lock is a number that Python 3.11 gives to a type of which an attribute was looked up."""
    program = (
        "import ctypes, datetime, sys\n"
        "for _ in range(100): getattr(datetime.datetime_CAPI, 'nothing', None)\n"
        "library = ctypes.CDLL(sys.argv[1])\n"
        "call = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_char_p, ctypes.c_int64)(lambda path, size: True)\n"
        "print(library.delta_scan_lazy(sys.argv[2].encode(), None, ctypes.c_size_t(0), call))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(library_folder() / LIBRARY), readings],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=c_environment(),
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_a_callback_may_scan_too(probe: Run, readings: str) -> None:
    done = probe("nested", readings)
    assert done.returncode == 0
    assert [line.split("\t")[1:] for line in done.stdout.splitlines()] == [["0", "4"]] * 4


def test_a_child_scans_if_its_parent_had_not_and_is_refused_otherwise(probe: Run, readings: str) -> None:
    done = probe("fork", readings)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["cold 4", "warm 120", "stream 1", "parent 0", "files 4"]
    assert done.stderr.count("this process was forked") == 2


@pytest.mark.parametrize("action", ["leave", "leave-scanning"])
def test_a_process_may_end_with_streams_half_read_or_threads_that_scan(
    probe: Run, readings: str, action: str
) -> None:
    done = probe(action, readings)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "milliseconds", [150, 700, *(pytest.param(at, marks=OTHER) for at in (400, 1000, 1400))]
)
def test_a_process_may_end_while_the_first_scans_or_the_start_of_python_are_under_way(
    probe: Run, many_files: Path, milliseconds: int
) -> None:
    done = probe("leave-early", many_files, milliseconds)
    assert (done.returncode, done.stderr) == (3, "")


def test_a_callback_may_end_the_process_while_other_threads_scan(probe: Run, many_files: Path) -> None:
    done = probe("leave-within", many_files)
    assert (done.returncode, done.stderr) == (3, "")


def test_a_scan_within_exit_is_refused(probe: Run, readings: str) -> None:
    done = probe("late", readings)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("20 the thread is ending\n")


def test_rows_come_as_a_stream_that_can_be_left_early(probe: Run, readings: str) -> None:
    done = probe("rows", readings, '{"columns": ["id", "value"], "predicate": "id >= 60"}')
    assert (done.returncode, done.stdout.splitlines()) == (0, ["columns 2", "rows 60"]), done.stderr
    early = probe("rows", readings, "{}", 1)
    assert early.returncode == 0 and "not released" not in early.stdout


def test_a_data_file_that_is_gone_is_an_error_of_the_stream(probe: Run, tmp_path: Path) -> None:
    table = readings_table(tmp_path, hours=2)
    next(path for path in Path(table).rglob("*.parquet") if "_delta_log" not in path.parts).unlink()
    done = probe("rows", table, "{}")
    assert done.returncode == 1
    assert "errno 5" in done.stdout and "the errors differ" not in done.stdout
    assert "fix:" in done.stderr and ".parquet" in done.stderr


def test_an_interrupt_ends_the_host_as_it_always_did(probe: Run, readings: str) -> None:
    running = subprocess.Popen(
        [probe.program, "forever", readings],  # type: ignore[attr-defined]  # see the fixture
        stdout=subprocess.PIPE,
        text=True,
        env=c_environment(),
        restore_signals=True,
    )
    assert running.stdout is not None
    with running, running.stdout:
        assert running.stdout.readline() == "scanning\n"
        running.send_signal(signal.SIGINT)
        assert running.wait(120) == -signal.SIGINT


def test_a_host_may_load_the_library_for_itself_alone_and_unload_it(readings: str) -> None:
    program = c_program([PROGRAMS / "plugin.c"], with_library=False)
    done = subprocess.run(
        [program, library_folder() / LIBRARY, readings],
        capture_output=True,
        text=True,
        check=False,
        env=c_environment(),
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, ["4", "4"]), done.stderr


def test_without_python_the_call_says_how_to_give_it_one(probe: Run, readings: str, tmp_path: Path) -> None:
    missing = probe("lazy", readings, "-", 0, -1, DELTA_LAZY_PYTHON="/no/python")
    assert (missing.returncode, missing.stdout) == (20, "")
    assert "/no/python" in missing.stderr and "DELTA_LAZY_PYTHON" in missing.stderr
    # An environment without lazydelta: Python starts, and finds nothing.
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    empty = probe("lazy", readings, "-", 0, -1, DELTA_LAZY_PYTHON=str(bare / "bin" / "python"), PYTHONPATH="")
    assert empty.returncode == 20
    assert "cannot import what is needed: No module named" in empty.stderr and "fix:" in empty.stderr
    homeless = probe("lazy", readings, "-", 0, -1, PYTHONHOME="/no/home", PYTHONPATH="")
    assert homeless.returncode == 20 and "does the path or PYTHONHOME belong to one?" in homeless.stderr


def test_memory_does_not_grow_with_the_number_of_calls(probe: Run, readings: str) -> None:
    done = probe("often", readings, 150)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    assert after - before < 8 * 1024, f"{after - before} KB more after 100 rounds"


def test_the_parts_in_c_give_back_what_they_take() -> None:
    sources = [SOURCES / name for name in ("deliver.c", "streams.c", "presence.c", "last_error.c")]
    program = c_program([PROGRAMS / "parts.c", *sources], sanitize=True, with_library=False)
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    first = ["p1 11 11 - b=x/3 c=null/0 uu:ab:5:5:11 mine", "p2 22 0 - mine", "= 0"]
    second = ["p1 11 11 {} b=x/3 c=null/0 uu:ab:5:5:11 mine", "p2 22 0 - mine", "= 0"]
    assert done.stdout.splitlines() == [
        *("p1 11", "p2 22", "= 0", *first, *second),
        *("p1 11", "= 1", "= 3", "= 4"),  # enough; a path that C cannot spell; not files
        *("12 the stream failed", "12 the stream failed 0", "5 forked", "1"),
        *("13 ours", "13 ours 0", "5 forked", "1"),
        *("4094", "4094", "0"),
    ]


def test_the_library_runs_clean_under_the_sanitizers(mixed_table: Path, readings: str) -> None:
    """Leaks are the matter of the test above: Python, which never ends, would be reported as one."""
    program = c_program([PROGRAMS / "probe.c"], sanitize=True)
    environment = c_environment(ASAN_OPTIONS="detect_leaks=0", UBSAN_OPTIONS="print_stacktrace=1")
    for words in (
        ("files", mixed_table, '{"with_stats": true}'),
        ("threads", mixed_table, 4, 2),
        ("rows", readings, "{}", 1),
    ):
        done = subprocess.run(
            [program, *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=environment,
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr[:2000]
