"""The table of a run: inputs, refusals, answers, escapes and coverage of each target."""

from __future__ import annotations

from collections.abc import Mapping

from fuzz.line_coverage import Lines, share_run
from fuzz.targets import all_targets
from fuzz.watch import Tally

_HEAD = ("target", "inputs", "refused", "answered", "escaped", "µs each", "coverage", "of")


def table_text(tallies: Mapping[str, Tally], lines: Mapping[str, Lines]) -> str:
    """As Markdown."""
    rows = [_HEAD, tuple("-" * len(name) for name in _HEAD)]
    for name, tally in tallies.items():
        modules = all_targets()[name].modules
        share = f"{share_run(modules, lines[name]):.0%}" if name in lines else "-"
        rows.append((name, *_numbers(tally), share, ", ".join(modules)))
    whole = Tally()
    for tally in tallies.values():
        for field in Tally.__struct_fields__:
            setattr(whole, field, getattr(whole, field) + getattr(tally, field))
    rows.append(("all", *_numbers(whole), "", ""))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _numbers(tally: Tally) -> tuple[str, ...]:
    each = tally.microseconds / max(1, tally.inputs)
    return (*(f"{n:,}" for n in (tally.inputs, tally.refused, tally.answered, tally.escaped)), f"{each:,.0f}")
