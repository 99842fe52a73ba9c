"""Whatever clients send: an answer of the protocol, never a mistake of the server, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lazydelta as ld
from lazydelta.errors import LazyDeltaError
from tests.support.hypothesis_profile import BUSY_AND_SHARED, examples
from tests.support.row_tables import Row, all_readings, readings_table
from tests.support.serving import RunningServer, running_server
from tests.support.shared_tables import feed_table
from tests.support.sharing import Answer, Sharing, table_path

QUICK = settings(max_examples=examples(30), deadline=None, suppress_health_check=BUSY_AND_SHARED)


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("served")
    return {"readings": readings_table(folder, hours=3), "feed": feed_table(folder)}


@pytest.fixture(scope="module")
def server(urls: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("config"), urls) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Sharing:
    return Sharing(server)


def is_sane(answer: Answer) -> bool:
    """A success whose lines are whole, or a refusal in the protocol's shape that is the client's fault."""
    if answer.status == 200:
        return all(isinstance(line, dict) for line in answer.lines)
    told = answer.json
    return 400 <= answer.status < 500 and set(told) == {"errorCode", "message"} and bool(told["message"])


plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
anything = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
moments = st.datetimes().map(lambda moment: moment.isoformat() + "Z") | st.text(max_size=30)
small = st.integers(-2, 12)
WORDS = """value id device _event_hour nothing = < > <> IS NULL AND OR NOT ( ) 'a' '2026021001' 5 1.5 in like
, - x'0' between cast( `id` true -- ; is not null"""
words = st.sampled_from(WORDS.split())
sql = st.lists(words, max_size=8).map(" ".join) | st.text(max_size=30)
leaf = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["column", "literal", "equal", "x"]),
        "name": st.sampled_from(["id", "value", "device", "no"]),
        "value": st.sampled_from(["1", "a", "", "NaN", "1e400", "2026-01-01"]),
        "valueType": st.sampled_from(["int", "long", "string", "double", "bool", "date", "timestamp", "?"]),
    }
)
tree = st.recursive(
    leaf,
    lambda inner: st.fixed_dictionaries(
        {
            "op": st.sampled_from(["and", "or", "not", "equal", "lessThan", "isNull", "greaterThan"]),
            "children": st.lists(inner, max_size=3),
        }
    ),
    max_leaves=6,
)
bodies = st.fixed_dictionaries(
    {},
    optional={
        "predicateHints": st.lists(sql, max_size=3) | anything,
        "jsonPredicateHints": tree.map(json.dumps) | st.text(max_size=20) | anything,
        "limitHint": small | anything,
        "version": small | anything,
        "timestamp": moments | anything,
        "startingVersion": small | anything,
        "endingVersion": small | anything,
        "maxFiles": small | anything,
        "pageToken": st.text(max_size=40) | anything,
        "refreshToken": st.text(max_size=40),
        "includeRefreshToken": st.booleans(),
        "somethingNew": anything,
    },
)
names = st.sampled_from(
    ["shares", "schemas", "tables", "all-tables", "lazydelta", "main", "readings", "query", "..", "."]
)
header_text = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)
capabilities = header_text | st.lists(
    st.sampled_from(
        ["responseformat=delta", "responseformat=parquet,delta", "readerfeatures=", "=", ";", "a=b,c"]
    ),
    max_size=4,
).map(";".join)


@QUICK
@given(body=bodies, capability=capabilities)
@example(body={"timestamp": "0001-01-01T00:00:00+23:59"}, capability="")
@example(body={"timestamp": "9999-12-31T23:59:59-23:59"}, capability="")
@example(body={"predicateHints": ["id = 1e999999999"]}, capability="")
@example(body={"predicateHints": ["id = " + "9" * 5000]}, capability="")
def test_any_query_is_answered(client: Sharing, body: dict[str, Any], capability: str) -> None:
    headers = {"delta-sharing-capabilities": capability}
    assert is_sane(client.query("readings", headers, **body))


@QUICK
@given(body=st.binary(max_size=60) | anything.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_answered(client: Sharing, body: bytes) -> None:
    assert is_sane(client.ask("POST", f"/delta-sharing{table_path('readings')}/query", body))


@QUICK
@given(hints=st.lists(sql, max_size=2), hint=st.none() | tree)
def test_no_hint_drops_a_row_that_it_asks_for(
    client: Sharing, urls: dict[str, str], hints: list[str], hint: Any
) -> None:
    """Each hint that lazydelta itself takes as a filter: the files kept are at least those of the filter."""
    told = {} if hint is None else {"jsonPredicateHints": json.dumps(hint)}
    answer = client.query("readings", predicateHints=hints, **told)
    assert answer.status == 200
    if hint is not None:
        return
    table = ld.open(urls["readings"])
    kept = {file.size for file in table.scan().files()}
    for text in hints:
        try:
            kept &= {file.size for file in table.scan(text).files()}
        except LazyDeltaError:
            continue
    assert kept <= {file["size"] for file in answer.files}


FILTERS: dict[str, Callable[[Row], bool]] = {
    "_event_hour = '2026021001'": lambda row: row["_event_hour"] == "2026021001",
    "_event_hour <> '2026021000'": lambda row: row["_event_hour"] != "2026021000",
    "value > 5": lambda row: row["value"] > 5,
    "id >= 45": lambda row: row["id"] >= 45,
    "device IS NULL": lambda row: row["device"] is None,
    "device <> 'sensor-1'": lambda row: row["device"] is not None and row["device"] != "sensor-1",
    "upper(device) = 'SENSOR-2'": lambda row: row["device"] == "sensor-2",  # which no file is judged by
    'device <> "x"': lambda row: row["device"] is not None,
}


@QUICK
@given(
    texts=st.lists(st.sampled_from(sorted(FILTERS)), max_size=3),
    limit=st.integers(0, 100),
    page=st.none() | st.integers(1, 3),
)
def test_a_limit_never_gives_too_few_rows(
    client: Sharing, texts: list[str], limit: int, page: int | None
) -> None:
    """What a client that filters by itself finds in the files that it is told of."""
    told: list[dict[str, Any]] = []
    more: dict[str, Any] = {} if page is None else {"maxFiles": page}
    while True:
        answer = client.query("readings", predicateHints=texts, limitHint=limit, **more)
        told += answer.files
        if answer.end is None or "nextPageToken" not in answer.end:
            break
        more["pageToken"] = answer.end["nextPageToken"]
    hours = {file["partitionValues"]["_event_hour"] for file in told}
    wanted = [row for row in all_readings(3) if all(FILTERS[text](row) for text in texts)]
    found = [row for row in wanted if row["_event_hour"] in hours]
    assert len(told) == len(hours)
    assert len(found) >= min(limit, len(wanted))


@QUICK
@given(
    parameters=st.dictionaries(
        st.sampled_from(
            ["startingVersion", "endingVersion", "startingTimestamp", "endingTimestamp", "maxFiles",
             "pageToken", "includeHistoricalMetadata", "includeHistoricalProtocol", "version", "timestamp"]
        ),
        small.map(str) | moments | st.sampled_from(["true", "False", "", "1e3", "0x1"]),
        max_size=4,
    ),
    path=st.sampled_from(["/changes", "/version", "/metadata"]),
)  # fmt: skip
def test_any_parameters_are_answered(client: Sharing, parameters: dict[str, str], path: str) -> None:
    encoded = {
        name: value.encode("utf-8", "surrogatepass").decode("latin-1") for name, value in parameters.items()
    }
    assert is_sane(client.get(f"{table_path('feed')}{path}", **encoded))


@QUICK
@given(
    parts=st.lists(names | st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=10), max_size=8),
    method=st.sampled_from(["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"]),
)  # fmt: skip
def test_any_path_is_answered(client: Sharing, parts: list[str], method: str) -> None:
    path = "/".join(quote(part, safe="", errors="replace") for part in parts)
    answer = client.ask(method, f"/delta-sharing/{path}")
    assert answer.status < 500
    assert answer.status == 200 or method == "HEAD" or is_sane(answer)


@QUICK
@given(
    payload=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=40),
    query=st.dictionaries(st.sampled_from(["se", "sig", "sp"]), st.text(max_size=20)),
)
def test_any_link_is_answered(client: Sharing, payload: str, query: dict[str, str]) -> None:
    asked = "&".join(f"{name}={quote(value, errors='replace')}" for name, value in query.items())
    assert client.ask("GET", f"/files/{quote(payload, safe='')}?{asked}").status in (403, 404)


def test_nothing_was_a_mistake_of_the_server(client: Sharing) -> None:
    metrics = client.ask("GET", "/metrics").body.decode()
    assert 'status="bug"' not in metrics
