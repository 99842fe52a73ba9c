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
from pathlib import Path

from fuzz.report import table_text
from fuzz.targets import all_targets
from fuzz.watch import Plan, read_lines, run, shares
from fuzz.worker import outcome

_TRACED = 1500  # inputs of each target whose lines are watched, which is slow


def main() -> int:
    """Run; the exit code is 1 where something escaped."""
    options = _options()
    if options.replay is not None:
        return _replay(options.replay, options.folder)
    options.folder.mkdir(parents=True, exist_ok=True)
    counts = shares(options.inputs, options.target)
    plan = Plan(folder=options.folder, seed=options.seed, processes=options.processes, counts=counts)
    tallies = run(plan)
    lines = {}
    for name in counts if options.coverage else ():
        path = options.folder / f"lines-{name}.json"
        path.unlink(missing_ok=True)
        traced = min(_TRACED, counts[name])
        run(Plan(folder=options.folder, seed=options.seed, processes=1, counts={name: traced}, lines=path))
        lines[name] = read_lines(path)
    text = table_text(tallies, lines)
    (options.folder / "report.md").write_text(f"Seed {options.seed}.\n\n{text}\n", "utf-8")
    print(text)
    escaped = sum(tally.escaped for tally in tallies.values())
    if escaped:
        print(f"{escaped} escaped: see {options.folder / 'failures'}", file=sys.stderr)
    return 1 if escaped else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz every parser.")
    cache = Path(os.environ.get("LAZYDELTA_CACHE") or ".cache")
    parser.add_argument("--inputs", type=int, default=4_000_000, help="over all targets")
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
