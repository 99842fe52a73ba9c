"""The last hour behind latency and resets: `python -m bench.faults`.

Contract: the same query, each run in a process of its own from cold, alternately from a store that answers
after 30 ms and from one that also resets 5 % of the connections. The promise: at the median the second takes
at most as long as the first, two round trips and two first backoffs. Every answer is counted. The exit code
tells whether the promise holds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import msgspec

from bench.bars import save_bars
from bench.ladder_levels import L7
from bench.ladder_runs import Conduct, Place, Run, run_level, started
from bench.ladder_tables import HOUR, ladder_spec, ladder_table
from bench.pages import RESULTS, promises_kept, say
from bench.promises import Check
from bench.run import warm_up
from bench.tables import cache_folder
from lazydelta import limits

_FILES = 1_000_000


class FaultRuns(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured."""

    files: int
    latency_ms: float
    reset_share: float
    calm: list[Run]
    broken: list[Run]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    say(f"table of {options.files:,} files and its sidecar …")
    table = ladder_table(ladder_spec(options.files))
    warm_up(table.table.path)
    calm: list[Run] = []
    broken: list[Run] = []
    # Which requests break goes on from run to run, so that no two meet the same resets.
    with (
        _breaking(options.latency_ms, 0.0, seed=options.seed) as one,
        _breaking(options.latency_ms, options.reset_share, seed=options.seed) as other,
    ):
        kinds = (one, calm), (other, broken)
        for number in range(options.rounds):
            for place, runs in kinds if number % 2 == 0 else kinds[::-1]:
                conduct = Conduct(place=place, rounds=1, timeout_s=options.timeout, say=say)
                runs.append(run_level(table, L7, HOUR, conduct, number=number))
    results = FaultRuns(
        files=options.files,
        latency_ms=options.latency_ms,
        reset_share=options.reset_share,
        calm=calm,
        broken=broken,
    )
    checks = judge_faults(results)
    page = told(results, checks)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "faults.json").write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    (options.out / "faults.md").write_text(page)
    picture = save_bars("faults", {"seconds of the last hour, median": _medians(results)}, folder=options.out)
    print(f"{page}\n{picture}")
    return int(not all(check.passed for check in checks))


def judge_faults(results: FaultRuns) -> list[Check]:
    """The promises."""
    wrong = [run.failure or run.note for run in (*results.calm, *results.broken) if run.failure or run.note]
    answers = Check(
        promise="every answer is right and from the sidecar",
        passed=not wrong,
        measured=f"{len(wrong)} of {len(results.calm) + len(results.broken)} not" if wrong else "all",
    )
    promise = "at the median within the calm time, two round trips and two first backoffs"
    calm, broken = _seconds(results.calm), _seconds(results.broken)
    if not calm or not broken:
        return [answers, Check(promise=promise, passed=False, measured="not measured")]
    allowed = median(calm) + _allowance_s(results.latency_ms)
    return [
        answers,
        Check(
            promise=promise,
            passed=median(broken) <= allowed,
            measured=f"{median(broken):.3f} s, allowed {allowed:.3f} s",
        ),
    ]


def told(results: FaultRuns, checks: Sequence[Check]) -> str:
    """The figures and the verdicts, as a page."""
    met = [run for run in results.broken if run.facts.get("retries")]
    retries = sum(run.facts["retries"] for run in met)
    lines = [
        f"# The last hour of {results.files:,} files behind {results.latency_ms:g} ms, "
        f"{results.reset_share:.0%} of the connections reset",
        "",
        "| runs | number | median | 90 % within | slowest | requests, median |",
        "|---|---|---|---|---|---|",
        _row("without resets", results.calm),
        _row("with resets", results.broken),
        _row("… that met one", met),
        "",
        f"{len(met)} of {len(results.broken)} runs met a reset, {retries} attempts were repeated.",
        "",
        *promises_kept(checks),
    ]
    return "\n".join(lines) + "\n"


def _medians(results: FaultRuns) -> dict[str, float]:
    return {"without resets": median(_seconds(results.calm)), "with resets": median(_seconds(results.broken))}


def _row(name: str, runs: Sequence[Run]) -> str:
    seconds = _seconds(runs)
    if not seconds:
        return f"| {name} | 0 | | | | |"
    within = seconds[max(0, -(-len(seconds) * 9 // 10) - 1)]
    asked = median(run.facts["own_requests"] for run in runs if not run.failure)
    figures = f"{median(seconds):.3f} s | {within:.3f} s | {seconds[-1]:.3f} s | {asked:g}"
    return f"| {name} | {len(seconds)} | {figures} |"


def _seconds(runs: Sequence[Run]) -> list[float]:
    return sorted(run.facts["all_s"] for run in runs if not run.failure)


def _allowance_s(latency_ms: float) -> float:
    return 2 * latency_ms / 1000 + 2 * limits.BACKOFF_FIRST_SECONDS


@contextmanager
def _breaking(latency_ms: float, share: float, *, seed: int) -> Iterator[Place]:
    command = [sys.executable, "-m", "bench.faults_server", str(cache_folder() / "bench")]
    command += ["--latency-ms", str(latency_ms), "--reset-share", str(share), "--seed", str(seed)]
    with started(command) as place:
        yield place


def _parser() -> argparse.ArgumentParser:
    about = __doc__.split("\n\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=about)
    parser.add_argument("--files", type=int, default=_FILES)
    parser.add_argument("--rounds", type=int, default=41, help="runs of each kind")
    parser.add_argument("--latency-ms", type=float, default=30.0, help="of every request")
    parser.add_argument("--reset-share", type=float, default=0.05, help="of the requests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one run")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
