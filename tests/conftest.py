"""Fixtures shared by every folder of tests."""

import os
import signal
from collections.abc import Iterator

import pytest

from lazydelta.telemetry import LOGGER

# Most tests count requests, or damage files behind the reader's back: those of the cache switch it on.
os.environ.setdefault("DELTA_CACHE_BYTES", "0")

pytest_plugins = [
    "tests.support.costs",
    "tests.support.suites",
    "tests.support.workers",
    "tests.support.skips",
    "tests.support.machine_parts",
    "tests.support.hypothesis_profile",
    "tests.support.servers",
    "tests.support.slow_lake",
    "tests.support.spark",
    "tests.support.lake",  # after those that it imports
]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A run in the background ignores Ctrl-C, and so would every process that a test starts and interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def quiet_logger() -> Iterator[None]:
    """A command with --debug logs to its own stderr: left behind, later events fail on a closed file."""
    handlers, level = list(LOGGER.handlers), LOGGER.level
    yield
    if LOGGER.handlers != handlers or LOGGER.level != level:
        LOGGER.handlers[:] = handlers
        LOGGER.setLevel(level)
