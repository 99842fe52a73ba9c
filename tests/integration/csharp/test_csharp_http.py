"""The C# client over HTTP, run by mono against a server that streams real scans, and against bad ones."""

from __future__ import annotations

import json

import pytest

import lazydelta as ld
from tests.support.csharp import Driver
from tests.support.settling import settled
from tests.support.sharing_stub import TOKEN, SharingStub, sharing_stub
from tests.support.table_builder import TableBuilder


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> str:
    builder = TableBuilder(tmp_path_factory.mktemp("many"))
    for commit in range(4):
        builder.commit([f"f-{commit}-{number}-{'x' * 200}.parquet" for number in range(5000)])
    return str(builder.path)


def test_files_of_the_delta_format_are_those_of_the_scan(
    driver: Driver, stub: SharingStub, shared_table: str
) -> None:
    done = driver("list", "http", stub.url, TOKEN, "share.schema.good")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    files = list(ld.open(shared_table).scan().files())
    assert [line["path"] for line in found] == [f"https://files/{file.path}" for file in files]
    assert [line["partitions"] for line in found] == [file.partition_values for file in files]
    assert [line["modified"] for line in found] == [file.modification_time for file in files]
    assert [line["vector"][0] for line in found if "vector" in line] == ["u", "i"]
    asked = stub.requests[0]
    assert asked["path"].endswith("/delta-sharing/shares/share/schemas/schema/tables/good/query")
    assert "responseformat=delta" in asked["headers"]["delta-sharing-capabilities"]
    assert asked["body"] == {}


def test_files_of_the_parquet_format_come_too(driver: Driver, stub: SharingStub) -> None:
    done = driver("list", "http", stub.url, TOKEN, "share/schema/parquet")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 18), done.stderr


def test_a_filter_and_hints_reach_the_server(driver: Driver, stub: SharingStub, shared_table: str) -> None:
    predicate = '{"kind": {"in": ["plain", "x\'y\\"z\\\\"]}, "value": {"gte": 1}}'
    done = driver(
        "list", "http", stub.url, TOKEN, "a.b.good", f"predicate={predicate}", "rows=7", "version=1"
    )
    hints = ["kind IN ('plain', 'x''y\"z\\')", "value >= 1"]
    assert stub.requests[0]["body"] == {"predicateHints": hints, "limitHint": 7, "version": 1}
    expected = list(ld.open(shared_table, version=1).scan(json.loads(predicate)).files())
    assert len(done.stdout.splitlines()) == len(expected) > 0, done.stderr
    own = '{"op": "equal", "children": []}'
    driver("list", "http", stub.url, TOKEN, "a.b.good", f"predicate={own}")
    assert stub.requests[1]["body"] == {"jsonPredicateHints": own}


def test_a_limit_counts_files_and_ends_the_servers_scan(driver: Driver, many_files: str) -> None:
    with sharing_stub(many_files) as stub:
        done = driver("list", "http", stub.url, TOKEN, "a.b.good", "limit=4")
        assert (done.returncode, len(done.stdout.splitlines())) == (0, 4), done.stderr
        assert stub.requests[0]["body"] == {}
        assert stub.wait_for_end(1) == ["left"]


@pytest.mark.parametrize("option", ["limit=0", "predicate=", "predicate= ", "predicate=null"])
def test_no_limit_and_no_filter_can_be_said_in_several_ways(
    driver: Driver, stub: SharingStub, shared_table: str, option: str
) -> None:
    over_http = driver("list", "http", stub.url, TOKEN, "a.b.good", option)
    in_process = driver("list", "native", shared_table, option)
    assert (len(over_http.stdout.splitlines()), over_http.stderr) == (18, "")
    assert (len(in_process.stdout.splitlines()), in_process.stderr) == (18, "")
    assert stub.requests[0]["body"] == {}


def test_pages_are_followed(driver: Driver, stub: SharingStub) -> None:
    done = driver("list", "http", stub.url, TOKEN, "a.b.pages")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 18), done.stderr
    assert [asked["body"].get("pageToken") for asked in stub.requests] == [None, "5", "10", "15"]
    stub.requests.clear()
    limited = driver("list", "http", stub.url, TOKEN, "a.b.pages", "limit=7")
    assert len(limited.stdout.splitlines()) == 7
    assert [asked["body"].get("pageToken") for asked in stub.requests] == [None, "5"]


@pytest.mark.parametrize("action", ["break", "dispose"])
def test_leaving_early_ends_the_servers_scan_while_the_client_lives(
    driver: Driver, many_files: str, action: str
) -> None:
    with sharing_stub(many_files) as stub:
        running = driver.start(action, "http", stub.url, TOKEN, "a.b.good")
        with running:
            assert running.stdout.readline()
            assert stub.wait_for_end(1) == ["left"]
            assert running.poll() is None
            running.communicate("\n", timeout=120)
        assert stub.lines_sent < 20_000


def test_cancelling_a_wait_without_end_ends_it_and_the_servers_scan(
    driver: Driver, stub: SharingStub
) -> None:
    done = driver("cancel-waiting", "http", stub.url, TOKEN, "a.b.slow")
    assert done.stdout.split() == ["OperationCanceledException"], done.stderr
    assert stub.wait_for_end(1) == ["left"]


def test_scans_run_side_by_side_on_connections_of_their_own(driver: Driver, stub: SharingStub) -> None:
    done = driver("many", "http", stub.url, TOKEN, "a.b.good")
    assert done.stdout.split() == ["18"] * 8, done.stderr


def test_a_caller_who_rests_holds_the_server_back(driver: Driver, many_files: str) -> None:
    with sharing_stub(many_files) as stub:
        running = driver.start("stall", "http", stub.url, TOKEN, "a.b.good")
        with running:
            assert running.stdout.readline() == "stalled\n"
            assert settled(lambda: stub.lines_sent) < 20_000
            out, _ = running.communicate("\n", timeout=120)
            assert out == "20000\n"


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        (("a.b.good", "wrong-token"), 8, "who are you?"),
        (("a.b.good", "-"), 8, "401"),
        (("a.b.gone", TOKEN), 3, "this is gone"),
        (("a.b.wrong", TOKEN), 2, "this is wrong"),
        (("a.b.busy", TOKEN), 7, "this is busy"),
        (("a.b.new", TOKEN), 6, "this is new"),
        (("a.b.damaged", TOKEN), 5, "not JSON"),
        (("a.b.error_line", TOKEN), 7, "the log is gone"),
        (("a.b.no_end", TOKEN), 7, "broke off"),
        (("a.b.cut", TOKEN), 7, "broke off"),
        (("a.b.cut_line", TOKEN), 7, "broke off"),
        (("a.b.unframed", TOKEN), 7, "broke off"),
        (("a.b.empty", TOKEN), 5, "no protocol"),
        (("a.b.headless", TOKEN), 5, "no protocol"),
    ],
)
def test_a_server_that_refuses_or_breaks_off_is_an_error_never_a_shorter_list(
    driver: Driver, stub: SharingStub, asked: tuple[str, str], code: int, words: str
) -> None:
    table, token = asked
    done = driver("list", "http", stub.url, token, table)
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stderr and "fix:" in done.stderr
    assert token == "-" or token not in done.stderr


def test_a_server_that_is_not_there_is_an_error(driver: Driver) -> None:
    done = driver("list", "http", "http://127.0.0.1:9/delta-sharing", TOKEN, "a.b.c")
    assert done.returncode == 7 and "fix:" in done.stderr
