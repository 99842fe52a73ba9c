"""Kusto's protocol as it goes over the wire: frames, tables, headers, packing, errors, limits."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.kusto import (
    ENDLESS,
    MGMT,
    QUERY,
    QUERY_V1,
    SECONDS,
    error,
    frames,
    payloads,
    post,
    primary,
    rows,
)
from tests.support.row_tables import all_readings, eventually, readings_table
from tests.support.serving import RunningServer, running_server

MORE = """[limits]
request_bytes = 100000
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("kusto")
    with running_server(folder, {"readings": readings_table(folder)}, MORE) as server:
        yield server


def test_frames_stand_in_their_order_with_columns_before_rows(served: RunningServer) -> None:
    answer = post(served, "readings | where id < 3 | project id, device | order by id asc")
    found = frames(answer)
    kinds = [(frame["FrameType"], frame.get("TableKind")) for frame in found]
    assert kinds == [
        ("DataSetHeader", None),
        ("DataTable", "QueryProperties"),
        ("DataTable", "PrimaryResult"),
        ("DataTable", "QueryCompletionInformation"),
        ("DataSetCompletion", None),
    ]
    assert found[0]["Version"] == "v2.0" and found[0]["IsProgressive"] is False
    table = found[2]
    assert list(table) == ["FrameType", "TableId", "TableKind", "TableName", "Columns", "Rows"]
    assert table["Columns"] == [
        {"ColumnName": "id", "ColumnType": "long"},
        {"ColumnName": "device", "ColumnType": "string"},
    ]
    assert table["Rows"] == [[0, ""], [1, "sensor-1"], [2, "sensor-2"]]
    assert found[4] == {"FrameType": "DataSetCompletion", "HasErrors": False, "Cancelled": False}
    assert [line[:1] for line in answer.text.splitlines()] == ["[", ",", ",", ",", ",", "]"]


def test_rows_are_those_of_the_scan(served: RunningServer) -> None:
    found = sorted(rows(served, "readings | project id, value, device, _event_hour"))
    assert found == [
        [row["id"], row["value"], row["device"] or "", row["_event_hour"]] for row in all_readings()
    ]


def test_a_table_that_cannot_be_opened_is_only_trouble_of_queries_that_read_it(tmp_path: Path) -> None:
    tables = {"readings": readings_table(tmp_path), "broken": str(tmp_path / "nowhere")}
    with running_server(tmp_path, tables) as server:
        assert rows(server, "print 1") == [[1]]
        assert rows(server, "external_table('readings') | where id + 1 == 3 | project id") == [[2]]
        assert "nowhere" not in post(server, "broken | count").text
        assert post(server, "broken | count").status_code == 400


def test_what_render_asks_for_is_told_before_the_rows(served: RunningServer) -> None:
    found = frames(post(served, "readings | summarize n = count() by device | render piechart"))[1]
    assert [row[1] for row in found["Rows"]] == ["Visualization"]
    told = json.loads(found["Rows"][0][2])
    assert told["Visualization"] == "piechart"
    assert "XColumn" in told
    plain = frames(post(served, "readings | take 1"))[1]
    assert json.loads(plain["Rows"][0][2])["Visualization"] is None


@pytest.mark.parametrize("option", ["results_progressive_enabled", "results_v2_fragment_primary_tables"])
def test_rows_come_in_fragments_on_request(served: RunningServer, option: str) -> None:
    found = frames(post(served, "readings | project id", options={option: True}))
    is_progressive = option.startswith("results_progressive")
    assert found[0]["IsProgressive"] is is_progressive
    assert found[0]["IsFragmented"] is not is_progressive
    assert [frame["FrameType"] for frame in found[1:3]] == ["DataTable", "TableHeader"]
    fragments = [frame for frame in found if frame["FrameType"] == "TableFragment"]
    assert {(one["TableFragmentType"], one["FieldCount"], one["TableId"]) for one in fragments} == {
        ("DataAppend", 1, 1)
    }
    ids = sorted(row[0] for one in fragments for row in one["Rows"])
    assert ids == [row["id"] for row in all_readings()]
    (completion,) = [frame for frame in found if frame["FrameType"] == "TableCompletion"]
    assert completion["RowCount"] == len(ids)
    progress = [frame for frame in found if frame["FrameType"] == "TableProgress"]
    assert [one["TableProgress"] for one in progress] == ([100.0] if is_progressive else [])


