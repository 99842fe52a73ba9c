"""`make mutants`: draw mutants of the source by a seed and count those that the tests notice.

The draw depends on the seed and the source alone. Tests that need Java or a server are not run. Results are
kept in `build/mutants`, a folder for each pair of source and tests. The next call resumes an interrupted one.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.baseline import FOLDERS, BaselineError
from tests.mutants.drawing import PACKAGES, draw
from tests.mutants.report import report_text, write_report
from tests.mutants.runs import StoppedError
from tests.mutants.session import open_session

_ROOT = Path(__file__).parents[2]


def main(words: Sequence[str] | None = None) -> int:
    """The exit code is 0 whether mutants survive or not, 1 where the tests fail without one."""
    options = _parser().parse_args(words)
    tests, source = options.tests.resolve(), options.source.resolve() / "src"
    mutants = draw(source, seed=options.seed, count=options.mutants, packages=options.only or PACKAGES)
    if options.list:
        for mutant in mutants:
            print(f"{mutant.file}:{mutant.line}: {mutant.change.operator}")
            print(mutant.diff((source / mutant.file).read_bytes()))
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with open_session(
        source=source,
        tests=tests,
        folders=options.folder or FOLDERS,
        kept=options.keep,
        workers=options.workers,
    ) as session:
        try:
            verdicts, left_out = session.run(
                mutants, _say, seconds=options.seconds, module_seconds=options.module_seconds
            )
        except (BaselineError, StoppedError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("stopped; the next call goes on from here", file=sys.stderr)
            return 130
    name = "-".join([f"seed{options.seed}", str(options.mutants), *options.only]).replace("/", "-")
    place = session.folder / f"report-{name}.json"
    write_report(
        place, source=source, seed=options.seed, mutants=mutants, verdicts=verdicts, left_out=left_out
    )
    print(report_text(source, mutants, verdicts))
    print(f"\nwritten: {place}")
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--mutants", type=int, default=200, help="how many are drawn (200)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other mutants (1)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=PACKAGES,
        help="draw from this package; may be repeated",
    )
    parser.add_argument("--list", action="store_true", help="show the mutants drawn and run nothing")
    parser.add_argument("--workers", type=int, default=2, help="runs of tests side by side (2)")
    parser.add_argument(
        "--tests", type=Path, default=_ROOT, help="the checkout whose tests are run (this one)"
    )
    parser.add_argument(
        "--source", type=Path, default=_ROOT, help="the checkout whose source is changed (this one)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=480,
        help="time of the tests run for one mutant, by their own time (480)",
    )
    parser.add_argument(
        "--module-seconds",
        type=float,
        default=60,
        help="the same for a mutant that runs at import, which all tests of its module cover (60)",
    )
    parser.add_argument(
        "--folder", action="append", default=[], help="run the tests of this folder only; may be repeated"
    )
    parser.add_argument(
        "--keep", type=Path, default=_ROOT / "build" / "mutants", help="folder of the results"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
