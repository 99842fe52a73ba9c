"""The drawings of the documentation can be read on light and on dark pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

DRAWINGS = sorted((Path(__file__).resolve().parents[1] / "docs" / "images").glob("*.svg"))
RULE = re.compile(r'\[(fill|stroke)="(#[0-9a-f]{6})"\] \{ \1: (#[0-9a-f]{6}) \}')
CONTRAST_MIN = 4.5  # WCAG 2.2 AA, for text


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_every_colour_has_one_for_dark_pages(path: Path) -> None:
    text = path.read_text("utf-8")
    style, rest = text.split("</style>")
    assert "@media (prefers-color-scheme: dark)" in style
    told = {(kind, light) for kind, light, _ in RULE.findall(style)}
    assert told == set(re.findall(r'(fill|stroke)="(#[0-9a-f]{6})"', rest))


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_every_word_stands_out_from_what_is_behind_it(path: Path) -> None:
    dark = {light: other for kind, light, other in RULE.findall(path.read_text("utf-8")) if kind == "fill"}
    pairs = set(words_and_grounds(path))
    assert pairs
    for word, ground in pairs:
        assert contrast(word, ground) >= CONTRAST_MIN, (word, ground)
        assert contrast(dark[word], dark[ground]) >= CONTRAST_MIN, (word, ground, "on dark pages")


def words_and_grounds(path: Path) -> Iterator[tuple[str, str]]:
    """The colour of each text, and of the box that was drawn last below its place."""
    boxes: list[tuple[float, float, float, float, str]] = []
    for element in ElementTree.parse(path).getroot():
        kind, given = element.tag.rpartition("}")[2], element.attrib
        if kind == "rect":
            x, y = float(given.get("x", 0)), float(given.get("y", 0))
            boxes.append((x, y, x + float(given["width"]), y + float(given["height"]), given["fill"]))
        elif kind == "text":
            x, y = float(given["x"]), float(given["y"])
            below = [box[4] for box in boxes if box[0] <= x <= box[2] and box[1] <= y - 4 <= box[3]]
            yield given["fill"], below[-1]


def contrast(one: str, other: str) -> float:
    """By WCAG: from 1, the same, to 21, black on white."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
