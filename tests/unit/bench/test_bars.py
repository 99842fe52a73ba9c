"""The picture of a few figures."""

from __future__ import annotations

from pathlib import Path

from bench.bars import save_bars


def test_a_picture_has_a_drawing_for_each_group(tmp_path: Path) -> None:
    one = save_bars("one", {"seconds": {"a": 1.0}}, folder=tmp_path / "new")
    two = save_bars("two", {"seconds": {"a": 1.0}, "MB": {"b": 2.0, "c": 0.0}}, folder=tmp_path / "new")
    assert (one.name, two.name) == ("one.png", "two.png")
    assert one.read_bytes().startswith(b"\x89PNG")
    height_of = {path: int.from_bytes(path.read_bytes()[20:24]) for path in (one, two)}
    assert height_of[two] > height_of[one]
