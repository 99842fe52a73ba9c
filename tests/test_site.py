"""`make docs`: the site builds without a dead link, and nothing in it is loaded from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOADED = re.compile(r"<(?:script|img|iframe)[^>]*\ssrc=\"?([^\" >]+)|<link[^>]*\shref=\"?([^\" >]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", place)
    assert done.returncode == 0, done.stderr
    return place


def build(config: Path, place: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(config)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        [*command, "--site-dir", str(place)],
        cwd=ROOT, env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip


def test_every_page_is_in_it(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.relative_to(site).with_suffix(".md") for path in site.rglob("*.html")}
    assert pages - built == {Path("README.md")}  # which is index.html


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = [one or other for one, other in LOADED.findall(page.read_text("utf-8"))]
        assert loaded
        assert [address for address in loaded if re.match(r"(\w+:)?//", address)] == [], page


def test_a_dead_link_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "README.md").write_text("# Home\n\n[gone](gone.md)\n", "utf-8")
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    (tmp_path / "mkdocs.yml").write_text(text[: text.index("nav:\n")] + "nav: [README.md]\n", "utf-8")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0 and "gone.md" in done.stderr
