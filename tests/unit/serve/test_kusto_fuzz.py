"""Whatever is sent to Kusto's endpoints, the answer is one in Kusto's shape, and never a mistake of ours."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.hypothesis_profile import BUSY_AND_SHARED, examples
from tests.support.kusto import MGMT, QUERY, QUERY_V1
from tests.support.row_tables import eventually, readings_table
from tests.support.serving import RunningServer, running_server

_WORDS = """readings external_table('readings') | where take summarize count() by id value device ( ) == 5 'x'
project extend x= , join on union let ; print render timechart bin( datetime(2026-01-01) 1h ago( set
notruncation [ ] { } // ``` \\ \x00 ' " .show tables database('main') . order desc *"""
WORDS = st.sampled_from(_WORDS.split())
QUERIES = st.lists(WORDS, max_size=12).map(" ".join)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
_NAMES = """servertimeout truncationmaxrecords truncationmaxsize notruncation query_take_max_records
results_progressive_enabled query_now query_explain norequesttimeout other"""
OPTIONS = st.dictionaries(
    st.sampled_from(_NAMES.split()),
    st.one_of(VALUES, st.sampled_from(["00:00:10", 5, "7", True])),
    max_size=3,
)
BODIES = st.one_of(
    st.binary(max_size=60),
    VALUES.map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries(
        {"csl": QUERIES},
        optional={
            "db": st.one_of(VALUES, st.just("main")),
            "properties": st.one_of(VALUES, st.fixed_dictionaries({"Options": OPTIONS})),
        },
    ).map(lambda value: json.dumps(value).encode()),
)
MANY = settings(max_examples=examples(30), deadline=None, suppress_health_check=BUSY_AND_SHARED)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("kusto")
    with running_server(folder, {"readings": readings_table(folder)}) as server:
        yield server


@MANY
@given(body=BODIES, path=st.sampled_from([QUERY, QUERY_V1, MGMT]), is_packed=st.booleans())
def test_any_body_has_an_answer_in_kustos_shape(
    served: RunningServer, body: bytes, path: str, is_packed: bool
) -> None:
    headers = {"content-encoding": "gzip"} if is_packed else {}
    content = gzip.compress(body) if is_packed else body
    answer = httpx.post(served.http_url + path, content=content, headers=headers, timeout=60)
    check(answer, path)
    assert eventually(lambda: not served.process.served.admission.running())


@MANY
@given(text=st.text(max_size=40).map(lambda text: "." + text))
def test_any_command_has_an_answer(served: RunningServer, text: str) -> None:
    check(httpx.post(served.http_url + MGMT, json={"db": "main", "csl": text}, timeout=60), MGMT)


def check(answer: httpx.Response, path: str) -> None:
    found: Any = answer.json()
    if answer.status_code == 200:
        assert isinstance(found, list) if path == QUERY else "Tables" in found
        return
    assert answer.status_code < 500, answer.text
    assert {"code", "message", "@type", "@message", "@permanent"} <= found["error"].keys()
    assert answer.headers["x-ms-activity-id"]