def test_version_1_gives_tables_and_lists_them_last(served: RunningServer) -> None:
    answer = post(served, "readings | where id == 5 | project id, value", path=QUERY_V1)
    tables = answer.json()["Tables"]
    assert [table["TableName"] for table in tables] == ["Table_0", "Table_1", "Table_2", "Table_3"]
    assert tables[0]["Columns"] == [
        {"ColumnName": "id", "DataType": "Int64", "ColumnType": "long"},
        {"ColumnName": "value", "DataType": "Double", "ColumnType": "real"},
    ]
    assert tables[0]["Rows"] == [[5, all_readings()[5]["value"]]]
    assert [row[1:3] for row in tables[3]["Rows"]] == [
        ["QueryResult", "PrimaryResult"],
        ["QueryProperties", "@ExtendedProperties"],
        ["QueryStatus", "QueryStatus"],
    ]


def test_an_empty_result_has_its_columns(served: RunningServer) -> None:
    table = primary(post(served, "readings | where id < 0 | project id"))
    assert table["Rows"] == [] and len(table["Columns"]) == 1


def test_answers_carry_the_ids_of_the_request(served: RunningServer) -> None:
    told = "KPC.execute;" + str(uuid.uuid4())
    for text in ("print 1", "nope | take 1", ".show tables", ".drop table x"):
        first, second = (post(served, text, headers={"x-ms-client-request-id": told}) for _ in range(2))
        assert first.headers["x-ms-client-request-id"] == told
        assert uuid.UUID(first.headers["x-ms-activity-id"])
        assert first.headers["x-ms-activity-id"] != second.headers["x-ms-activity-id"]
    bare = post(served, "print 1", headers={"x-ms-client-request-id": "\x7f"})
    assert bare.headers["x-ms-client-request-id"] != "\x7f"


def test_answers_are_packed_where_the_client_wants_it(served: RunningServer) -> None:
    text = "readings | project id"
    wanted = post(served, text, headers={"accept-encoding": "gzip,deflate"})
    assert wanted.headers["content-encoding"] == "gzip"
    plain = post(served, text, headers={"accept-encoding": "identity"})
    refused = post(served, text, headers={"accept-encoding": "gzip;q=0"})
    assert "content-encoding" not in plain.headers and "content-encoding" not in refused.headers
    assert sorted(primary(wanted)["Rows"]) == sorted(primary(plain)["Rows"])


def test_a_packed_body_is_read(served: RunningServer) -> None:
    body = gzip.compress(json.dumps({"db": "main", "csl": "print x = 5"}).encode())
    answer = httpx.post(
        served.http_url + QUERY, content=body, headers={"content-encoding": "gzip"}, timeout=SECONDS
    )
    assert primary(answer)["Rows"] == [[5]]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"", {}),
        (b"not json", {}),
        (b"[]", {}),
        (b"{}", {}),
        (b'{"csl": 5}', {}),
        (b'{"csl": "  "}', {}),
        (b'{"csl": "print 1", "properties": "not json"}', {}),
        (b'{"csl": "print 1", "properties": [1]}', {}),
        (b'{"csl": "print 1", "properties": {"Options": 5}}', {}),
        (b'{"csl": "print 1", "properties": {"Parameters": {"x": [1]}}}', {}),
        (b'{"csl": "print 1", "properties": {"Options": {"servertimeout": "soon"}}}', {}),
        (b'{"csl": "print 1", "properties": {"Options": {"truncationmaxrecords": "many"}}}', {}),
        (b'{"csl": "print 1", "properties": {"Options": {"notruncation": "maybe"}}}', {}),
        (b'{"csl": "print 1"}', {"content-encoding": "gzip"}),
        (gzip.compress(b'{"csl": "print 1"}', mtime=0)[:-4], {"content-encoding": "gzip"}),
        (b'{"csl": "print 1"}', {"content-encoding": "br"}),
        (b"[" * 50_000, {}),
        (b"\xff\xfe", {}),
        (b'{"csl": ".show tables"}', {}),
    ],
)
def test_a_body_that_is_no_request_is_refused_in_kustos_shape(
    served: RunningServer, body: bytes, headers: dict[str, str]
) -> None:
    answer = httpx.post(served.http_url + QUERY, content=body, headers=headers, timeout=SECONDS)
    assert answer.status_code == 400
    found = error(answer)
    assert found["code"] == "General_BadRequest" and found["@permanent"] is True


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_body_that_is_too_large_is_not_read(served: RunningServer, is_packed: bool) -> None:
    body = json.dumps({"csl": "print 1", "more": "x" * 200_000}).encode()
    headers = {"content-encoding": "gzip"} if is_packed else {}
    answer = httpx.post(
        served.http_url + QUERY,
        content=gzip.compress(body) if is_packed else body,
        headers=headers,
        timeout=SECONDS,
    )
    assert answer.status_code == 413
    assert error(answer)["@type"].endswith("KustoRequestPayloadTooLargeException")


