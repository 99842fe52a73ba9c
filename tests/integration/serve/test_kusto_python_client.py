"""Kusto's own client for Python, unchanged: queries, streams, data frames, commands, errors, sign-in."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from azure.kusto.data import ClientRequestProperties, KustoClient, KustoConnectionStringBuilder
from azure.kusto.data.exceptions import (
    KustoApiError,
    KustoMultiApiError,
    KustoServiceError,
    KustoThrottlingError,
    KustoUnsupportedApiError,
)
from azure.kusto.data.helpers import dataframe_from_result_table
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.serve.sign_in import token_digest
from tests.support.kusto import SEEDS
from tests.support.kusto_tables import TELEMETRY, TYPES, check_seeds, telemetry_table
from tests.support.serving import RunningServer, running_server


@pytest.fixture(scope="module")
def telemetry(tmp_path_factory: pytest.TempPathFactory) -> str:
    return telemetry_table(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def served(telemetry: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("served")
    write_deltalake(str(folder / "types"), TYPES)
    with running_server(folder, {TELEMETRY: telemetry, "kinds": str(folder / "types")}) as server:
        yield server


@pytest.fixture
def client(served: RunningServer) -> Iterator[KustoClient]:
    with KustoClient(served.http_url) as found:
        yield found


def properties(**options: Any) -> ClientRequestProperties:
    found = ClientRequestProperties()
    for name, value in options.items():
        found.set_option(name, value)
    return found


def test_the_seeds_queries_run_unchanged(client: KustoClient, telemetry: str) -> None:
    found = [client.execute("main", query).primary_results[0].raw_rows for query in SEEDS]
    check_seeds(found, telemetry)


def test_the_seeds_queries_stream(client: KustoClient, telemetry: str) -> None:
    found = []
    for query in SEEDS:
        stream = client.execute_streaming_query("main", query)
        stream.set_skip_incomplete_tables(True)  # it does not notice that raw rows were read
        found += [list(table.raw_rows) for table in stream.iter_primary_results()]
    check_seeds(found, telemetry)


def test_every_type_comes_as_the_client_knows_it(client: KustoClient) -> None:
    table = client.execute("main", "kinds").primary_results[0]
    assert [column.column_type for column in table.columns] == [
        "bool", "int", "long", "real", "decimal", "datetime", "string", "dynamic"
    ]  # fmt: skip
    first, second, last = (row.to_list() for row in table)
    assert first[:5] == [True, -5, 2**53 + 1, 1.0, Decimal("1.10")]
    assert second[:5] == [False, 2**31 - 1, -(2**63), 0.1, Decimal("-0.01")]
    assert second[5] == dt.datetime(2026, 2, 10, 22, 15, 1, 123456, tzinfo=dt.UTC)
    assert [first[6:], second[6:]] == [
        ['a"b\\c', {"x": 1, "y": ["a"]}],
        ["é\n😀", {"x": None, "y": []}],
    ]
    assert last == [None, None, None, None, None, None, "", None]


def test_spans_guids_and_numbers_that_are_none(client: KustoClient) -> None:
    text = "print a = 1d + 2h + 3s, b = guid(74be27de-1e4e-49d9-b579-fe0b331d3642), c = real(nan)"
    (row,) = client.execute("main", text + ", d = real(+inf), e = -5s").primary_results[0]
    assert row["a"] == dt.timedelta(days=1, hours=2, seconds=3) and row["e"] == dt.timedelta(seconds=-5)
    assert [row["b"], row["c"], row["d"]] == ["74be27de-1e4e-49d9-b579-fe0b331d3642", "NaN", "Infinity"]


@pytest.mark.filterwarnings("ignore:Downcasting:FutureWarning")  # of the client's own helper
def test_a_data_frame_has_the_rows_of_the_scan(client: KustoClient, telemetry: str) -> None:
    text = (
        f"{TELEMETRY} | where _event_hour == '2026021021' | project timestamp, value | order by timestamp asc"
    )
    frame = dataframe_from_result_table(client.execute("main", text).primary_results[0])
    whole = ld.open(telemetry).scan("_event_hour = '2026021021'").batches(["timestamp", "value"]).read_all()
    expected = whole.sort_by("timestamp").to_pandas()
    assert list(frame["value"]) == list(expected["value"])
    assert list(frame["timestamp"]) == list(expected["timestamp"])
    odd = dataframe_from_result_table(client.execute("main", "print x = real(nan)").primary_results[0])
    assert odd["x"].isna()[0]


def test_commands_and_parameters(client: KustoClient) -> None:
    assert [row["TableName"] for row in client.execute("main", ".show tables").primary_results[0]] == [
        TELEMETRY,
        "kinds",
    ]
    asked = properties()
    asked.set_parameter("device", "sensor-7")
    text = f"declare query_parameters(device:string);\n{TELEMETRY} | where device_id == device | count"
    assert client.execute("main", text, asked).primary_results[0][0][0] == 80


def test_a_query_that_is_wrong_is_raised_with_its_place(client: KustoClient) -> None:
    with pytest.raises(KustoApiError, match=r"there is no column.*line:position=2:9") as caught:
        client.execute("main", f"{TELEMETRY}\n| where nope > 1")
    assert caught.value.is_semantic_error()
    assert caught.value.get_api_error().permanent is True
    with pytest.raises(KustoApiError, match="read only"):
        client.execute("main", ".drop table kinds")


def test_too_many_records_are_raised(client: KustoClient) -> None:
    limited = properties(truncationmaxrecords=5)
    with pytest.raises(KustoMultiApiError, match="E_QUERY_RESULT_SET_TOO_LARGE") as caught:
        client.execute("main", TELEMETRY, limited)
    assert caught.value.get_api_errors()[0].code == "LimitsExceeded"
    tables = client.execute_streaming_query("main", TELEMETRY, properties=limited).iter_primary_results()
    with pytest.raises(KustoMultiApiError, match="record count limit 5"):
        list(next(tables))


def test_a_timeout_is_raised(client: KustoClient) -> None:
    text = f"let r = {TELEMETRY} | extend k = 1;\nr | join kind=inner r on k | join kind=inner r on k"
    with pytest.raises(KustoApiError, match="timed-out on the service side"):
        client.execute(
            "main", f"{text} | summarize max(value)", properties(servertimeout=dt.timedelta(seconds=1))
        )


def test_progressive_frames_are_what_the_client_says_they_are(client: KustoClient) -> None:
    asked = properties(results_progressive_enabled=True)
    with pytest.raises(KustoUnsupportedApiError):
        list(client.execute_streaming_query("main", f"{TELEMETRY} | take 1", properties=asked))


def test_tokens_sign_in(telemetry: str, tmp_path: Path) -> None:
    more = f'[[clients]]\nname = "ann"\ntoken_sha256 = "{token_digest("secret")}"\nroles = ["r"]\n'
    more += (
        f'[clients.limits]\nscans = 1\n[tables.hidden]\nurl = {json.dumps(telemetry)}\nreaders = ["ben"]\n'
    )
    more += "[limits]\nwaiting_seconds = 2\n"
    with running_server(tmp_path, {TELEMETRY: telemetry}, more) as server:
        build = KustoConnectionStringBuilder
        with KustoClient(build.with_aad_user_token_authentication(server.http_url, "secret")) as ann:
            assert ann.execute("main", SEEDS[1]).primary_results[0].rows_count == 100
            with pytest.raises(KustoApiError, match="there is no table 'hidden'"):
                ann.execute("main", "hidden | take 1")
            stream = ann.execute_streaming_query(
                "main", f"set notruncation;\nunion {TELEMETRY}, (range a from 1 to 90000000 step 1)"
            )
            assert stream is not None
            with pytest.raises(KustoThrottlingError):
                ann.execute("main", "print 1")
        for wrong in (server.http_url, build.with_token_provider(server.http_url, lambda: "wrong")):
            with KustoClient(wrong) as nobody, pytest.raises(KustoServiceError, match="401"):
                nobody.execute("main", "print 1")
