"""A few tests that failed in a full run are run once more, alone: `python -m tests.support.second_try`.

Why: a full run is thousands of tests beside servers, browsers and Spark on two cores. One that was starved of
the machine says nothing of the code, and the run takes most of an hour.
Contract: what failed is read from pytest's cache, so the run before must have cleared it. More than `FEW`
tests, or any whose inputs chance decides, count as failed and are not run again. What passes now is named as
unsteady: that is a defect of the test or of the code, to be mended.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.workers import JAVA, SESSION

FEW = 3
BY_CHANCE = "tests/property/"  # a failing input that comes once in a thousand is still a failing input
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def failed_tests(cache: Path = LAST_FAILED) -> list[str]:
    """The tests that failed, by the names that pytest takes, without the groups that xdist adds."""
    if not cache.exists():
        return []
    return [
        name.removesuffix(f"@{SESSION}").removesuffix(f"@{JAVA}") for name in json.loads(cache.read_text())
    ]


def refusal(failed: list[str]) -> str | None:
    """Why these tests get no second try, if they get none."""
    if not failed:
        return "no test is known to have failed: the run ended before its tests did"
    if len(failed) > FEW:
        return f"{len(failed)} tests failed, more than {FEW}"
    chance = [name for name in failed if name.startswith(BY_CHANCE)]
    return f"{chance[0]} has found an input" if chance else None


def main() -> int:
    failed = failed_tests()
    why_not = refusal(failed)
    if why_not is not None:
        print(f"no second try: {why_not}")
        return 1
    print("a second try, alone:", *failed, sep="\n  ")
    code = subprocess.run([sys.executable, "-m", "pytest", *failed], check=False).returncode
    if code == 0:
        print("UNSTEADY, to be mended (failed beside others, passed alone):", *failed, sep="\n  ")
    return code


if __name__ == "__main__":
    sys.exit(main())
