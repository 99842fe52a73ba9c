"""Targets that users write: filters, addresses, names, settings."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa

from fuzz import seeds as good
from fuzz.memory_storage import ROOT
from fuzz.mutate import TEXTS, json_changed, text_changed
from fuzz.reading import ALL, WrongAnswerError, expect_equal, live, opened
from fuzz.sql_filters import sql_filter
from fuzz.target import Target
from lazydelta.errors import UnsupportedTableError
from lazydelta.predicate import bind, parse_where
from lazydelta.protocol.paths import canonical_path, canonical_paths
from lazydelta.settings import CONFIG_VARIABLE, build_settings
from lazydelta.storage import LocalStorage, parse_address
from lazydelta.storage.address import without_signature
from lazydelta.storage.elsewhere import storage_of

_UNCHANGED, _GRAMMATICAL = 0.5, 0.75  # of filters in SQL, up to which share of them
_SQL = (
    "date = '2026-02-08' and value between 1 and 9",
    "device_id in ('a', 'b') or not (count <> 3 and ts >= timestamp '2026-02-08 10:00:00')",
    "value is not null and device_id like 'd%' escape '!' and 1 = 1",
    "`count` < cast('12' as bigint) and \"value\" > -1.5e3 or x'00ff' = device_id",
    "date >= date '2026-01-01' and (value > 1 or (value < 2 and (count = 3)))",
)
_WORDS = (
    *("and", "or", "not", "(", ")", "=", "<>", "<", ">=", "in", "between", "like", "is null", "null", "true"),
    *(
        "cast(",
        "as date",
        "date '",
        "timestamp '",
        "value",
        "count",
        "ts",
        "date",
        "a.b.c",
        "`x`",
        '"y"',
        "'",
    ),
    *("1", "-1", "1e400", "0x10", "x'0'", "--", "/*", ";", "select", "count(*)", "case when", "::int", "||"),
    *(
        "9" * 4400,
        "1." + "0" * 400,
        "'" + "é" * 30 + "'",
        "?",
        ":p",
        "@v",
        "{",
        "[",
        "interval '1' day",
        "exists",
    ),
)
_FORMS: tuple[object, ...] = (
    {"date": "2026-02-08", "value": {"gte": 1, "lt": 9}, "device_id": ["a", "b"], "ts": None},
    [["date", "=", "2026-02-08"], ["value", ">", 1], ["device_id", "not in", ["x"]]],
    [[["count", "is not", None]], [["device_id", "like", "d%"], ["value", "<=", 0.5]]],
    [["date", "in", ["2026-02-01", "2026-02-02"]]],
)
_URLS = (
    "s3://bucket/a/b%20c",
    "abfss://lake@acct.dfs.core.windows.net/t/x",
    "az://container/path",
    "https://acct.blob.core.windows.net/c/t",
    "abfss://ws@onelake.dfs.fabric.microsoft.com/l.Lakehouse/Tables/t",
    "file:///tmp/x",
    "/tmp/a/../b",
    "relative/path",
)
_URL_WORDS = (
    *("://", ":/", "@", "[", "]", "?", "#", "?sig=x", "%2e%2e/", "%00", "\0", "..", "//", "\\", "user:pw@"),
    *("s3a", "abfs", "http", "localhost", ":443", ":99999999", "xn--", "\uff5e", "[::1]", "é", "~"),
)
_PATHS = (
    "part-0.parquet",
    "date=2026-02-08/a%20b.parquet",
    "/fuzz/table/x.parquet",
    "file:///fuzz/table/x",
    "file:/fuzz/other/x",
    "s3://b/k",
)
_PATH_WORDS = (
    *(
        "..",
        "../",
        "/..",
        "%2e%2e/",
        "%2E%2E%2F",
        "..%2f",
        "%252e%252e/",
        "/",
        "//",
        "./",
        "\\",
        "..\\",
        "\0",
    ),
    *("%00", "%5c", "file:", "file://", "file:///", "s3://x/", "x:", "C:\\", "~", "é", "%c3%a9", "x" * 5000),
)
_TOML = """
[delta]
batch_size = 100
"commit.parallelism" = 3
[delta.sidecar]
enabled = true
directory = "_lazy"
[delta.request]
timeout_seconds = 2.5
attempts_max = "4"
[ingest]
url = "x"
"""
_TOML_WORDS = (
    *(
        "[",
        "]",
        "[[",
        "=",
        '"',
        "'''",
        "\n",
        "# ",
        "inf",
        "nan",
        "-1",
        "1e400",
        "9" * 5000,
        "2026-02-08",
        "{}",
    ),
    *(
        "[delta.sidecar]",
        "delta.cache.bytes = 0",
        "true",
        "[" * 3000,
        "{a=" * 500,
        "\\u0000",
        "../x",
        "a.b.c.d",
    ),
)


class _SqlFilters:
    """A filter as SQL text."""

    name, share = "predicate-sql", 40
    modules = (
        "predicate/sql.py",
        "predicate/binding.py",
        "predicate/evaluate.py",
        "predicate/typed_literal.py",
    )

    def prepare(self, seeds: Path) -> None:
        """A small table to filter."""
        self.table = opened(dict(good.load(seeds, "commits")))
        self.all = set(live(self.table))

    def make(self, dice: Random) -> bytes:
        """Right by the grammar, or with words put in, cut out, doubled."""
        kind = dice.random()
        text = sql_filter(dice) if kind < _GRAMMATICAL else dice.choice(_SQL)
        text = text if kind < _UNCHANGED else text_changed(text, dice, _WORDS)
        return text.encode("utf-8", "surrogatepass")

    def run(self, body: bytes) -> None:
        """What is read can be written and read again, and finds no more files than there are."""
        _judge_filter(self, body.decode("utf-8", "surrogatepass"), is_round_trip=True)


class _FilterForms(_SqlFilters):
    """A filter as JSON text or as Python lists of conditions, as partitions are chosen."""

    name, share = "predicate-forms", 8
    modules = ("predicate/forms.py", "predicate/literal.py", "predicate/column.py", "predicate/nesting.py")

    def make(self, dice: Random) -> bytes:
        """JSON, or something like it."""
        text = json_changed(
            dice.choice(_FORMS), dice, ("gte", "in", "like", "is_null", "value", "ts", "not_in")
        )
        return text.encode("utf-8", "surrogatepass")

    def run(self, body: bytes) -> None:
        """As text, and as what it stands for."""
        text = body.decode("utf-8", "surrogatepass")
        if len(text) % 2:
            _judge_filter(self, text, is_round_trip=False)
            return
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return
        _judge_filter(self, value, is_round_trip=False)


class _Urls:
    """The address of a table."""

    name, share = "url", 210
    modules = ("storage/address.py",)

    def prepare(self, seeds: Path) -> None:
        """Nothing but text."""
        del seeds

    def make(self, dice: Random) -> bytes:
        """Another address, or none."""
        return text_changed(dice.choice(_URLS), dice, (*_URL_WORDS, *TEXTS)).encode("utf-8", "surrogatepass")

    def run(self, body: bytes) -> None:
        """The canonical address of an address is its own canonical address."""
        bare, _ = without_signature(body.decode("utf-8", "surrogatepass"))
        address = parse_address(bare)
        if address.kind == "local" and not address.path.strip("/"):
            return  # the root of the disk has no name that an object's could be put behind
        again = parse_address(address.root)
        expect_equal(again.root, address.root)


class _Paths:
    """A path in the log: wherever it leads, not out of the table unless it says so."""

    name, share = "path", 300
    modules = ("protocol/paths.py", "storage/names.py", "storage/elsewhere.py")

    def prepare(self, seeds: Path) -> None:
        """A folder that is not there."""
        del seeds
        self.storage = LocalStorage("/fuzz/table", ROOT)

    def make(self, dice: Random) -> bytes:
        """Another path."""
        return text_changed(dice.choice(_PATHS), dice, (*_PATH_WORDS, *TEXTS[:18])).encode("utf-8", "replace")

    def run(self, body: bytes) -> None:
        """Below the root, or by an absolute URI in the open."""
        path = canonical_path(body.decode(), ROOT)
        if len(body) % 8 == 0:  # whole columns of them take another way
            found = canonical_paths(pa.array([body.decode(), "a.parquet"]), ROOT)
            expect_equal(found.to_pylist(), [path, "a.parquet"])
        storage, name = storage_of(self.storage, path)
        if not isinstance(storage, LocalStorage):
            raise UnsupportedTableError("of another store", path, "none")
        place = storage._path(name)
        if "://" not in path and os.path.normpath(place) != place.rstrip("/"):
            raise WrongAnswerError(f"{path!r} leads to {place!r}")
        if "://" not in path and not place.startswith("/fuzz/table/"):
            raise WrongAnswerError(f"{path!r} leads to {place!r}")


class _SettingsFiles:
    """A settings file, the environment and storage options."""

    name, share = "settings", 150
    modules = ("settings.py",)

    def prepare(self, seeds: Path) -> None:
        """A file to write inputs to, in memory where the machine has a place for that."""
        shared = Path("/dev/shm")
        folder = shared if shared.is_dir() else seeds.parent
        self.path = folder / f"lazydelta-fuzz-{os.getpid()}.toml"

    def make(self, dice: Random) -> bytes:
        """TOML, or something like it."""
        return text_changed(_TOML, dice, (*_TOML_WORDS, *TEXTS)).encode("utf-8", "surrogatepass")

    def run(self, body: bytes) -> None:
        """Numbers that are numbers, folders that are folders."""
        try:
            self.path.write_bytes(body)
            value = body[: len(body) % 40].decode("utf-8", "replace")
            environment = {CONFIG_VARIABLE: str(self.path)}
            if len(body) % 3 == 0:
                environment = {"DELTA_BATCH_SIZE": value, "DELTA_SIDECAR_ENABLED": value}
            build_settings(
                {"delta.cache.bytes": value} if len(body) % 5 == 0 else None, environment=environment
            )
        finally:
            self.path.unlink(missing_ok=True)


def _judge_filter(target: _SqlFilters, where: object, *, is_round_trip: bool) -> None:
    expression = parse_where(where)  # type: ignore[arg-type]  # whatever a caller has at hand
    if is_round_trip:
        expect_equal(str(parse_where(str(expression))), str(expression))
    snapshot = target.table.scan().source.snapshot
    bind(expression, snapshot.schema, snapshot.state.metadata.partition_columns, where=ROOT)
    if len(str(where)) % 4 == 0 and not set(live(target.table, expression, limit=ALL)) <= target.all:
        raise WrongAnswerError("a filter found more than there is")


TARGETS: tuple[Callable[[], Target], ...] = (
    _SqlFilters,
    _FilterForms,
    _Urls,
    _Paths,
    _SettingsFiles,
)