def test_a_body_that_does_not_come_is_a_timeout(tmp_path: Path) -> None:
    more = "[limits]\nstalled_seconds = 0.3\n"
    head = f"POST {QUERY} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 9\r\n\r\n{{"
    with (
        running_server(tmp_path, {"readings": readings_table(tmp_path)}, more) as server,
        socket.create_connection(("127.0.0.1", server.ports.http or 0), timeout=60) as connection,
        connection.makefile("rb") as answer,
    ):
        connection.sendall(head.encode())
        assert answer.readline().startswith(b"HTTP/1.1 408")
        assert b"limits.stalled_seconds" in answer.read()


def test_a_query_sent_as_a_command_is_refused(served: RunningServer) -> None:
    answer = httpx.post(served.http_url + MGMT, json={"csl": "print 1"}, timeout=SECONDS)
    assert "execute_query" in error(answer)["@message"]


@pytest.mark.parametrize(
    ("text", "code", "inner", "words"),
    [
        ("readings | wher id > 1", "BadRequest_SyntaxError", "SYN0002", "Syntax error"),
        ("reading | take 1", "General_BadRequest", "SEM0100", "did you mean readings"),
        ("readings\n| where nope > 1", "General_BadRequest", "SEM0100", "nope"),
        ("external_table('reading') | take 1", "General_BadRequest", "SEM0100", "did you mean readings"),
        ("readings | evaluate bag_unpack(x)", "General_BadRequest", "SEM0001", "evaluate"),
    ],
)
def test_errors_of_a_query_have_kustos_codes_and_their_place(
    served: RunningServer, text: str, code: str, inner: str, words: str
) -> None:
    answer = post(served, text)
    assert answer.status_code == 400
    found = error(answer)
    assert (found["code"], found["innererror"]["code"]) == (code, inner)
    assert words in found["@message"]
    line = found["innererror"].get("line")
    assert line is None or f"[line:position={line}:{found['innererror']['pos']}]" in found["@message"]
    assert found["@context"]["clientRequestId"] == answer.headers["x-ms-client-request-id"]


def test_a_place_in_the_second_line_is_told(served: RunningServer) -> None:
    inner = error(post(served, "readings\n| where nope > 1"))["innererror"]
    assert (inner["line"], inner["pos"]) == (2, 9)


def test_no_address_is_told(served: RunningServer) -> None:
    folder = str(served.path.parent)
    texts = ["readings | take 1", "nope", ".show external tables", ".show database schema as json"]
    texts += ["set query_explain; readings | where id > 5 | count", ".show queries"]
    for text in texts:
        assert folder not in post(served, text).text, text


def test_parameters_are_bound(served: RunningServer) -> None:
    text = "declare query_parameters(least:long, word:string = 'x');\nreadings | where id >= least | count"
    assert rows(served, text, parameters={"least": "235"}) == [[5]]
    assert rows(served, text, parameters={"least": 230}) == [[10]]


@pytest.mark.parametrize("as_text", [True, False])
def test_properties_may_be_text(served: RunningServer, as_text: bool) -> None:
    properties: Any = {"Options": {"Query_Take_Max_Records": 2}, "Parameters": {}}
    body = {"db": "main", "csl": "readings", "properties": json.dumps(properties) if as_text else properties}
    assert len(primary(httpx.post(served.http_url + QUERY, json=body, timeout=SECONDS))["Rows"]) == 2


@pytest.mark.parametrize("way", ["option", "set"])
def test_too_many_records_are_cut_off_in_kustos_words(served: RunningServer, way: str) -> None:
    if way == "option":
        answer = post(served, "readings", options={"truncationmaxrecords": 10})
    else:
        answer = post(served, "set truncationmaxrecords = 10;\nreadings")
    table = primary(answer)
    assert [isinstance(row, list) for row in table["Rows"]] == [True] * 10 + [False]
    (found,) = table["Rows"][10]["OneApiErrors"]
    assert found["error"]["code"] == "LimitsExceeded"
    message = found["error"]["@message"]
    assert "Query result set has exceeded the internal record count limit 10 " in message
    assert "E_QUERY_RESULT_SET_TOO_LARGE" in message and "80DA0003" in message
    last = frames(answer)[-1]
    assert last["HasErrors"] is True and last["OneApiErrors"] == table["Rows"][10]["OneApiErrors"]
    (status,) = [row for row in frames(answer)[3]["Rows"] if row[5] == 2]
    assert status[7] == 0x80DA0003 - (1 << 32) and status[8] == "E_QUERY_RESULT_SET_TOO_LARGE"


