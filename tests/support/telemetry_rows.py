"""Telemetry as JSON files: every row has an id of its own, so that lost and doubled ones can be named.

Contract: `TelemetryFiles(folder).add()` makes the next file appear at once and whole (written beside, then
renamed); the same seed makes the same rows. `good` and `bad` hold the ids that must end in the table and
beside it. Bad rows: a null time, a time that is none, text that is no JSON (its id stands in the text).
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterator
from pathlib import Path

FIRST_MOMENT = dt.datetime(2026, 2, 10, 22, 0, tzinfo=dt.UTC)
CITIES = ("Oslo", "Quito", "Hanoi", "Accra")
MINUTES_PER_FILE = 20  # three files an hour: hours are shared between files and batches
LATE_SHARE = 0.05
LATE_HOURS_MAX = 5


class TelemetryFiles:
    """A folder that files arrive in."""

    def __init__(self, folder: Path, *, seed: int = 7) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.good: set[str] = set()
        self.bad: set[str] = set()
        self.count = 0
        self._random = random.Random(seed)

    def add(self, *, rows: int = 40, bad: int = 2, **extra: object) -> Path:
        """One more file; `extra` keys stand in each of its good rows."""
        lines = [json.dumps(row | extra) for row in self._good_rows(rows)]
        for position, line in enumerate(self._bad_lines(bad)):
            lines.insert(position * 7 % (len(lines) + 1), line)
        path = self.folder / f"part-{self.count:05}.json"
        self.count += 1
        appear(path, "".join(f"{line}\n" for line in lines).encode())
        return path

    def _good_rows(self, rows: int) -> Iterator[dict[str, object]]:
        start = FIRST_MOMENT + dt.timedelta(minutes=MINUTES_PER_FILE * self.count)
        for number in range(rows):
            name = f"{self.count:05}-{number:05}"
            self.good.add(name)
            moment = start + dt.timedelta(seconds=self._random.randrange(MINUTES_PER_FILE * 60))
            if self._random.random() < LATE_SHARE:
                moment -= dt.timedelta(hours=self._random.randint(1, LATE_HOURS_MAX))
            yield {
                "id": name,
                "device_id": f"sensor-{self._random.randrange(50)}",
                "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                "value": round(self._random.gauss(20, 5), 3),
                "city": self._random.choice(CITIES),
                "tags": ["indoor", f"floor-{self._random.randrange(4)}"],
            }

    def _bad_lines(self, bad: int) -> Iterator[str]:
        for number in range(bad):
            name = f"bad-{self.count:05}-{number:05}"
            self.bad.add(name)
            row: dict[str, object] = {"id": name, "device_id": "sensor-0", "value": 1.5}
            match number % 3:
                case 0:
                    yield json.dumps(row | {"timestamp": None})
                case 1:
                    yield json.dumps(row | {"timestamp": "yesterday"})
                case 2:
                    yield json.dumps(row | {"timestamp": None})[:-1]


def appear(path: Path, body: bytes) -> None:
    """Let a file come into being whole; readers of the folder never see a part of it."""
    hidden = path.with_name(f".{path.name}.part")
    hidden.write_bytes(body)
    hidden.rename(path)
