"""The page about data frames says what its examples print."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from tests.test_readme import FENCE, ROOT, run_python

PAGE = ROOT / "docs" / "data-frames.md"


def test_the_examples_print_what_the_page_says(tmp_path: Path) -> None:
    found = [(block["kind"], block["body"]) for block in FENCE.finditer(PAGE.read_text("utf-8"))]
    run_python(found[0][1], tmp_path)
    pairs = [
        (body, said)
        for (kind, body), (next_kind, said) in pairwise(found)
        if (kind, next_kind) == ("python", "text")
    ]
    assert len(pairs) == 3
    assert [(body, run_python(body, tmp_path)) for body, _ in pairs] == pairs
