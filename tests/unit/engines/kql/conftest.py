"""One table of telemetry for all tests of KQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from lazydelta.engines.kql.result import KqlResult
from tests.support.kql_tables import telemetry_table

Ask = Callable[..., KqlResult]


@pytest.fixture(scope="session")
def telemetry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for each of 24 hours, with the properties that tell of the event time."""
    return telemetry_table(tmp_path_factory.mktemp("kql") / "TelemetryDelta")


@pytest.fixture
def ask(telemetry: Path) -> Ask:
    """Ask the table, which is `T` and `TelemetryDelta`."""

    def asked(query: str, **more: Any) -> KqlResult:
        table = ld.open(telemetry)
        return ld.kql(query, T=table, TelemetryDelta=table, **more)

    return asked
