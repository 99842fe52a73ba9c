"""Queries that are cut, torn and mixed are answered or refused in our words, not by somebody else's error."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lazydelta.engines.kql.catalog import KqlCatalog
from lazydelta.engines.kql.translate import named_tables, translate
from lazydelta.errors import InvalidRequestError
from tests.support.hypothesis_profile import examples

CATALOG = KqlCatalog(
    {
        "T": pa.schema(
            [
                ("device_id", pa.string()),
                ("value", pa.float64()),
                ("number", pa.int32()),
                ("timestamp", pa.timestamp("us", "UTC")),
                ("tags", pa.list_(pa.string())),
            ]
        )
    },
    databases={"db": {"T": "T"}},
)
QUERIES = [
    "external_table('T') | where timestamp > ago(1h) and device_id has 'a' | take 10",
    "let x = 5; T | where number in (1, 2, x) | summarize n = count(), avg(value) by bin(timestamp, 1h)",
    "database('db').T | join kind=leftouter (T | where value > 1.5) on number | project-away value1",
    "T | extend a = tags[0], b = strcat(device_id, '-', tostring(number)) | where b matches regex 'x+'",
    "declare query_parameters(p:long = 3); union withsource=S T, (T | take 2) | where number < p",
    "T | make-series n = count() on timestamp from ago(1d) to now() step 1h by device_id | render timechart",
    "T | parse device_id with 'sensor-' id:long | mv-expand t = tags to typeof(string) | top 3 by id desc",
    "set notruncation; range x from 1 to 10 step 2 | extend y = datetime_add('day', x, now()) | sort by y",
    "print a = dynamic({'k': [1, 2.5, null]}), b = case(1 > 2, 'x', 'y'), c = 1d / 2, d = guid(null)",
    "let f = (n:long) { T | where number < n }; f(5) | getschema",
    "T | where timestamp between (datetime(2026-02-10) .. 2d) | summarize arg_max(timestamp, *) by device_id",
]
SIGNS = [
    *"()[]{}|,;.=<>!~'\"@#$%&*+-/\\ \n",
    "let ",
    "by ",
    "where ",
    "..",
    "``",
    "datetime(",
    "T",
    "\0",
    "é",
    "9" * 30,
]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(QUERIES))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        to = draw(st.integers(at, min(len(text), at + 12)))
        text = text[:at] + draw(st.sampled_from(["", *SIGNS])) + text[to:]
    if draw(st.booleans()):
        other = draw(st.sampled_from(QUERIES))
        text = text[: draw(st.integers(0, len(text)))] + other[draw(st.integers(0, len(other))) :]
    return text


@settings(max_examples=examples(150))
@given(text=damaged())
def test_a_damaged_query_is_translated_or_refused_in_our_words(text: str) -> None:
    try:
        named_tables(text)
        translated = translate(text, CATALOG)
    except InvalidRequestError as refused:
        assert refused.what
        assert refused.where.startswith(("KQL", "the stored functions"))
    else:
        assert translated.sql
