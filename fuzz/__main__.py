"""`python -m fuzz`: a long run over every parser, or one input again.

python -m fuzz --inputs 1000000 --seed 1
python -m fuzz --target commits --inputs 20000
python -m fuzz --replay .cache/fuzz/failures/commits-1-42.bin
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

import msgspec

from fuzz.line_coverage import Lines
from fuzz.report import table_text
from fuzz.targets import all_targets
from fuzz.watch import HANG_SECONDS, Plan, read_lines, run, shares
from fuzz.worker import outcome

_TRACED = 1500  # inputs of each target whose lines are watched, which is slow
_TRACED_SECONDS = 25.0  # of the processor, for the same: most lines are run by the first hundred inputs


def main() -> int:
    """Run; the exit code is 1 where something escaped."""
    options = _options()
    if options.replay is not None:
        return _replay(options.replay, options.folder)
    options.folder.mkdir(parents=True, exist_ok=True)
    counts = shares(options.inputs, options.target)
    plan = Plan(folder=options.folder, seed=options.seed, processes=options.processes, counts=counts)
    tallies = run(plan)
    lines = _lines_run(plan) if options.coverage else {}
    text = table_text(tallies, lines)
    (options.folder / "report.md").write_text(f"Seed {options.seed}.\n\n{text}\n", "utf-8")
    print(text)
    escaped = sum(tally.escaped for tally in tallies.values())
    if escaped:
        print(f"{escaped} escaped: see {options.folder / 'failures'}", file=sys.stderr)
    return 1 if escaped else 0


def _lines_run(plan: Plan) -> dict[str, Lines]:
    """The lines that the first inputs of each target run; the run itself is not slowed down by watching."""
    with tempfile.TemporaryDirectory(dir=plan.folder) as folder:
        traced = {name: min(_TRACED, count) for name, count in plan.counts.items()}
        run(
            msgspec.structs.replace(
                plan,
                counts=traced,
                lines=Path(folder),
                seconds_max=_TRACED_SECONDS,
                hang_seconds=2 * HANG_SECONDS,
            )
        )
        return {name: read_lines(Path(folder) / f"{name}.json") for name in traced}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz every parser.")
    cache = Path(os.environ.get("LAZYDELTA_CACHE") or ".cache")
    parser.add_argument("--inputs", type=int, default=1_200_000, help="over all targets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--target", action="append", default=[], choices=list(all_targets()))
    parser.add_argument("--folder", type=Path, default=cache / "fuzz", help="for seeds, failures, report")
    parser.add_argument("--coverage", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--replay", type=Path, help="a saved input")
    return parser.parse_args()


def _replay(path: Path, folder: Path) -> int:
    found = re.fullmatch(r"(.+)-\d+-\d+", path.stem)
    if found is None:
        raise SystemExit(f"{path.name} is not the name of a saved input")
    target = all_targets()[found[1]]
    target.prepare(folder / "seeds")
    told = outcome(target, path.read_bytes())
    print(told)
    return 0 if told in ("refused", "answered") else 1


if __name__ == "__main__":
    sys.exit(main())
