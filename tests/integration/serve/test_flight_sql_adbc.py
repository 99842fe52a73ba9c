"""Flight SQL as ADBC's driver speaks it: every answer is the in-process one."""

from __future__ import annotations

import datetime as dt
import decimal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import adbc_driver_manager
import pyarrow as pa
import pytest
from adbc_driver_flightsql import DatabaseOptions
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.serve.sign_in import token_digest
from tests.support.row_tables import eventually, reading, readings_table
from tests.support.servers import TableServer
from tests.support.serving import RunningServer, running_server
from tests.support.slow_lake import FILES, becomes_quiet, files_read, served_from_afar

TYPES = pa.table(
    {
        "b": [True, None],
        "i8": pa.array([1, None], pa.int8()),
        "i16": pa.array([1, None], pa.int16()),
        "i32": pa.array([1, None], pa.int32()),
        "i64": pa.array([1 << 60, None], pa.int64()),
        "f32": pa.array([1.5, None], pa.float32()),
        "f64": pa.array([float("nan"), None], pa.float64()),
        "s": ["grün", None],
        "bin": pa.array([b"\x00\xff", None], pa.binary()),
        "d": pa.array([dt.date(2026, 2, 10), None], pa.date32()),
        "ts": pa.array([dt.datetime(2026, 2, 10, 1, 2, 3, 456789, dt.UTC), None], pa.timestamp("us", "UTC")),
        "dec": pa.array([decimal.Decimal("12345.678"), None], pa.decimal128(20, 3)),
        "l": pa.array([[1, 2], None], pa.list_(pa.int64())),
        "st": pa.array([{"x": 1, "y": "z"}, None]),
        "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("adbc")


@pytest.fixture(scope="module")
def tables(folder: Path) -> dict[str, str]:
    types = str(folder / "types")
    write_deltalake(types, TYPES)
    return {"readings": readings_table(folder), "types": types}


@pytest.fixture(scope="module")
def server(folder: Path, tables: dict[str, str]) -> Iterator[RunningServer]:
    with running_server(folder, tables) as running:
        yield running


def connected(server: RunningServer, token: str | None = None) -> adbc.Connection:
    options = {} if token is None else {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {token}"}
    return adbc.connect(f"grpc://127.0.0.1:{server.ports.flight}", db_kwargs=options, autocommit=True)


@pytest.fixture(scope="module")
def connection(server: RunningServer) -> Iterator[adbc.Connection]:
    with connected(server) as found:
        yield found


def answered(connection: adbc.Connection, query: str, parameters: Any = None) -> pa.Table:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return cursor.fetch_arrow_table()


@pytest.mark.parametrize(
    "query",
    [
        "select * from readings order by id",
        "select count(*) from readings",
        "select count(*), min(id), max(value) from readings where device = 'sensor-1'",
        "select device, count(*) as n, sum(id) as s from readings group by all order by device nulls first",
        "select a.id, b.id as other from readings a join readings b on a.id = b.id + 1 order by a.id",
        "select *, row_number() over (partition by device order by id) as k from readings order by id",
        "select id from readings where id in (select max(id) from readings group by _event_hour) order by id",
        "select * from readings where false",
        "with x as (select id % 7 as k, value from readings) select k, list(value order by value) v from x"
        " group by k order by k",
        "select id, id as id from readings order by 1 limit 3",
        "select * from types order by i64",
        "select interval 3 days as i, uuid '00000000-0000-0000-0000-000000000001' as u, 1::hugeint as h",
    ],
)
def test_a_statement_gives_what_it_gives_in_process(
    connection: adbc.Connection, tables: dict[str, str], query: str
) -> None:
    found = answered(connection, query)
    expected = ld.sql(query, **{name: ld.open(url) for name, url in tables.items()}).read_all()
    assert found.schema == expected.schema
    assert found.to_pylist().__repr__() == expected.to_pylist().__repr__()  # NaN is not itself


def test_all_rows_stream(connection: adbc.Connection, tables: dict[str, str]) -> None:
    found = answered(connection, "select * from readings")
    assert found.sort_by("id") == ld.open(tables["readings"]).to_arrow().sort_by("id")


def test_values_of_an_enum_come_as_text(connection: adbc.Connection) -> None:
    value = "'b'::enum('a', 'b')"
    query = f"select {value} as x, [{value}] as l, {{'k': {value}}} as s, map(['k'], [{value}]) as m"
    found = answered(connection, query)
    assert found.to_pylist() == [{"x": "b", "l": ["b"], "s": {"k": "b"}, "m": [("k", "b")]}]
    assert found.schema.field("x").type == pa.string()


def test_rows_that_are_large_together_fit_the_messages_of_the_driver(connection: adbc.Connection) -> None:
    """41 MB in one batch, where ADBC takes 16 MiB."""
    found = answered(connection, "select range as id, repeat('x', 5000) as s from range(8000)")
    assert (found.num_rows, found.nbytes > 40_000_000) == (8000, True)


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        ("select id from readings where id > ? and device = ? order by id", (17, "sensor-2")),
        ("select id from readings where id between $1 and $2 order by id", (17, 31)),
        ("select ? as x, ? as y", (1.5, "text")),
        ("select id from types where d = ? and dec = ? and ts = ?", None),
        ("select * from readings order by id limit ?", (4,)),
        ("select i64 from types where s = ?", ("grün",)),
        ("select count(*) from readings where device is not distinct from ?", (None,)),
        ("select i64 from types where bin = ?", (b"\x00\xff",)),
    ],
)
def test_parameters_are_bound(
    connection: adbc.Connection, tables: dict[str, str], query: str, parameters: Any
) -> None:
    if parameters is None:
        query = query.replace("id from", "i64 from")
        row = TYPES.to_pylist()[0]
        parameters = (row["d"], row["dec"], row["ts"])
    opened = {name: ld.open(url) for name, url in tables.items()}
    expected = ld.sql(query, parameters=list(parameters), **opened).read_all()
    assert expected.num_rows
    assert answered(connection, query, parameters).to_pylist() == expected.to_pylist()


def test_a_prepared_statement_is_run_again_with_other_values(connection: adbc.Connection) -> None:
    query = "select id from readings where id % ? = 0 order by id"
    with connection.cursor() as cursor:
        schema = cursor.adbc_prepare(query)
        assert schema is not None
        assert len(schema) == 1
        for step in (100, 70):
            cursor.execute(query, (step,))
            assert cursor.fetchall() == [(id_,) for id_ in range(0, 240, step)]


@pytest.mark.parametrize("parameters", [(), (1, 2)])
def test_the_wrong_number_of_parameters_is_told(connection: adbc.Connection, parameters: Any) -> None:
    with pytest.raises(adbc_driver_manager.Error, match=r"1 parameters, and|were bound|[Pp]arameter"):
        answered(connection, "select id from readings where id = ?", parameters)


def test_a_statement_reads_the_newest_version_and_its_handle_pins_it(tmp_path: Path) -> None:
    url = readings_table(tmp_path, hours=1)
    with running_server(tmp_path, {"readings": url}) as server, connected(server) as connection:
        assert answered(connection, "select count(*) as n from readings")["n"].to_pylist() == [30]
        with connection.cursor() as cursor:
            plan = cursor.adbc_execute_partitions("select count(*) as n from readings")
            write_deltalake(url, pa.Table.from_pylist([reading(90)]), mode="append")
            cursor.adbc_read_partition(plan[0][0])
            assert cursor.fetchall() == [(30,)]
        assert answered(connection, "select count(*) as n from readings")["n"].to_pylist() == [31]


def test_the_catalog_is_listed(connection: adbc.Connection, tables: dict[str, str]) -> None:
    (catalog,) = connection.adbc_get_objects().read_all().to_pylist()
    (schema,) = catalog["catalog_db_schemas"]
    assert (catalog["catalog_name"], schema["db_schema_name"]) == ("lazydelta", "main")
    columns = {
        table["table_name"]: [column["column_name"] for column in table["table_columns"]]
        for table in schema["db_schema_tables"]
    }
    assert columns == {name: ld.open(url).to_arrow().schema.names for name, url in tables.items()}
    assert connection.adbc_get_table_types() == ["TABLE"]
    for name, url in tables.items():
        assert connection.adbc_get_table_schema(name) == ld.open(url).to_arrow().schema


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"table_name_filter": "read%"}, ["readings"]),
        ({"table_name_filter": "_ypes"}, ["types"]),
        ({"table_name_filter": "r.*"}, []),
        ({"db_schema_filter": "m%"}, ["readings", "types"]),
        ({"db_schema_filter": "n%"}, []),
        ({"catalog_filter": "lazydelta"}, ["readings", "types"]),
        ({"catalog_filter": "other"}, []),
        ({"table_types_filter": ["TABLE"]}, ["readings", "types"]),
        ({"table_types_filter": ["VIEW"]}, []),
    ],
)
def test_listings_are_narrowed(
    connection: adbc.Connection, filters: dict[str, Any], names: list[str]
) -> None:
    listed = connection.adbc_get_objects(depth="tables", **filters).read_all().to_pylist()
    found = [
        table["table_name"]
        for catalog in listed
        for schema in catalog["catalog_db_schemas"] or []
        for table in schema["db_schema_tables"] or []
    ]
    assert found == names


