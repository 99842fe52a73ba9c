"""Queries for the files of a version: both formats, hints, limits, pages, tokens, time travel."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

import lazydelta as ld
from tests.support import actions
from tests.support.serving import RunningServer, running_server
from tests.support.shared_tables import mapped_table
from tests.support.sharing import Answer, Sharing, as_delta, table_path
from tests.support.table_builder import TableBuilder

FILES, ROWS = 40, 10
NULLS = {"2026-02-01": 1, "2026-02-02": 2, None: 3}  # a day -> the size of its file
PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}


def add(number: int, *, count: int | None = ROWS) -> dict[str, Any]:
    told: dict[str, Any] = {} if count is None else {"numRecords": count}
    bounds = {"minValues": {"count": number * 10}, "maxValues": {"count": number * 10 + 9}}
    day = {"date": f"2026-02-{number % 4 + 1:02}"}
    return actions.add(f"f{number:03}.parquet", partition=day, stats=told | bounds, size=100 + number)


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("tables")
    plain = TableBuilder(folder / "plain", protocol=PLAIN)
    for first in range(0, FILES, 10):
        plain.commit(adds=[add(number) for number in range(first, first + 10)])
        if first == 10:
            plain.checkpoint()
    plain.crc()
    uncounted = TableBuilder(folder / "uncounted", protocol=PLAIN)
    uncounted.commit(adds=[add(number, count=None if number % 2 else ROWS) for number in range(8)])
    nulls = TableBuilder(folder / "nulls", protocol=PLAIN)
    nulls.commit(
        adds=[
            actions.add(str(day), partition={"date": day}, size=size, stats={"numRecords": ROWS})
            for day, size in NULLS.items()
        ]
    )
    kinds = {"big": "long", "exact": "decimal(38,2)", "cents": "decimal(10,2)"}
    numbers = TableBuilder(folder / "numbers", protocol=PLAIN, schema=kinds)
    bounds = '{"big": 9007199254740993, "exact": 100000000000000000001.00, "cents": 3.50}'
    stats = f'{{"numRecords": 1, "minValues": {bounds}, "maxValues": {bounds}}}'
    numbers.commit(adds=[actions.add("n", size=7, stats=stats)])
    return {
        "numbers": str(numbers.path),
        "nulls": str(nulls.path),
        "plain": str(plain.path),
        "uncounted": str(uncounted.path),
        "mapped": mapped_table(folder, files=5),
    }


@pytest.fixture(scope="module")
def server(urls: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("config"), urls) as running:
        yield running


@pytest.fixture
def client(server: RunningServer) -> Sharing:
    return Sharing(server)


def sizes(answer: Answer) -> list[int]:
    """What tells files apart here."""
    assert answer.status == 200, answer.body
    return sorted(file["size"] for file in answer.files)


def in_process(url: str, where: str | None = None, version: int | None = None) -> list[int]:
    return sorted(file.size for file in ld.open(url, version=version).scan(where).files())


def op(name: str, *children: Any) -> dict[str, Any]:
    return {"op": name, "children": list(children)}


def column(name: str, kind: str) -> dict[str, Any]:
    return {"op": "column", "name": name, "valueType": kind}


def value(text: str, kind: str) -> dict[str, Any]:
    return {"op": "literal", "value": text, "valueType": kind}


def message(answer: Answer, status: int = 400) -> str:
    assert answer.status == status, (answer.status, answer.body)
    assert answer.headers["content-type"].startswith("application/json")
    return str(answer.json["message"])


def test_the_lines_are_protocol_metadata_and_files(client: Sharing, urls: dict[str, str]) -> None:
    answer = client.query("plain")
    assert answer.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert answer.headers["delta-table-version"] == "3"
    assert answer.headers["delta-sharing-capabilities"] == "responseformat=parquet"
    protocol, metadata, *files = answer.lines
    assert protocol == {"protocol": {"minReaderVersion": 1}}
    table = ld.open(urls["plain"])
    assert metadata["metaData"]["id"] == table.metadata.id
    assert metadata["metaData"]["schemaString"] == table.metadata.schema_string
    assert metadata["metaData"]["partitionColumns"] == ["date"]
    assert metadata["metaData"]["numFiles"] == FILES
    assert [set(line) for line in files] == [{"file"}] * FILES
    found = {file["size"]: file for file in answer.files}
    for file in table.scan().files(with_stats=True):
        told = found[file.size]
        assert told["partitionValues"] == file.partition_values
        assert json.loads(told["stats"]) == json.loads(file.stats or "")
        assert set(told) == {"url", "id", "partitionValues", "size", "stats", "expirationTimestamp"}
    assert len({file["id"] for file in answer.files}) == FILES
    assert [file["id"] for file in client.query("plain").files] == [file["id"] for file in answer.files]


def test_metadata_alone_are_two_lines(client: Sharing) -> None:
    answer = client.get(f"{table_path('plain')}/metadata")
    assert [set(line) for line in answer.lines] == [{"protocol"}, {"metaData"}]
    older = client.get(f"{table_path('plain')}/metadata", version=1)
    assert older.headers["delta-table-version"] == "1"
    assert older.lines[1]["metaData"]["version"] == 1
    assert "version 9" in message(client.get(f"{table_path('plain')}/metadata", version=9))
    assert "both given" in message(
        client.get(f"{table_path('plain')}/metadata", version=1, timestamp="2026-02-02T00:00:00Z")
    )


def test_the_format_is_the_one_that_tells_all(client: Sharing) -> None:
    told = "responseFormat=DELTA,parquet;readerFeatures=DeletionVectors,columnMapping"
    both = {"delta-sharing-capabilities": told}
    assert client.query("plain", both).headers["delta-sharing-capabilities"] == "responseformat=parquet"
    assert client.query("mapped", both).headers["delta-sharing-capabilities"] == "responseformat=delta"
    assert client.query("plain", as_delta()).headers["delta-sharing-capabilities"] == "responseformat=delta"
    refusal = message(client.query("mapped"))
    assert "columnmapping, deletionvectors" in refusal and "responseformat=delta" in refusal
    assert "has columnmapping, which the client" in message(
        client.query("mapped", as_delta("deletionvectors"))
    )
    assert "orc" in message(client.query("plain", {"delta-sharing-capabilities": "responseformat=orc"}))


def test_in_the_delta_format_actions_are_as_the_log_has_them(client: Sharing, urls: dict[str, str]) -> None:
    answer = client.query("mapped", as_delta("deletionvectors", "columnmapping"))
    told = answer.lines[0]["protocol"]["deltaProtocol"]
    assert told["readerFeatures"] == ["columnMapping", "deletionVectors"]
    assert answer.lines[1]["metaData"]["deltaMetadata"]["configuration"]["delta.columnMapping.mode"] == "name"
    adds = [file["deltaSingleAction"]["add"] for file in answer.files]
    assert [add["partitionValues"] for add in adds] == [{"col-3": f"2026-02-{day:02}"} for day in range(1, 6)]
    for file in answer.files:
        add = file["deltaSingleAction"]["add"]
        assert client.ask("GET", add["path"]).status == 200
        assert len(client.ask("GET", add["path"]).body) == add["size"]
        vector = add.get("deletionVector")
        assert ("deletionVectorFileId" in file) == (vector is not None)
        if vector is not None:
            assert (vector["storageType"], vector["cardinality"]) == ("p", 2)
            body = client.ask("GET", vector["pathOrInlineDv"]).body
            assert body[0] == 1 and len(body) > vector["offset"] + vector["sizeInBytes"]


SQL = [
    "date = '2026-02-02'",
    "date <> '2026-02-02' AND count >= 120",
    "count between 100 and 140",
    "'2026-02-03' < date",
    "date IN ('2026-02-01', '2026-02-04')",
]


@pytest.mark.parametrize("where", SQL)
def test_hints_of_sql_are_the_filter_of_the_scan(client: Sharing, urls: dict[str, str], where: str) -> None:
    found = sizes(client.query("plain", predicateHints=[where]))
    assert found == in_process(urls["plain"], where)
    assert len(found) < FILES


def test_hints_hold_together(client: Sharing, urls: dict[str, str]) -> None:
    found = sizes(client.query("plain", predicateHints=["date = '2026-02-02'", "count < 100"]))
    assert found == in_process(urls["plain"], "date = '2026-02-02' and count < 100")


UNUSABLE = [
    "this is no SQL ((",
    "upper(device_id) = 'A'",
    "nothing = 1",
    "count = 'text'",
    "count = device_id",
    "device_id <> 'a\\\\b'",  # what a backslash means depends on the reader
    'device_id <> "a"',  # a text for some, a column for others
    "ts >= '2027-01-01 00:00:00'",  # of which zone?
    "ts >= '2027-01-01'",
    "date >= '2027-01-01T00:00:00Z'",
    "count = NULL",
    "",
    "(" * 500 + "count = 1" + ")" * 500,
    "count = 1;" * 10_000,
    '{"count": 1}',
]


@pytest.mark.parametrize("where", UNUSABLE)
def test_a_hint_that_cannot_be_honoured_drops_nothing(client: Sharing, where: str) -> None:
    assert len(sizes(client.query("plain", predicateHints=[where]))) == FILES
    found = sizes(client.query("plain", predicateHints=[where, "date = '2026-02-02'"]))
    assert len(found) == FILES // 4


JSON = [
    (op("equal", column("date", "date"), value("2026-02-02", "date")), "date = '2026-02-02'"),
    (op("lessThan", value("100", "long"), column("count", "long")), "count > 100"),
    (
        op(
            "and",
            op("greaterThanOrEqual", column("count", "long"), value("100", "long")),
            op("not", op("isNull", column("date", "date"))),
        ),
        "count >= 100",
    ),
    (
        op(
            "or",
            op("equal", column("date", "date"), value("2026-02-01", "date")),
            op("lessThanOrEqual", column("count", "long"), value("29", "long")),
        ),
        "date = '2026-02-01' or count <= 29",
    ),
    (
        op("not", op("equal", column("date", "date"), value("2026-02-01", "date"))),
        "date <> '2026-02-01' or date is null",
    ),
]


@pytest.mark.parametrize("tree, where", JSON)
def test_hints_of_json_are_the_filter_of_the_scan(
    client: Sharing, urls: dict[str, str], tree: Any, where: str
) -> None:
    found = sizes(client.query("plain", jsonPredicateHints=json.dumps(tree)))
    assert found == in_process(urls["plain"], where)


DAY = column("date", "date")
IS_FIRST = op("equal", DAY, value("2026-02-01", "date"))
NULL_SAFE = op("or", op("and", op("isNull", DAY), op("isNull", value("2026-02-01", "date"))), IS_FIRST)


@pytest.mark.parametrize(
    "tree, wanted",
    [
        (IS_FIRST, [1]),
        (op("isNull", DAY), [3]),
        (op("not", op("isNull", DAY)), [1, 2]),
        (op("not", IS_FIRST), [2, 3]),  # of `<=>`, null is not the first; of SQL's `=`, nobody knows
        (op("not", op("not", IS_FIRST)), [1, 3]),
        (op("not", NULL_SAFE), [2, 3]),
        (op("not", op("and", IS_FIRST, op("not", op("isNull", DAY)))), [2, 3]),
    ],
)
def test_a_negation_keeps_what_has_no_value(client: Sharing, tree: Any, wanted: list[int]) -> None:
    assert sizes(client.query("nulls", jsonPredicateHints=json.dumps(tree))) == wanted


UNUSABLE_TREES = [
    "no JSON",
    "{}",
    json.dumps({"op": "equal", "children": []}),
    json.dumps({"op": "like", "children": [column("count", "long"), value("1", "long")]}),
    json.dumps(op("equal", column("count", "string"), value("1", "string"))),
    json.dumps(op("equal", column("nothing", "long"), value("1", "long"))),
    json.dumps(op("equal", column("count", "long"), value("one", "long"))),
    json.dumps(op("equal", column("count", "long"), column("count", "long"))),
    json.dumps(op("equal", column("ts", "timestamp"), value("2026-01-01 00:00:00", "timestamp"))),
    json.dumps(op("equal", column("value", "double"), value("NaN", "double"))),
    "[" * 10_000,
    '{"op":"not","children":[' * 300 + "]}" * 300,
]


@pytest.mark.parametrize("tree", UNUSABLE_TREES)
def test_a_tree_that_cannot_be_honoured_drops_nothing(client: Sharing, tree: str) -> None:
    assert len(sizes(client.query("plain", jsonPredicateHints=tree))) == FILES


def test_a_limit_takes_as_many_files_as_it_needs(client: Sharing) -> None:
    for limit in (0, 1, ROWS, ROWS + 1, 95, FILES * ROWS, FILES * ROWS + 1):
        assert len(sizes(client.query("plain", limitHint=limit))) == min(FILES, -(-limit // ROWS))


def test_a_limit_does_not_count_rows_that_are_deleted_or_unknown(client: Sharing) -> None:
    features = as_delta("deletionvectors", "columnmapping")
    for limit, files in ((8, 1), (9, 2), (18, 2), (19, 3)):  # 8, 10, 8, 10 and 8 rows are left
        assert len(client.query("mapped", features, limitHint=limit).files) == files
    assert len(sizes(client.query("uncounted", limitHint=11))) in (3, 4)  # every second file may be empty
    assert len(sizes(client.query("uncounted", limitHint=41))) == 8


def test_a_limit_holds_behind_a_filter_only_where_no_row_is_dropped(client: Sharing) -> None:
    by_partition = client.query("plain", predicateHints=["date = '2026-02-02'"], limitHint=15)
    assert len(sizes(by_partition)) == 2
    # Rows of a file that might match may all be dropped by the client.
    assert len(sizes(client.query("plain", predicateHints=["count > 5"], limitHint=1))) == FILES
    assert len(sizes(client.query("plain", predicateHints=["nonsense("], limitHint=1))) == FILES
    half = ["date = '2026-02-02'", "upper(device_id) = 'A'"]
    assert len(sizes(client.query("plain", predicateHints=half, limitHint=1))) == FILES // 4


def test_a_limit_does_not_count_rows_that_a_negation_may_drop(client: Sharing) -> None:
    """SQL drops the file without a value, which the scan gives first; `<=>` keeps it."""
    negated = json.dumps(op("not", IS_FIRST))
    assert sizes(client.query("nulls", jsonPredicateHints=negated, limitHint=1)) == [2, 3]


@pytest.mark.parametrize(
    "hints",
    [
        ["date = '2026-02-02'"] * 257,
        [f"date = '2026-02-02' or count = {i % 10}" for i in range(200)] * 3,
        ["date = '2026-02-02'" + " " * 65_536],
        [" or ".join(["date = '2026-02-02'"] * 1025)],
        ["count >= 0"] * 60_000,
    ],
)
def test_hints_that_are_too_many_are_passed_over_at_once(client: Sharing, hints: list[str]) -> None:
    began = time.monotonic()
    found = sizes(client.query("plain", predicateHints=hints, limitHint=1))
    assert time.monotonic() - began < 60
    assert len(found) > 1  # the limit does not count


@pytest.mark.parametrize(
    "where, is_taken",
    [
        ("big = 9007199254740993", True),
        ("big = 9007199254740992", True),
        ("big = 9007199254740992e0", False),  # by doubles, which a long of that size is rounded to
        ("big in (9.007199254740992E15)", False),
        ("big <= 9007199254740992e0", False),
        ("big = 7.5", True),
        ("big = 7.0000000000000001", False),
        ("exact = 200000000000000000000", True),
        ("exact = 1e20", False),
        ("exact <= 1.5", False),
        ("cents = 1.25", True),
        ("cents = 1.2500000000000000001", False),
    ],
)
def test_numbers_that_engines_may_compare_by_doubles_drop_nothing(
    client: Sharing, where: str, is_taken: bool
) -> None:
    wanted = [7] if where == "big = 9007199254740993" else [] if is_taken else [7]
    assert sizes(client.query("numbers", predicateHints=[where])) == wanted


@pytest.mark.parametrize("size", [1, 7, 10, 40, 100])
def test_pages_together_are_all_files_once(client: Sharing, urls: dict[str, str], size: int) -> None:
    found, pages = paged(client, "plain", size)
    assert sorted(found) == in_process(urls["plain"])
    assert pages == -(-FILES // size)


def test_pages_keep_to_hints_and_limits(client: Sharing, urls: dict[str, str]) -> None:
    where = "date = '2026-02-02'"
    assert sorted(paged(client, "plain", 3, predicateHints=[where])[0]) == in_process(urls["plain"], where)
    for limit in (1, 30, 31, 75, 1000):
        found, _ = paged(client, "plain", 3, limitHint=limit)
        assert len(found) == len(set(found)) == min(FILES, -(-limit // ROWS))


def paged(client: Sharing, table: str, size: int, **body: Any) -> tuple[list[int], int]:
    found: list[int] = []
    token: dict[str, Any] = {}
    for number in range(1, 2 * FILES):
        answer = client.query(table, maxFiles=size, **body, **token)
        assert answer.status == 200, answer.body
        assert len(answer.files) <= size
        assert answer.headers["delta-table-version"] == "3"
        found += [file["size"] for file in answer.files]
        if answer.end is None or "nextPageToken" not in answer.end:
            return found, number
        token = {"pageToken": answer.end["nextPageToken"]}
    raise AssertionError("pages without end")


def test_a_page_token_is_for_its_question_alone(client: Sharing) -> None:
    first = client.query("plain", maxFiles=5, limitHint=200)
    assert first.end is not None
    token = first.end["nextPageToken"]
    for other in ({"limitHint": 300}, {"limitHint": 200, "predicateHints": ["count > 1"]}, {}):
        assert "another question" in message(client.query("plain", maxFiles=5, pageToken=token, **other))
    assert "another question" in message(
        client.query("uncounted", maxFiles=5, limitHint=200, pageToken=token)
    )
    assert "another question" in message(
        client.query("plain", as_delta(), maxFiles=5, limitHint=200, pageToken=token)
    )
    other = "B" if token[0] == "A" else "A"
    for wrong in (token[:-2], token[1:], other + token[1:], "%%%", "€"):
        answer = client.query("plain", maxFiles=5, limitHint=200, pageToken=wrong)
        assert "cannot be used" in message(answer)
    assert "maxFiles" in message(client.query("plain", limitHint=200, pageToken=token))
    assert client.query("plain", maxFiles=50, limitHint=200, pageToken=token).status == 200  # pages may grow


def test_pages_stay_at_the_version_of_the_first(
    client: Sharing, tmp_path_factory: pytest.TempPathFactory
) -> None:
    builder = TableBuilder(tmp_path_factory.mktemp("growing") / "t", protocol=PLAIN)
    builder.commit(adds=[add(number) for number in range(4)])
    with running_server(tmp_path_factory.mktemp("config"), {"growing": str(builder.path)}) as server:
        sharing = Sharing(server)
        first = sharing.query("growing", maxFiles=2, includeRefreshToken=True)
        assert first.end is not None
        builder.commit(adds=[add(9)], removes=["f003.parquet"])
        second = sharing.query("growing", maxFiles=2, pageToken=first.end["nextPageToken"])
        assert sorted(file["size"] for file in first.files + second.files) == [100, 101, 102, 103]
        again = sharing.query("growing", refreshToken=first.end["refreshToken"], includeRefreshToken=True)
        assert (sizes(again), again.headers["delta-table-version"]) == ([100, 101, 102, 103], "0")
        assert sizes(sharing.query("growing")) == [100, 101, 102, 109]
        assert sharing.query("growing", refreshToken=first.end["refreshToken"][:-3]).status == 400


def test_an_older_version_and_a_time_are_read(client: Sharing, urls: dict[str, str]) -> None:
    answer = client.query("plain", version=1)
    assert sizes(answer) == in_process(urls["plain"], version=1)
    assert answer.headers["delta-table-version"] == "1"
    at_ms = actions.FIRST_COMMIT_MS + actions.COMMIT_STEP_MS
    assert {(file["version"], file["timestamp"]) for file in answer.files} == {(1, at_ms)}
    assert answer.lines[1]["metaData"]["version"] == 1
    by_time = client.query("plain", timestamp="2026-02-02T02:41:30Z")
    assert (sizes(by_time), by_time.headers["delta-table-version"]) == (sizes(answer), "1")
    for wrong in ("2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z", "yesterday", "0001-01-01T00:00:00+14:00"):
        message(client.query("plain", timestamp=wrong))
    message(client.query("plain", version=4))


def test_the_version_from_a_time_on(client: Sharing) -> None:
    path = f"{table_path('plain')}/version"
    for moment, version in (
        ("2020-01-01T00:00:00Z", "0"),
        ("2026-02-02T02:40:00Z", "0"),
        ("2026-02-02T02:40:00.001Z", "1"),
        ("2026-02-02T02:43:00Z", "3"),
    ):
        answer = client.get(path, startingTimestamp=moment)
        assert (answer.status, answer.headers["delta-table-version"], answer.body) == (200, version, b"")
    assert "after the last commit" in message(client.get(path, startingTimestamp="2026-02-02T02:43:00.001Z"))
    assert "not a time" in message(client.get(path, startingTimestamp="soon"))
    assert client.get(path).headers["delta-table-version"] == "3"


BODIES = [
    b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"limitHint": "5"}', b'{"limitHint": -1}',
    b'{"version": 1.5}', b'{"version": -1}', b'{"predicateHints": "a = 1"}', b'{"predicateHints": [1]}',
    b'{"predicateHints": ["\\ud800"]}', b'{"maxFiles": 0}', b'{"limitHint": true}', b'{"timestamp": 5}',
    b'{"version": 1, "timestamp": "2026-01-01"}', b'{"version": 1, "startingVersion": 1}',
    b'{"jsonPredicateHints": {"op": "equal"}}', b'{"version": 99999999999999999999999}',
    b"[" * 100_000, b'{"refreshToken": "x", "pageToken": "y", "maxFiles": 1}',
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
def test_a_malformed_body_is_the_clients_mistake(client: Sharing, body: bytes) -> None:
    answer = client.ask("POST", f"/delta-sharing{table_path('plain')}/query", body)
    assert message(answer)
    assert answer.json["errorCode"] == "INVALID_PARAMETER_VALUE"


def test_an_oversized_body_is_not_read(client: Sharing) -> None:
    body = json.dumps({"predicateHints": ["x" * (1 << 20)]}).encode()
    answer = client.ask("POST", f"/delta-sharing{table_path('plain')}/query", body)
    assert "1,048,576 bytes" in message(answer, 413)


def test_ids_of_files_are_made_as_asked(client: Sharing) -> None:
    answer = client.query("plain", {"fileidhash": "Delta"})
    assert answer.headers["fileidhash"] == "delta"
    assert "fileidhash" not in client.query("plain").headers
    message(client.query("plain", {"fileidhash": "md5"}))


def test_the_end_is_told_to_who_asks_for_it(client: Sharing) -> None:
    answer = client.query("plain", {"delta-sharing-capabilities": "includeEndStreamAction=true"})
    assert "includeendstreamaction=true" in answer.headers["delta-sharing-capabilities"]
    assert answer.end == {
        "minUrlExpirationTimestamp": min(file["expirationTimestamp"] for file in answer.files)
    }
    assert client.query("plain").end is None
