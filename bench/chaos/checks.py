"""One question to lazydelta and its answer held against the replay of the version that it says it read.

Contract: each check returns the scans it made, all verified, or raises `WrongAnswer`. `lost`: a live file
or row is not in the answer; `wrong`: anything else. Lazydelta's own errors pass through; `judge.py` looks
at them.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from contextlib import closing
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import lazydelta as ld
from bench.chaos.kept_rows import DATA_COLUMNS, Digest, KeptRows, digest_of
from bench.chaos.live_files import LiveFiles
from bench.chaos.replay import Replay
from bench.chaos.world import HOUR_COLUMN, TableSpec, World
from tests.support.keys import FileKey

HELD_SECONDS = (0.0,) * 190 + (0.1,) * 8 + (1.0, 6.0)  # after the first file of a scan
OLDEST_BACK = 40  # versions that a pinned scan goes back, at most
ROWS_COLUMNS = (*DATA_COLUMNS, HOUR_COLUMN)
_SHOWN = 20


class WrongAnswer(Exception):  # noqa: N818 - it is an answer
    """What the answer lacks, or has too much."""

    def __init__(self, kind: str, detail: dict[str, Any]) -> None:
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail


class Asked:
    """What one check knows, and what it tells of each scan."""

    def __init__(
        self, world: World, spec: TableSpec, replay: Replay, rows: KeptRows, dice: random.Random
    ) -> None:
        self.world, self.spec, self.replay, self.rows, self.dice = world, spec, replay, rows, dice
        self.kind = ""
        self.query: dict[str, Any] = {}
        self.version: int | None = None
        self.explained = ""
        self.scans: list[dict[str, Any]] = []

    def open(self, *, may_pin: bool = True, options: dict[str, str] | None = None) -> ld.Table:
        """The newest version, or one of the past; never one older than what had been kept before."""
        newest = self.replay.newest()
        pinned = None
        if may_pin and self.dice.random() < 0.25:
            pinned = self.dice.randint(max(0, newest - OLDEST_BACK), newest)
            self.version = pinned
        self.query |= {"pinned": pinned, "options": options or {}}
        table = ld.open(
            self.spec.url, version=pinned, storage_options=self.spec.reader_options | (options or {})
        )
        self.version = table.version
        if pinned is not None and table.version != pinned:
            raise WrongAnswer("wrong", {"asked for": pinned, "opened": table.version})
        if pinned is None and table.version < newest:
            raise WrongAnswer("lost", {"newest": newest, "opened": table.version})
        return table

    def live(self, version: int) -> LiveFiles:
        """The files of that version."""
        if not self.replay.wait_for(version):
            raise WrongAnswer("wrong", {"version": version, "which": "was never committed"})
        return self.replay.at(version)

    def tell(self, scan: ld.Scan | None, tier: str | None = None) -> None:
        """One scan has been verified."""
        if scan is None:
            self.scans.append({"kind": self.kind, "tier": tier, "fallbacks": {}})
            return
        report = scan.explain()
        source = report.source.split(" ")[0]
        self.explained = str(report)
        self.scans.append(
            {
                "kind": self.kind,
                "tier": f"{source}, deltas" if report.delta_files else source,
                "fallbacks": dict(report.fallbacks_by_kind),
                "retries": report.retries,
            }
        )

    def hour(self) -> str:
        """One of the newest, mostly."""
        return self.world.hour(self.dice.choice([0, 0, 0, 1, 2, 5, 40, 300]))


def take(asked: Asked, table: ld.Table) -> None:
    """So many files, whichever."""
    limit = asked.dice.choice([1, 10, 100, 1000])
    hour = asked.hour()
    where = asked.dice.choice([None, f"{HOUR_COLUMN} >= '{hour}'"])
    _check_files(asked, table, where, lambda at: where is None or at >= hour, limit=limit)


def last_hour(asked: Asked, table: ld.Table) -> None:
    """The files of the newest hours."""
    hour = asked.world.hour(asked.dice.choice([0, 1, 3]))
    _check_files(asked, table, f"{HOUR_COLUMN} >= '{hour}'", lambda at: at >= hour)


def some_hours(asked: Asked, table: ld.Table) -> None:
    """The files of a range of hours, in order or not."""
    first, last = sorted(asked.dice.sample([asked.world.hour(back) for back in range(400)], 2))
    order = asked.dice.choice([None, "asc", "desc"])
    _check_files(
        asked,
        table,
        f"{HOUR_COLUMN} between '{first}' and '{last}'",
        lambda at: first <= at <= last,
        order=order,
    )


def every_file(asked: Asked, table: ld.Table) -> None:
    """The whole table."""
    _check_files(asked, table, None, lambda _: True, order=asked.dice.choice([None, None, "asc", "desc"]))


def by_value(asked: Asked, table: ld.Table) -> None:
    """Files that may hold small values: all that do, none that is not live."""
    bound = asked.dice.choice([0.25, 2.0, 10.0, 100.0])
    asked.query |= {"what": "by value", "bound": bound}
    scan = table.scan(f"value < {bound}")
    found = _keys(scan)
    live = asked.live(table.version)
    wanted = {key for key, action in live.items() if _least_value(action.get("stats")) < bound}
    _compare(asked, scan, found, wanted=wanted, allowed=set(live))


def file_pages(asked: Asked, table: ld.Table) -> None:
    """Pages of files, each by a table that is opened anew."""
    hour, order = asked.hour(), asked.dice.choice(["asc", "desc"])
    where = asked.dice.choice([None, f"{HOUR_COLUMN} >= '{hour}'"])
    size, pages_max = asked.dice.choice([20, 300, 2000]), asked.dice.randint(1, 5)
    asked.query |= {"what": "file pages", "where": where, "order": order, "size": size}
    live = asked.live(table.version)
    wanted = live.keys_of(lambda at: where is None or at >= hour)
    found: list[FileKey] = []
    token, at = None, table
    for _ in range(pages_max):
        scan = at.scan(where)
        page = scan.file_page(size, after=token, order=order)
        found += [(file.path, file.dv_id) for file in page.files]
        if page.version != table.version:
            raise WrongAnswer("wrong", {"page of": page.version, "first of": table.version})
        is_full = page.next_token is not None
        _compare(asked, scan, found, wanted=set() if is_full else wanted, allowed=wanted)
        _check_order(found, live, order, is_whole=not is_full)
        if not is_full:
            return
        token, at = page.next_token, asked.open(may_pin=False, options=asked.query["options"])
        asked.version = table.version


def rows_of_an_hour(asked: Asked, table: ld.Table) -> None:
    """Every row of an hour, or those with small values."""
    hour = asked.hour()
    bound = asked.dice.choice([None, None, 100.0])
    where = f"{HOUR_COLUMN} = '{hour}'" + ("" if bound is None else f" and value < {bound}")
    asked.query |= {"what": "rows of an hour", "where": where}
    scan = table.scan(where, order=asked.dice.choice([None, "asc", "desc"]))
    found = scan.to_arrow(list(ROWS_COLUMNS))
    wanted = asked.rows.of_hour(asked.live(table.version), hour)
    if bound is not None:
        wanted = wanted.filter(pc.less(wanted["value"], bound))
    _same_rows(asked, digest_of(found), digest_of(wanted), scan)


def every_row(asked: Asked, table: ld.Table) -> None:
    """The rows of the whole table."""
    asked.query |= {"what": "every row"}
    scan = table.scan()
    with scan.batches(list(ROWS_COLUMNS)) as batches:
        found = digest_of(batches.read_all())
    _same_rows(asked, found, asked.rows.digest(asked.live(table.version).items()), scan)


def take_rows(asked: Asked, table: ld.Table) -> None:
    """Some rows, each of which must be where it says it is."""
    limit = asked.dice.choice([1, 30, 300])
    hour = asked.hour()
    asked.query |= {"what": "take rows", "hour": hour, "limit": limit}
    scan = table.scan(f"{HOUR_COLUMN} >= '{hour}'", limit=limit)
    found = scan.to_arrow([*ROWS_COLUMNS, "_file_path", "_row_index"])
    live = asked.live(table.version)
    there = [(key, live[key]) for key in live.keys_of(lambda at: at >= hour)]
    count = 0
    by_path = {key[0]: (key, action) for key, action in there}
    for path in set(found["_file_path"].to_pylist()):
        if path not in by_path:
            raise WrongAnswer("wrong", {"path": path, "which": "is not live there"})
        given = found.filter(pc.equal(found["_file_path"], path))
        rows = asked.rows.rows(*by_path[path])
        kept = rows.filter(pc.is_in(rows["at"], given["_row_index"].combine_chunks()))
        _same_rows(asked, digest_of(given), digest_of(kept), None)
        count += given.num_rows
    enough = asked.rows.digest(there)[0] if count < limit else limit
    if count != min(limit, enough):
        raise WrongAnswer("lost", {"rows": count, "there are": enough, "limit": limit})
    asked.tell(scan)


def row_pages(asked: Asked, table: ld.Table) -> None:
    """Pages of the rows of an hour."""
    hour, order = asked.hour(), asked.dice.choice(["asc", "desc"])
    size = asked.dice.choice([50, 200])
    where = f"{HOUR_COLUMN} = '{hour}'"
    asked.query |= {"what": "row pages", "where": where, "order": order, "size": size}
    pages: list[pa.Table] = []
    token, at = None, table
    for _ in range(6):
        scan = at.scan(where)
        page = scan.page(size, after=token, order=order, columns=list(ROWS_COLUMNS))
        pages.append(page.rows)
        token = page.next_token
        if page.version != table.version or (token is not None and page.rows.num_rows != size):
            raise WrongAnswer("wrong", {"version": page.version, "rows": page.rows.num_rows})
        if token is None:
            wanted = asked.rows.of_hour(asked.live(table.version), hour)
            _same_rows(asked, digest_of(pa.concat_tables(pages)), digest_of(wanted), scan)
            return
        asked.tell(scan)
        at = asked.open(may_pin=False, options=asked.query["options"])
        asked.version = table.version


def by_sql(asked: Asked, table: ld.Table) -> None:
    """Sums by DuckDB."""
    hour = asked.hour()
    asked.query |= {"what": "sql", "hour": hour}
    counted = "select count(*), sum(id)::hugeint, sum(value), count(label), min(ts), max(ts) from t"
    found = table.sql(f"{counted} where {HOUR_COLUMN} = '{hour}'").fetchall()[0]
    rows = asked.rows.of_hour(asked.live(table.version), hour)
    total = pc.sum(rows["id"]).as_py()
    bounds = pc.min_max(rows["ts"]).as_py()
    wanted = (
        rows.num_rows,
        total,
        pc.sum(rows["value"]).as_py(),
        rows.num_rows - rows["label"].null_count,
        bounds["min"],
        bounds["max"],
    )
    if (found[0], *map(_number, found[1:3]), *found[3:]) != (
        wanted[0],
        *map(_number, wanted[1:3]),
        *wanted[3:],
    ):
        raise WrongAnswer(
            "lost" if found[0] < wanted[0] else "wrong", {"found": str(found), "is": str(wanted)}
        )
    asked.tell(None, "sql")


def stats_of_files(asked: Asked, table: ld.Table) -> None:
    """Statistics of some files by path; some of these are no longer live, or not yet."""
    newest = asked.replay.newest()
    other = asked.replay.at(asked.dice.randint(max(0, newest - 40), newest))
    paths = sorted({key[0] for key in asked.dice.sample(list(other), 5)})
    asked.query |= {"what": "stats of files", "paths": paths}
    answer = table.get_stats_for_files(paths, ["id"])
    live = {key[0] for key in asked.live(table.version)}
    found = dict(zip(paths, answer.column("live").to_pylist(), strict=True))
    if found != {path: path in live for path in paths}:
        raise WrongAnswer("lost", {"found": found})
    asked.tell(None, "look-up")


# What is asked, and how often.
Check = Callable[[Asked, ld.Table], None]
CHECKS: dict[Check, int] = {
    take: 30,
    last_hour: 30,
    some_hours: 6,
    every_file: 5,
    by_value: 6,
    file_pages: 5,
    rows_of_an_hour: 6,
    take_rows: 4,
    row_pages: 2,
    by_sql: 3,
    stats_of_files: 3,
}


def _check_files(
    asked: Asked,
    table: ld.Table,
    where: str | None,
    keeps: Callable[[str], bool],
    *,
    limit: int | None = None,
    order: str | None = None,
) -> None:
    asked.query |= {"what": "files", "where": where, "limit": limit, "order": order}
    scan = table.scan(where, limit=limit, order=order)
    pause = asked.dice.choice(HELD_SECONDS)
    found = _keys(scan, pause=pause)
    live = asked.live(table.version)
    wanted = live.keys_of(keeps)
    is_cut = limit is not None and limit < len(wanted)
    if is_cut and len(found) != limit:
        raise WrongAnswer("lost", {"found": len(found), "limit": limit, "there are": len(wanted)})
    _compare(asked, scan, found, wanted=set() if is_cut else wanted, allowed=wanted)
    if order is not None:
        _check_order(found, live, order, is_whole=not is_cut)


def _keys(scan: ld.Scan, *, pause: float = 0.0) -> list[FileKey]:
    found = []
    with closing(scan.files()) as files:
        for number, file in enumerate(files):
            found.append((file.path, file.dv_id))
            if number == 0:
                time.sleep(pause)
    return found


def _compare(
    asked: Asked, scan: ld.Scan, found: list[FileKey], *, wanted: set[FileKey], allowed: set[FileKey]
) -> None:
    asked.tell(scan)
    lost, more = wanted - set(found), set(found) - allowed
    if lost or more or len(set(found)) != len(found):
        asked.scans.pop()
        twice = sorted({str(key) for key in found if found.count(key) > 1}) if len(found) < 5000 else []
        raise WrongAnswer(
            "lost" if lost else "wrong",
            {
                "found": len(found),
                "lost": len(lost),
                "first lost": sorted(map(str, lost))[:_SHOWN],
                "not live": sorted(map(str, more))[:_SHOWN],
                "twice": twice[:_SHOWN],
                "repeats": len(found) - len(set(found)),
            },
        )


def _check_order(found: list[FileKey], live: LiveFiles, order: str, *, is_whole: bool) -> None:
    places = [(str(live[key]["partitionValues"][HOUR_COLUMN]), key[0]) for key in found]
    if places != sorted(places, reverse=order == "desc"):
        raise WrongAnswer("wrong", {"which": "is not in order", "order": order, "is whole": is_whole})


def _same_rows(asked: Asked, found: Digest, wanted: Digest, scan: ld.Scan | None) -> None:
    if scan is not None:
        asked.tell(scan)
    if found != wanted:
        if scan is not None:
            asked.scans.pop()
        kind = "lost" if found[0] < wanted[0] else "wrong"
        raise WrongAnswer(kind, {"digest found": list(found), "digest wanted": list(wanted)})


@lru_cache(maxsize=100_000)
def _least_value(text: str | None) -> float:
    """The least value by the statistics; minus infinity where they do not tell."""
    stats = json.loads(text or "{}")
    least = stats.get("minValues", {}).get("value")
    is_empty = stats.get("numRecords") == 0
    return float("inf") if is_empty else float("-inf") if least is None else float(least)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