def test_the_server_says_what_it_is(connection: adbc.Connection) -> None:
    info = connection.adbc_get_info()
    assert info["vendor_name"] == "lazydelta"
    assert info["vendor_arrow_version"] == pa.__version__


def test_nothing_is_written(connection: adbc.Connection, server: RunningServer) -> None:
    for query in ("insert into readings values (1)", "create table x (i int)", "drop table readings"):
        with pytest.raises(adbc_driver_manager.NotSupportedError, match="only SELECT is served"):
            answered(connection, query)
    with connection.cursor() as cursor, pytest.raises(adbc_driver_manager.Error, match="not served"):
        cursor.adbc_ingest("readings", pa.table({"id": [1]}), mode="append")
    with pytest.warns(adbc_driver_manager.Warning, match="Cannot disable autocommit"):
        adbc.connect(f"grpc://127.0.0.1:{server.ports.flight}", autocommit=False).close()


def test_errors_have_their_statuses(connection: adbc.Connection) -> None:
    cases = {
        "select * from nope": ("NOT_FOUND", "there is no table 'nope'"),
        "select nope from readings": ("INVALID_ARGUMENT", 'Referenced column "nope"'),
        "selec": ("INVALID_ARGUMENT", "does not parse"),
        "select * from read_csv('/etc/passwd')": ("INVALID_ARGUMENT", "read_csv"),
        "set threads = 1": ("NOT_IMPLEMENTED", "only SELECT"),
    }
    for query, (status, told) in cases.items():
        with pytest.raises(adbc_driver_manager.Error) as caught:
            answered(connection, query)
        assert str(caught.value).startswith(status)
        assert told in str(caught.value)


