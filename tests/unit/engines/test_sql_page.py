"""The page about SQL says what its examples print."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.test_readme import FENCE, ROOT, run_command, run_python

PAGE = ROOT / "docs" / "sql.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page")
    run_python(_blocks()[0][1], place)
    return place


def test_the_examples_in_python_print_what_the_page_says(folder: Path) -> None:
    found = _blocks()
    pairs = [
        (body, said)
        for (kind, body), (next_kind, said) in pairwise(found)
        if (kind, next_kind) == ("python", "text")
    ]
    assert len(pairs) == 5
    assert [(body, run_python(body, folder)) for body, _ in pairs] == pairs


def test_the_commands_print_what_the_page_says(folder: Path) -> None:
    (body,) = [body for kind, body in _blocks() if kind == "console"]
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, said = part.partition("\n")
        assert run_command(command, folder) == said, command


def _blocks() -> list[tuple[str, str]]:
    return [(block["kind"], block["body"]) for block in FENCE.finditer(PAGE.read_text("utf-8"))]
