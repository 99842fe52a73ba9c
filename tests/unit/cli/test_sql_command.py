"""`lazydelta sql`."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from tests.support.command_line import COMMAND, Run, environment
from tests.support.row_tables import readings_table


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> str:
    return readings_table(tmp_path_factory.mktemp("sql"))


def test_a_pipe_gets_csv_with_a_header(run: Run, readings: str) -> None:
    ended = run("sql", readings, "select id, device, value from t where id < 2 order by id")
    assert (ended.exit_code, ended.err) == (0, "")
    assert ended.lines[0] == "id,device,value"
    assert list(csv.reader(ended.lines[1:])) == [["0", "", "0"], ["1", "sensor-1", "3.7"]]


def test_csv_quotes_what_must_be_quoted_and_writes_nested_values_as_json(run: Run, readings: str) -> None:
    query = (
        """select 'a,"b' as "x,y", {'k': [1, null]} as s, 'two\nlines' as n, interval 1 day as i, null as z"""
    )
    ended = run("sql", readings, query)
    assert ended.exit_code == 0
    (header, row) = list(csv.reader(io.StringIO(ended.out)))
    assert header == ["x,y", "s", "n", "i", "z"]
    assert [row[0], json.loads(row[1]), row[2], row[4]] == ['a,"b', {"k": [1, None]}, "two\nlines", ""]


def test_json_gives_one_object_a_row(run: Run, readings: str) -> None:
    query = (
        "select sum(id) as s, 'NaN'::double as n, timestamptz '2026-02-08 12:00:00Z' as at, 1.50 as d, "
        "date '2026-02-08' as day, [1] as l from t"
    )
    for form in (["--json"], ["--format", "jsonl"]):
        ended = run("sql", readings, query, *form)
        assert (ended.exit_code, ended.err) == (0, "")
        assert json.loads(ended.out) == {
            "s": 28680,
            "n": "NaN",
            "at": "2026-02-08T12:00:00.000000Z",
            "d": 1.5,
            "day": "2026-02-08",
            "l": [1],
        }


def test_a_table_can_be_asked_for(run: Run, readings: str) -> None:
    ended = run(
        "sql", readings, "select id, device from t where id in (1, 22) order by id", "--format", "table"
    )
    assert ended.lines == ["id  device", " 1  sensor-1", "22"]


def test_parquet_goes_to_a_file_or_a_pipe(run: Run, readings: str, tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    ended = run("sql", readings, "select * from t order by id", "--output", target)
    assert (ended.exit_code, ended.out, ended.err) == (0, "", "")
    assert pq.read_table(target)["id"].to_pylist() == list(range(240))
    piped = run("sql", readings, "select * from t order by id", "--format", "parquet")
    assert pq.read_table(io.BytesIO(piped.data)) == pq.read_table(target)


@pytest.mark.parametrize(("name", "first"), [("o.csv", "x"), ("o.jsonl", '{"x":1}'), ("o.txt", "x")])
def test_the_name_of_the_file_says_its_format(
    run: Run, readings: str, tmp_path: Path, name: str, first: str
) -> None:
    assert run("sql", readings, "select 1 as x", "--output", tmp_path / name).exit_code == 0
    assert (tmp_path / name).read_text().splitlines()[0] == first


def test_an_error_leaves_no_file_behind_and_an_old_one_as_it_was(
    run: Run, readings: str, tmp_path: Path
) -> None:
    target = tmp_path / "out.csv"
    target.write_text("before")
    ended = run("sql", readings, "select cast(device as int) from t", "--output", target)
    assert ended.exit_code == 2
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_keeps_leading_to_its_file(run: Run, readings: str, tmp_path: Path) -> None:
    target, link = tmp_path / "out.csv", tmp_path / "link.csv"
    link.symlink_to(target)
    for _ in range(2):
        assert run("sql", readings, "select 1 as x", "--output", link).exit_code == 0
        assert link.is_symlink()
        assert target.read_text() == "x\n1\n"
        assert sorted(tmp_path.iterdir()) == [link, target]


def test_a_pipe_is_written_to_and_stays_one(run: Run, readings: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        assert run("sql", readings, "select 1 as x", "--output", pipe).exit_code == 0
        assert reader.communicate()[0] == "x\n1\n"
    assert pipe.is_fifo()


def test_a_file_keeps_its_mode_and_a_link_to_itself_is_refused(
    run: Run, readings: str, tmp_path: Path
) -> None:
    target, link = tmp_path / "out.csv", tmp_path / "link.csv"
    target.touch(mode=0o600)
    assert run("sql", readings, "select 1 as x", "--output", target).exit_code == 0
    assert target.stat().st_mode & 0o777 == 0o600
    link.symlink_to(link.name)
    assert "the link leads to itself" in run("sql", readings, "select 1 as x", "--output", link).err


@pytest.mark.parametrize(
    ("number", "has_nameless", "code"),
    [
        (signal.SIGINT, False, 130),
        (signal.SIGTERM, False, 143),
        pytest.param(signal.SIGTERM, True, 143, marks=pytest.mark.long("as with SIGINT and SIGKILL")),
        (signal.SIGKILL, True, -signal.SIGKILL),
    ],
)
def test_a_signal_leaves_nothing_of_a_file_and_an_old_one_as_it_was(
    readings: str, tmp_path: Path, number: signal.Signals, has_nameless: bool, code: int
) -> None:
    """`has_nameless`: as on disks that have files without a name, or as on those that have none."""
    folder, hook = tmp_path / "out", tmp_path / "hook"
    folder.mkdir()
    hook.mkdir()
    (hook / "sitecustomize.py").write_text("" if has_nameless else "import os; del os.O_TMPFILE")
    (folder / "o.csv").write_text("before")
    query = "select * from t a, t b, t c, t d"  # its end is far away
    with subprocess.Popen(
        [*COMMAND, "sql", readings, query, "--output", str(folder / "o.csv")],
        env=environment(PYTHONPATH=f"{hook}:{os.environ.get('PYTHONPATH', '')}"),
        stderr=subprocess.DEVNULL,
    ) as process:
        while not (begun := _bytes_under_way(process.pid, folder)) and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(60) == code
    assert begun
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("o.csv", "before")]


def _bytes_under_way(process: int, folder: Path) -> int:
    """How much it has written to files that it holds open in the folder."""
    found = 0
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):
            found += link.stat().st_size if str(link.readlink()).startswith(f"{folder}/") else 0
    return found


def test_a_new_file_has_the_usual_mode(run: Run, readings: str, tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    assert run("sql", readings, "select 1 as x", "--output", tmp_path / "new.csv").exit_code == 0
    assert (tmp_path / "new.csv").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_dash_is_stdout(run: Run, readings: str) -> None:
    assert run("sql", readings, "select 1 as x", "--output", "-").out == "x\n1\n"


def test_more_tables_are_named_by_an_option(run: Run, readings: str, tmp_path: Path) -> None:
    other = str(tmp_path / "names")
    write_deltalake(other, pa.table({"device": ["sensor-1"], "name": ["boiler"]}))
    query = "select name, count(*) as c from this join d using (device) group by name"
    ended = run("sql", readings, query, "--table", f"d={other}", "--json")
    assert json.loads(ended.out) == {"name": "boiler", "c": 43}


def test_the_table_has_the_name_of_its_folder_unless_another_was_given_it(
    run: Run, readings: str, tmp_path: Path
) -> None:
    name = Path(readings).name
    ended = run("sql", readings, f'select count(*) from "{name}"')
    assert ended.lines[1] == run("sql", readings, "select count(*) from t").lines[1]
    write_deltalake(tmp_path / "other", pa.table({"a": [1, 2, 3]}))
    other = f"{name.upper()}={tmp_path / 'other'}"
    assert run("sql", readings, f'select count(*) from "{name}"', "--table", other).lines[1] == "3"


def test_a_reader_that_has_enough_ends_the_query(readings: str) -> None:
    process = subprocess.Popen(
        [*COMMAND, "sql", readings, "select t.* from t, range(100000000)"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == b"id,_event_hour,value,device\n"
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=120) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.parametrize(
    ("arguments", "exit_code", "told"),
    [
        (["selec 1"], 2, "line 1, column 1"),
        (["select nothing from t"], 2, "nothing"),
        ([""], 2, "the query is empty"),
        (["select 1", "--format", "xml"], 2, "no format 'xml'"),
        (["select 1", "--format", "table", "--output", "x.txt"], 2, "terminal"),
        (["select 1", "--output", "no/such/folder/x.csv"], 1, "cannot be written"),
        (["select 1", "--memory-limit", "lots"], 2, "memory_limit"),
        (["select 1", "--table", "nonsense"], 2, "NAME=URL"),
        (["select 1", "--table", "x=/no/such/table"], 3, "no/such/table"),
        (["select 1", "--table", "T=elsewhere"], 2, "called t already"),
    ],
)
def test_wrong_requests_are_told(
    run: Run, readings: str, arguments: list[str], exit_code: int, told: str
) -> None:
    ended = run("sql", readings, *arguments)
    assert ended.exit_code == exit_code
    assert told in ended.err
    assert "Traceback" not in ended.err


def test_a_query_spills_where_it_is_told_to(run: Run, readings: str, tmp_path: Path) -> None:
    query = "select value from duckdb_settings() where name = 'temp_directory'"
    ended = run("sql", readings, query, "--temp-directory", tmp_path, "--json")
    assert Path(json.loads(ended.out)["value"]).parent == tmp_path


def test_explain_tells_on_stderr_what_was_read(run: Run, readings: str) -> None:
    ended = run("sql", readings, "select id from t where _event_hour = '2026021003'", "--explain", "--json")
    assert ended.exit_code == 0
    assert len(ended.out.splitlines()) == 30
    told = dict(line.split(maxsplit=1) for line in ended.err.splitlines() if " " in line.strip())
    assert told["table"].startswith("t  ")
    assert "7 by partition" in told["files"]
    assert "not handed over   its files have" in ended.err
    assert 'filter            (_event_hour == "2026021003") decides the scan' in ended.err
    assert "data files        1 opened" in ended.err


def test_without_explain_nothing_is_told(run: Run, readings: str) -> None:
    assert run("sql", readings, "select id from t where id = 3").err == ""


def test_explain_of_a_query_whose_reader_had_enough_is_told(readings: str) -> None:
    command = [*COMMAND, "sql", readings, "select t.* from t, range(100000)", "--explain"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(100)
        process.stdout.close()
        assert "(not finished)" in process.stderr.read().decode()
