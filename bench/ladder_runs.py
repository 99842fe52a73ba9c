"""Every level, every query, on the local disk and behind latency: each run in a process of its own.

Contract: rounds alternate the order of levels, so that a machine that slows down slows all of them; what is
slow runs less often. A run that fails, miscounts, or reads from another source than its level is for is
told as such. The server of a store runs beside the readers and is ended with the run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from bench.ladder_levels import L0, L2, L7, Level
from bench.ladder_server import BUCKET
from bench.ladder_tables import EVENT, HOUR, QUERIES, LadderTable, Query
from bench.readers import READERS, last_words, printed_facts, run_once
from bench.tables import REPOSITORY
from bench.watched import Outcome, memory_fence_kb, run_watched

PlaceName = Literal["disk", "store"]
Say = Callable[[str], None]
# A first run longer than this is repeated once, and not at all.
_SLOW_S, _VERY_SLOW_S = 4.0, 20.0
_PEERS = ("duckdb", "kernel-java")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the tables are read from. `account` is the server's address."""

    name: PlaceName
    account: str | None = None

    def url(self, table: Path) -> str:
        """The address of a table in the cache."""
        return str(table) if self.account is None else f"s3://{BUCKET}/{table.name}"

    def options(self, prefix: str = "") -> dict[str, str]:
        """What opens it; delta-rs writes the names with a prefix."""
        if self.account is None:
            return {}
        given = {"endpoint": self.account, "region": "us-east-1"}
        given |= {"allow_http": "true", "skip_signature": "true"}
        return {prefix + name: value for name, value in given.items()}


DISK = Place(name="disk")


class Conduct(msgspec.Struct, frozen=True, kw_only=True):
    """How runs are made."""

    place: Place
    rounds: int
    timeout_s: float
    say: Say
    queries: tuple[str, ...] = ()  # by name; none: all of them


class AskedTable(Protocol):
    """A table that a query can be asked of, and how many files each query must find."""

    @property
    def path(self) -> Path:
        """Where it lies, or would; a store has it by its last name."""

    @property
    def answers(self) -> dict[str, int]:
        """By the query's name."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run: `facts` as the process printed them, or `failure` in words; `note` where something is odd."""

    table: str
    level: str
    query: str
    place: PlaceName
    round: int
    facts: dict[str, Any] = {}
    failure: str | None = None
    note: str = ""


@contextmanager
def served(folder: Path, latency_ms: float) -> Iterator[Place]:
    """The folder of tables behind that latency."""
    command = [sys.executable, "-m", "bench.ladder_server", str(folder), "--latency-ms", str(latency_ms)]
    with started(command) as place:
        yield place


@contextmanager
def started(command: Sequence[str]) -> Iterator[Place]:
    """The store of a server that prints its port."""
    with subprocess.Popen(list(command), stdout=subprocess.PIPE, text=True, env=_environment()) as server:
        try:
            assert server.stdout is not None
            port = json.loads(server.stdout.readline())["port"]
            yield Place(name="store", account=f"http://127.0.0.1:{port}")
        finally:
            server.terminate()


def run_ladder(table: LadderTable, conduct: Conduct, levels: Sequence[Level]) -> Iterator[Run]:
    """All queries at all levels, round by round; L0 once."""
    if L0 in levels:
        yield from run_eager(table, conduct)
    lazy = [level for level in levels if level is not L0]
    slowest: dict[tuple[str, str], float] = {}
    for number in range(conduct.rounds):
        for level in lazy if number % 2 == 0 else lazy[::-1]:
            for query in _queries(level, conduct):
                key = level.name, query.name
                if number < _rounds_of(slowest.get(key, 0.0), conduct.rounds):
                    run = run_level(table, level, query, conduct, number=number)
                    slowest[key] = max(slowest.get(key, 0.0), run.facts.get("all_s", 0.0))
                    yield run


def run_probes(table: LadderTable, conduct: Conduct) -> Iterator[Run]:
    """The tail alone, which memory is compared with, and a second query without a cache."""
    tail = Query(name="tail", title="the tail alone", limit=table.tail_files)
    for number in range(conduct.rounds):
        yield run_level(table, L2, tail, conduct, number=number, extra=("--tail-only",))
        yield run_level(table, L7, HOUR, conduct, number=number, extra=("--again",), name="again")


