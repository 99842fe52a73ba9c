"""How hard hypothesis looks: no deadline, because a test's time is the machine's, and a number to turn up.

`LAZYDELTA_EXAMPLES=2000 pytest tests/property` searches longer than the usual run does. A test that wants
another number than the usual one takes `@settings(max_examples=examples(15))`, which grows with the variable.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

USUAL = 40
WANTED = int(os.environ.get("LAZYDELTA_EXAMPLES") or USUAL)

# A test's own settings replace these of the profile where they name any: a busy machine fails such checks.
BUSY = (HealthCheck.too_slow, HealthCheck.data_too_large)
BUSY_AND_SHARED = (*BUSY, HealthCheck.function_scoped_fixture)  # for fixtures that any example may use again


def examples(number: int) -> int:
    """`number` in a usual run; with `LAZYDELTA_EXAMPLES` set, as many times more as that is above 40."""
    return max(1, number * WANTED // USUAL)


settings.register_profile("lazydelta", deadline=None, max_examples=WANTED, suppress_health_check=BUSY)
settings.load_profile("lazydelta")