def test_too_many_bytes_are_cut_off_in_kustos_words(served: RunningServer) -> None:
    answer = post(served, "readings | project id", options={"truncationmaxsize": 100})
    table = primary(answer)
    kept = [row for row in table["Rows"] if isinstance(row, list)]
    assert 0 < sum(len(json.dumps(row)) for row in kept) <= 100
    message = table["Rows"][-1]["OneApiErrors"][0]["error"]["@message"]
    assert "exceeded the internal data size limit 100 " in message


def test_truncation_can_be_turned_off_deferred_and_told_by_version_1(served: RunningServer) -> None:
    limit = {"truncationmaxrecords": 10}
    assert len(rows(served, "readings", options={**limit, "notruncation": True})) == len(all_readings())
    deferred = post(served, "readings", options={**limit, "deferpartialqueryfailures": True})
    assert len(primary(deferred)["Rows"]) == 10 and frames(deferred)[-1]["HasErrors"] is True
    old = post(served, "readings", path=QUERY_V1, options=limit).json()
    assert "E_QUERY_RESULT_SET_TOO_LARGE" in old["Exceptions"][0]
    assert old["Tables"][0]["Rows"][10]["Exceptions"] == old["Exceptions"]
    assert old["Tables"][2]["Rows"][0][1] == 2
    fragments = frames(post(served, "readings", options={**limit, "results_progressive_enabled": True}))
    (completion,) = [frame for frame in fragments if frame["FrameType"] == "TableCompletion"]
    assert completion["RowCount"] == 10 and completion["OneApiErrors"]


def test_query_take_max_records_ends_a_result_without_a_word(served: RunningServer) -> None:
    answer = post(served, "readings", options={"query_take_max_records": 7})
    assert len(primary(answer)["Rows"]) == 7 and frames(answer)[-1]["HasErrors"] is False


def test_a_query_that_takes_too_long_is_stopped_in_kustos_words(served: RunningServer) -> None:
    answer = post(served, ENDLESS, options={"servertimeout": "00:00:01"})
    assert answer.status_code == 504
    found = error(answer)
    assert found["code"] == "RequestExecutionTimeout" and found["@permanent"] is False
    assert "timed-out on the service side" in found["@message"]
    assert eventually(lambda: not served.process.served.admission.running())


def test_a_query_is_cancelled_by_a_command(served: RunningServer) -> None:
    told = f"mine;{uuid.uuid4()}"
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(post, served, ENDLESS, headers={"x-ms-client-request-id": told})
        assert eventually(lambda: [told] in [row[:1] for row in rows(served, ".show running queries")])
        assert rows(served, f".cancel query '{told}'") == [[True, told, ""]]
        cancelled = answer.result(60)
    assert cancelled.status_code == 400
    assert "80DA0006" in error(cancelled)["@message"] and "E_QUERY_CANCELLED" in error(cancelled)["@message"]
    (state,) = [row[6] for row in rows(served, ".show queries") if row[0] == told]
    assert state == "Cancelled"
    assert rows(served, f".cancel query '{told}'") == [[False, told, "no such query runs"]]


def test_a_client_that_goes_before_the_first_row_stops_the_query(served: RunningServer) -> None:
    running = served.process.served.admission.running
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(served.http_url + QUERY, json={"db": "main", "csl": ENDLESS}, timeout=1.0)
    assert eventually(lambda: not running())


def test_explain_tells_the_sql_and_what_was_read(served: RunningServer) -> None:
    text = "readings | where _event_hour == '2026021003' | count"
    assert "QueryExplain" not in payloads(post(served, text))
    for answer in (
        post(served, text, options={"query_explain": True}),
        post(served, f"set query_explain;\n{text}"),
    ):
        told = payloads(answer)["QueryExplain"]
        assert "select" in told["Sql"].lower()
        assert any("_event_hour" in one and "2026021003" in one for one in told["PushedPredicates"])
        (table,) = told["Tables"]
        assert table["Name"] == "readings"
        assert told["IsFinished"] is True