def run_eager(table: LadderTable, conduct: Conduct) -> Iterator[Run]:
    """L0: loaded once, asked everything."""
    place = conduct.place
    asked = {query.name: query.where() for query in QUERIES}
    command = _module("ladder_eager", place.url(table.table.path), json.dumps(asked))
    command += ["--storage-options", json.dumps(place.options("aws_")), *_account(place)]
    done, facts, failure = _watched(command, conduct.timeout_s)
    loaded = failure or f"loaded in {facts['load_s']:.2f} s"
    conduct.say(f"  {place.name:<5} {L0.name:<4} {loaded}")
    for query in QUERIES:
        told: dict[str, Any] = facts.get("queries", {}).get(query.name, {})
        told = _with_account(told)
        if query.limit is not None and told:
            told["files"] = min(told["files"], query.limit)
        wrong = failure or _miscount(table, query, told)
        yield Run(
            table="ladder",
            level=L0.name,
            query=query.name,
            place=place.name,
            round=0,
            facts=told | {"process_s": done.elapsed_s},
            failure=wrong,
        )


def run_peers(table: LadderTable, conduct: Conduct) -> Iterator[Run]:
    """The last hour, once, by other readers that can be asked for it."""
    for reader in READERS:
        if reader.name in _PEERS:
            facts, failure = run_once(reader, table.table.path, "hour", timeout_s=conduct.timeout_s)
            failure = failure or _miscount(table, HOUR, facts)
            took = failure or f"{facts['all_s']:.2f} s"
            conduct.say(f"  disk  {reader.name:<12} {took}")
            yield Run(
                table="ladder",
                level=reader.name,
                query="hour",
                place="disk",
                round=0,
                facts=facts,
                failure=failure,
            )


def run_level(
    table: AskedTable,
    level: Level,
    query: Query,
    conduct: Conduct,
    *,
    number: int,
    extra: Sequence[str] = (),
    name: str = "",
    label: str = "ladder",
) -> Run:
    """One query at one level."""
    place = conduct.place
    command = _module("ladder_reader", level.name, place.url(table.path), "--query", query.name)
    command += ["--storage-options", json.dumps(place.options()), *_account(place), *extra]
    command += [] if query.where() is None else ["--where", str(query.where())]
    command += [] if query.limit is None else ["--limit", str(query.limit)]
    _, facts, failure = _watched(command, conduct.timeout_s)
    facts = _with_account(facts)
    failure = failure or _miscount(table, query, facts)
    note = "" if failure else _other_source(level, query, facts)
    asked = name or query.name
    told = failure or f"first {facts['first_s']:.4f} s, all {facts['all_s']:.4f} s"
    conduct.say(f"  {place.name:<5} {level.name:<4} {asked:<6} {told} {note}".rstrip())
    return Run(
        table=label,
        level=level.name,
        query=asked,
        place=place.name,
        round=number,
        facts=facts,
        failure=failure,
        note=note,
    )


def _queries(level: Level, conduct: Conduct) -> list[Query]:
    # By event time the rungs differ as by the hour: the first and the last ones tell enough.
    asks_event = level.name in ("L1", "L5", "L6", "L7", "L8")
    asked = (*QUERIES, EVENT) if asks_event else QUERIES
    return [query for query in asked if not conduct.queries or query.name in conduct.queries]


def _rounds_of(slowest_s: float, rounds: int) -> int:
    if slowest_s > _VERY_SLOW_S:
        return 1
    return min(rounds, 2) if slowest_s > _SLOW_S else rounds


def _with_account(facts: dict[str, Any]) -> dict[str, Any]:
    """Requests, bytes and round trips by the server's account where there is one; our own beside them."""
    account = facts.get("server")
    if account is None:
        return facts
    names = ("requests", "bytes_read", "round_trips")
    own = {f"own_{name}": facts[name] for name in names if name in facts}
    return facts | own | {name: account[name] for name in names}


def _miscount(table: AskedTable, query: Query, facts: dict[str, Any]) -> str | None:
    wanted = table.answers.get(query.name, query.limit)
    counted = facts.get("files")
    if counted is None or counted == wanted:
        return None
    return f"counted {counted:,} files instead of {wanted:,}"


def _other_source(level: Level, query: Query, facts: dict[str, Any]) -> str:
    """What is odd: the files below the tail did not come from where this level takes them."""
    if query.limit is not None or level.has_cache:
        return ""
    source = facts.get("source", "")
    if level.tier is None:
        return "" if source.startswith("checkpoint") else f"read from {source}"
    return "" if source.endswith(f"({level.tier})") else f"read from {source}, not by {level.tier}"


def _account(place: Place) -> list[str]:
    return [] if place.account is None else ["--account", place.account]


def _module(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"bench.{name}", *arguments]


def _watched(command: list[str], timeout_s: float) -> tuple[Outcome, dict[str, Any], str | None]:
    done = run_watched(command, timeout_s=timeout_s, memory_max_kb=memory_fence_kb(), env=_environment())
    facts = printed_facts(done)
    if done.stopped:
        return done, {}, done.stopped
    if done.exit_code or facts is None:
        return done, {}, last_words(done)
    return done, facts, None


def _environment() -> dict[str, str]:
    modules = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"PYTHONPATH": modules}
