"""Chromium for the tests of the web page, and tables for it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.chromium import browser
from tests.support.page import machines_table

__all__ = ["browser", "machines"]


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """A copy of the table of so many days, which was written once."""
    written: dict[int, str] = {}

    def copied_to(folder: Path, *, days: int = 2) -> str:
        if days not in written:
            written[days] = machines_table(tmp_path_factory.mktemp("machines"), days=days)
        return str(shutil.copytree(written[days], folder / "machines"))

    return copied_to