def test_many_clients_get_their_own_rows(served: RunningServer) -> None:
    def asked(number: int) -> tuple[int, list[Any]]:
        return number, rows(served, f"readings | where id == {number} | project id")

    with ThreadPoolExecutor(12) as threads:
        for number, found in threads.map(asked, range(18)):
            assert found == [[number]]


def test_the_first_rows_come_before_the_last(tmp_path: Path) -> None:
    """The answer is not put together before it is sent."""
    table = str(tmp_path / "ids")
    for first in range(0, 400_000, 100_000):
        more = ["more than lies between a server and a client"] * 100_000
        write_deltalake(table, pa.table({"id": range(first, first + 100_000), "text": more}), mode="append")
    with running_server(tmp_path, {"ids": table}) as server:
        body = {"db": "main", "csl": "ids"}
        headers = {"accept-encoding": "identity"}
        seen = 0
        with httpx.stream("POST", server.http_url + QUERY, json=body, headers=headers, timeout=60) as answer:
            chunks = answer.iter_bytes()
            while seen < 100_000:
                seen += len(next(chunks))
            assert len(server.process.served.admission.running()) == 1
            rest = sum(map(len, chunks))
        assert rest > seen


def test_a_table_that_breaks_after_the_first_rows_is_told_in_the_body(tmp_path: Path) -> None:
    table, more = str(tmp_path / "broken"), ["more than lies between a server and a client"] * 100_000
    for first in range(0, 1_000_000, 100_000):
        write_deltalake(table, pa.table({"id": range(first, first + 100_000), "text": more}), mode="append")
    (oldest,) = DeltaTable(table, version=0).file_uris()
    body = {"db": "main", "csl": "broken", "properties": {"Options": {"notruncation": True}}}
    headers, text = {"accept-encoding": "identity"}, b""
    with running_server(tmp_path, {"broken": table}) as server:
        with httpx.stream("POST", server.http_url + QUERY, json=body, headers=headers, timeout=60) as answer:
            chunks = answer.iter_bytes()
            while len(text) < 100_000:
                text += next(chunks)
            Path(oldest.removeprefix("file://")).unlink()  # far from what is read ahead
            text += b"".join(chunks)
        told = json.loads(text)
        (rows_told,) = [frame["Rows"] for frame in told if frame.get("TableKind") == "PrimaryResult"]
        kept = {row[0] for row in rows_told if isinstance(row, list)}
        assert kept and kept <= set(range(100_000, 1_000_000))
        (found,) = rows_told[-1]["OneApiErrors"]
        assert told[-1]["HasErrors"] is True
        assert str(tmp_path).encode() not in text
        assert found["error"]["@message"]
        assert eventually(lambda: not server.process.served.admission.running())


def test_places_are_free_again_and_threads_do_not_pile_up(served: RunningServer) -> None:
    before = threading.active_count()
    for _ in range(5):
        rows(served, "readings | take 3")
        post(served, "nope")
    assert eventually(lambda: not served.process.served.admission.running())
    assert threading.active_count() <= before + 12


def test_ping_and_metadata_need_no_sign_in(served: RunningServer) -> None:
    assert httpx.get(served.http_url + "/v1/rest/ping", timeout=SECONDS).text == "Pong!"
    assert httpx.get(served.http_url + "/v1/rest/auth/metadata", timeout=SECONDS).json() == {
        "AzureAD": None,
        "dSTS": None,
    }
    assert httpx.get(served.http_url + QUERY, timeout=SECONDS).status_code == 405


def test_a_query_asked_again_sees_what_has_changed(tmp_path: Path) -> None:
    """What is kept of a query is neither its rows, nor its columns, nor its moment, nor its parameters."""
    table = str(tmp_path / "growing")
    write_deltalake(table, pa.table({"a": [1]}))
    with running_server(tmp_path, {"growing": table}) as server:
        assert rows(server, "growing") == rows(server, "growing") == [[1]]
        write_deltalake(table, pa.table({"a": [2], "b": ["x"]}), mode="append", schema_mode="merge")
        assert sorted(rows(server, "growing")) == [[1, ""], [2, "x"]]
        assert rows(server, "print now()") != rows(server, "print now()")
        asked = "declare query_parameters(n:long); growing | where a == n | project a"
        assert [rows(server, asked, parameters={"n": n}) for n in (1, 2, 1)] == [[[1]], [[2]], [[1]]]
        moments = [{"query_now": f"2026-01-0{day}"} for day in (1, 2)]
        found = [rows(server, "print x = 1, startofday(now())", options=one)[0][1][:10] for one in moments]
        assert found == ["2026-01-01", "2026-01-02"]
