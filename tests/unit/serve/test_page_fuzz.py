"""Whatever is sent to the web page's questions: an answer or a refusal in plain words, never a mistake."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.hypothesis_profile import BUSY_AND_SHARED, examples
from tests.support.page import machines_table
from tests.support.serving import RunningServer, running_server

QUICK = settings(max_examples=examples(20), deadline=None, suppress_health_check=BUSY_AND_SHARED)
SECONDS = 60.0
POSTS = ("query", "completions", "tables/machines/reads")
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=30)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
texts = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            [
                "select",
                "*",
                "from",
                "machines",
                "|",
                "where",
                "celsius",
                ">",
                "1",
                "(",
                ")",
                "'",
                ";",
                "--",
                "\n",
                "\0",
                "é",
                "😀",
                "union",
                "with",
                "as",
                "summarize",
                "by",
                "take",
                ".show",
                "let",
                "=",
            ]
        ),
        max_size=14,
    ).map(" ".join),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("fuzzed")
    with running_server(folder, {"machines": machines_table(folder, days=2)}) as running:
        yield running


def check(answer: httpx.Response) -> None:
    assert answer.status_code < 500 or answer.status_code in (501, 503), answer.text
    assert "Traceback" not in answer.text
    assert '"Bug"' not in answer.text
    if answer.status_code >= 400:
        assert set(answer.json()["error"]) >= {"code", "message"}


@QUICK
@given(path=st.sampled_from(POSTS), body=st.one_of(st.binary(max_size=60), values.map(repr).map(str.encode)))
@example(path="query", body=b"[" * 100_000)
def test_any_body_is_answered_or_refused(server: RunningServer, path: str, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    check(httpx.post(f"{server.http_url}/ui/api/{path}", content=body, headers=headers, timeout=SECONDS))


@QUICK
@given(path=st.sampled_from(POSTS), language=st.sampled_from(["sql", "kql"]), text=texts)
def test_any_text_is_answered_or_refused(server: RunningServer, path: str, language: str, text: str) -> None:
    body: dict[str, object] = {"language": language, "text": text}
    if path == "completions":
        body["before"] = text
    check(httpx.post(f"{server.http_url}/ui/api/{path}", json=body, timeout=SECONDS))


@QUICK
@given(
    path=st.sampled_from(["", "/versions", "/files", "/news"]),
    table=st.one_of(st.just("machines"), st.text(min_size=1, max_size=10)),
    name=st.sampled_from(["version", "before", "count", "after"]),
    value=st.one_of(st.integers().map(str), st.text(max_size=10)),
)
def test_any_address_is_answered_or_refused(
    server: RunningServer, path: str, table: str, name: str, value: str
) -> None:
    address = f"{server.http_url}/ui/api/tables/{quote(table, safe='')}{path}"
    check(httpx.get(address, params={name: value, "once": "1"}, timeout=SECONDS))
