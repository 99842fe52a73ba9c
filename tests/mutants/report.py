"""What a call of `make mutants` prints and writes at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tests.mutants.drawing import PACKAGES, Mutant
from tests.mutants.judging import Status, Verdict


def report_text(source: Path, mutants: Sequence[Mutant], verdicts: Mapping[str, Verdict]) -> str:
    """The survivors with their changes, then the share killed for each package."""
    lines = []
    for mutant in sorted(mutants, key=lambda one: (one.file, one.line)):
        verdict = verdicts[mutant.key]
        if not verdict.status.is_killed:
            lines += ["", f"{mutant.file}:{mutant.line}: {verdict.status} ({_tests(verdict)})"]
            lines.append(mutant.diff((source / mutant.file).read_bytes()))
    lines += [
        "",
        f"{'package':<16}{'mutants':>8}{'killed':>8}{'share':>8}   of which by time or memory; not covered",
    ]
    for package in [*PACKAGES, "all"]:
        own = [verdicts[mutant.key].status for mutant in mutants if package in (mutant.package, "all")]
        if own:
            killed = sum(status.is_killed for status in own)
            limits = sum(status in (Status.TIMEOUT, Status.MEMORY) for status in own)
            row = f"{package:<16}{len(own):>8}{killed:>8}{killed / len(own):>8.1%}"
            lines.append(f"{row}   {limits}; {own.count(Status.NOT_COVERED)}")
    return "\n".join(lines)


def write_report(
    place: Path,
    *,
    source: Path,
    seed: int,
    mutants: Sequence[Mutant],
    verdicts: Mapping[str, Verdict],
    left_out: Sequence[str],
) -> None:
    """The same as JSON, with each mutant's change and the test that killed it."""
    found = {
        "seed": seed,
        "mutants": len(mutants),
        "killed": sum(verdicts[mutant.key].status.is_killed for mutant in mutants),
        "tests_left_out": list(left_out),
        "results": [
            {
                "package": mutant.package,
                "file": mutant.file,
                "line": mutant.line,
                "operator": mutant.change.operator,
                "diff": mutant.diff((source / mutant.file).read_bytes()),
                **msgspec.to_builtins(verdicts[mutant.key]),
            }
            for mutant in mutants
        ],
    }
    place.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))


def _tests(verdict: Verdict) -> str:
    text = f"{verdict.tests_chosen} of {verdict.tests_covering} tests that cover it were run"
    if verdict.doubts:
        text += f"; failed, but not by the mutant: {', '.join(verdict.doubts)}"
    return text
