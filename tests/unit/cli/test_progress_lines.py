"""Progress on stderr: what is known, in numbers for people."""

from __future__ import annotations

import pytest

from lazydelta.cli.progress_lines import ProgressLines


def test_a_line_tells_what_is_known_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    ProgressLines()("part_read", batch_id=None, rows=12_000, elapsed_ms=221.8797, file="a")
    assert capsys.readouterr().err == "part read: rows 12,000, elapsed ms 222, file a\n"
