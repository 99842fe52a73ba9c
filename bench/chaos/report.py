"""The account of a run: what every process told, added up, as a table and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

FAILED = "FAILED"


class Tally:
    """Numbers of a run so far."""

    def __init__(self) -> None:
        self.scans: Counter[tuple[str, str]] = Counter()  # kind, store
        self.tiers: Counter[tuple[str, str]] = Counter()  # tier, store
        self.fallbacks: Counter[tuple[str, str]] = Counter()
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.operations: Counter[tuple[str, str]] = Counter()  # operation, outcome
        self.faults: Counter[str] = Counter()
        self.kills: Counter[str] = Counter()
        self.retries = 0
        self.troubles: list[str] = []
        self.slowest: dict[str, float] = {}

    @property
    def verified(self) -> int:
        """Scans whose answer was held against the replay."""
        return sum(self.scans.values())

    @property
    def failed(self) -> int:
        """Questions that came out as none may."""
        return sum(count for (outcome, _), count in self.outcomes.items() if outcome.startswith(FAILED))

    def take(self, event: dict[str, Any], store: str) -> None:
        """One line of a process's account."""
        if "fault" in event:
            self.faults[f"{event['fault']} ({store})"] += 1
        elif "op" in event:
            self.operations[event["op"], event["outcome"]] += 1
            if event.get("trouble"):
                self.troubles.append(event["trouble"])
        elif "outcome" in event:
            self._question(event, store)

    def _question(self, event: dict[str, Any], store: str) -> None:
        kind = event["kind"]
        self.outcomes[event["outcome"], store] += 1
        self.slowest[kind] = max(self.slowest.get(kind, 0.0), event["ms"])
        for scan in event["scans"]:
            self.scans[scan["kind"], store] += 1
            self.tiers[scan["tier"], store] += 1
            self.retries += scan.get("retries", 0)
            for reason, count in scan["fallbacks"].items():
                self.fallbacks[reason, store] += count


def render(tally: Tally, *, stores: list[str], facts: dict[str, Any]) -> str:
    """The table that is printed."""
    sections = [f"{name:<34}{value}" for name, value in facts.items()]
    sections += _grid("verified scans", tally.scans, stores)
    sections += _grid("by tier", tally.tiers, stores)
    sections += _grid("fallbacks by reason", tally.fallbacks, stores)
    sections += _grid("questions by outcome", tally.outcomes, stores)
    sections += _list("faults of the line", tally.faults)
    sections += _list("kills", tally.kills)
    outcomes = Counter({f"{op}: {outcome}": count for (op, outcome), count in tally.operations.items()})
    sections += _list("operations of writers", outcomes)
    sections += ["", "slowest question (ms)"]
    sections += [f"  {kind:<40}{ms:>10,.0f}" for kind, ms in sorted(tally.slowest.items())]
    return "\n".join(sections)


def save(path: Path, tally: Tally, facts: dict[str, Any]) -> None:
    """The same as JSON."""
    told: dict[str, Any] = {"facts": facts, "retries": tally.retries, "troubles": tally.troubles}
    for name in ("scans", "tiers", "fallbacks", "outcomes", "operations"):
        told[name] = [[*key, count] for key, count in sorted(getattr(tally, name).items())]
    told |= {"faults": dict(tally.faults), "kills": dict(tally.kills), "slowest ms": tally.slowest}
    path.write_text(json.dumps(told, indent=1, default=str))


def _grid(title: str, counts: Counter[tuple[str, str]], stores: list[str]) -> list[str]:
    lines = ["", f"{title:<42}" + "".join(f"{store:>10}" for store in [*stores, "all"])]
    for row in sorted({row for row, _ in counts}):
        numbers = [counts[row, store] for store in stores]
        lines.append(f"  {row:<40}" + "".join(f"{number:>10,}" for number in [*numbers, sum(numbers)]))
    totals = [sum(count for (_, at), count in counts.items() if at == store) for store in stores]
    lines.append(f"  {'all':<40}" + "".join(f"{number:>10,}" for number in [*totals, sum(totals)]))
    return lines


def _list(title: str, counts: Counter[str]) -> list[str]:
    return ["", title, *(f"  {name:<50}{count:>10,}" for name, count in sorted(counts.items()))]
