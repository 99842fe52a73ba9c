"""How hard hypothesis looks: no deadline, because a test's time is the machine's, and a number to turn up.

`LAZYDELTA_EXAMPLES=2000 pytest tests/property` searches longer than the usual run does.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A test's own settings replace these of the profile where they name any: a busy machine fails such checks.
BUSY = (HealthCheck.too_slow, HealthCheck.data_too_large)
BUSY_AND_SHARED = (*BUSY, HealthCheck.function_scoped_fixture)  # for fixtures that any example may use again

settings.register_profile(
    "lazydelta",
    deadline=None,
    max_examples=int(os.environ.get("LAZYDELTA_EXAMPLES") or 40),
    suppress_health_check=BUSY,
)
settings.load_profile("lazydelta")
