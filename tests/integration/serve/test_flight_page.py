"""The examples of docs/flight.md run, one after the other, and print what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.support.serving import running_server

PAGE = Path(__file__).parents[3] / "docs" / "flight.md"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_examples_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    assert [kind for kind, _ in blocks] == ["python", "python", "text", "python", "text"]
    (_, table), *examples = blocks
    names: dict[str, object] = {}
    exec(table, names)  # the page's own code
    with running_server(tmp_path, {"readings": str(tmp_path / "readings")}) as server:
        for (_, code), (_, told) in zip(examples[::2], examples[1::2], strict=True):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(code.replace(":31337", f":{server.ports.flight}"), names)
            assert out.getvalue() == told
        client = names.pop("client")
        client.close()  # type: ignore[attr-defined]