def test_a_client_reads_its_own_tables_alone(tmp_path: Path, tables: dict[str, str]) -> None:
    more = "".join(
        f'[[clients]]\nname = "{name}"\ntoken_sha256 = "{token_digest(name)}"\n' for name in ("ann", "ben")
    )
    more += f'[tables.secret]\nurl = "{tables["readings"]}"\nreaders = ["ann"]\n'
    with running_server(tmp_path, {"open": tables["readings"]}, more) as server:
        with connected(server, "ann") as ann:
            query = "select count(*) from secret join open using (id)"
            assert answered(ann, query).to_pylist() == [{"count_star()": 240}]
        with connected(server, "ben") as ben:
            for name in ("secret", "lazydelta.main.secret"):
                with pytest.raises(adbc_driver_manager.ProgrammingError, match="there is no table"):
                    answered(ben, f"select * from {name}")
            listed = ben.adbc_get_objects(depth="tables").read_all().to_pylist()
            assert "secret" not in str(listed)
        with connected(server) as nobody, pytest.raises(adbc_driver_manager.Error, match="UNAUTHENTICATED"):
            answered(nobody, "select 1")


def cancels(cursor: Any, running: Callable[[], Any], has_ended: threading.Event) -> None:
    """Once it runs, and again: between two calls to the server there is nothing to cancel."""
    eventually(lambda: bool(running()))
    while not has_ended.wait(0.4):
        cursor.adbc_cancel()


def test_a_cancelled_query_stops_the_reads(
    s3_server: TableServer, many_stored: str, tmp_path: Path, folder: Path
) -> None:
    afar = served_from_afar(s3_server, many_stored, tmp_path)
    with afar as (server, proxy), connected(server) as connection:
        running = server.process.served.admission.running
        with connection.cursor() as cursor:
            cursor.execute("select * from many")
            reader = cursor.fetch_record_batch()
            assert reader.read_next_batch().num_rows
            assert len(running()) == 1
            cursor.adbc_cancel()
            assert becomes_quiet(proxy)
        assert files_read(proxy) < FILES
        assert eventually(lambda: not running())

        # One that is still working, with nothing to send.
        with connection.cursor() as cursor:
            proxy.reset()
            has_ended = threading.Event()
            cancelling = threading.Thread(target=cancels, args=(cursor, running, has_ended))
            cancelling.start()
            with pytest.raises(adbc_driver_manager.Error, match=r"(?i)cancel"):
                cursor.execute("select a.id, count(*) from many a, range(100000) b group by a.id")
                cursor.fetchall()
            has_ended.set()
            cancelling.join(60)
        assert eventually(lambda: not running())
        assert becomes_quiet(proxy)


def test_rows_and_time_of_statements_are_limited(tmp_path: Path, tables: dict[str, str]) -> None:
    more = "[limits]\nrows = 100\n"
    with running_server(tmp_path, tables, more) as server, connected(server) as connection:
        with pytest.raises(adbc_driver_manager.Error, match=r"more than 100 rows \(limits\.rows\)"):
            answered(connection, "select * from readings")
        assert answered(connection, "select * from readings limit 100").num_rows == 100
        text = server.path.read_text("utf-8")
        server.path.write_text(text.replace("rows = 100", "scan_seconds = 1"), "utf-8")
        assert server.process.reload()
        with pytest.raises(adbc_driver_manager.Error, match=r"limits\.scan_seconds"):
            answered(
                connection,
                "select count(*) from range(20000000000) a, range(1000000) b where a.range % 7 = b.range",
            )
        assert eventually(lambda: not server.process.served.admission.running())


def test_more_statements_than_share_the_memory_take_turns(
    server: RunningServer, tables: dict[str, str]
) -> None:
    query = "select device, sum(id) as s, count(*) as n from readings group by device order by device"
    expected = ld.sql(query, readings=ld.open(tables["readings"])).read_all()
    found: list[object] = []

    def ask() -> None:
        with connected(server) as connection:
            try:
                found.append(answered(connection, query) == expected)
            except adbc_driver_manager.Error as error:
                found.append(error)

    threads = [threading.Thread(target=ask) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 24
    assert eventually(lambda: not server.process.served.admission.running())
