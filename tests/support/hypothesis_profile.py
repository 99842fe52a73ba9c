"""How hard hypothesis looks: no deadline, because a test's time is the machine's, and a number to turn up.

`LAZYDELTA_EXAMPLES=2000 pytest tests/property` searches longer than the usual run does.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "lazydelta",
    deadline=None,
    max_examples=int(os.environ.get("LAZYDELTA_EXAMPLES") or 60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("lazydelta")
