"""The documents stay true: their examples run and print what they say, their links and numbers hold.

Why: an example that drifts is worse than none. Contract: every Python block of the README runs in a folder
that holds the generated table `events`, and prints the text block below it; every console command prints the
lines below it. Milliseconds, overlap of requests and the folder's name are left out of the comparison.
`python -m tests.test_readme` writes the README's outputs anew.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from lazydelta import limits
from lazydelta.serve.config import LimitsPart, ServerPart
from lazydelta.settings import OPTIONS, build_settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.spark.config import IngestConfig
from lazydelta.storage import open_storage
from tests.support.command_line import run_inside

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
PIPELINE_SETTINGS = {
    *(f"ingest.{name}" for name in IngestConfig.__struct_fields__),
    *(f"sidecar.{name}" for name in SidecarConfig.__struct_fields__),
}
SERVE_SETTINGS = {
    *(f"server.{name}" for name in ServerPart.__struct_fields__),
    *(f"limits.{name}" for name in LimitsPart.__struct_fields__),
}
FENCE = re.compile(r"^(?P<mark><!-- not run: .*? -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.M | re.S)
LINK = re.compile(r"\[[^\]]+\]\((?!\w+:)([^)#]+)(?:#[^)]*)?\)")
GENERATE = re.compile(r"^\$ python -m bench\.generate (.+)$", re.M)
FOLDER = re.compile(r"file://\S*/(events|telemetry)\b")
VARIES = re.compile(r"[\d,.]+ (ms|one after the other)")
WITH_COMMANDS = ("sql.md", "kql.md", "quick-start.md", "tutorial.md")  # pages whose commands run, too
WITH_EXAMPLES = [
    page for page in PAGES[1:] if "```python\n" in page.read_text("utf-8") or page.name in WITH_COMMANDS
]
RUN_ELSEWHERE = ("make ", "python -m pip ", "python -m bench.generate ")


def blocks(kind: str, *, is_run: bool = True, page: Path = README) -> list[re.Match[str]]:
    """The fenced blocks of one kind, those that are run or those that are not."""
    found = FENCE.finditer(page.read_text("utf-8"))
    return [block for block in found if block["kind"] == kind and is_run == (block["mark"] is None)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_table(tmp_path_factory.mktemp("readme"))


def test_the_readmes_python_prints_what_it_says(folder: Path) -> None:
    for block, said in python_and_output(README):
        assert said is not None, f"no output below:\n{block}"
        assert comparable(run_python(block, folder)) == comparable(said), f"README says otherwise:\n{block}"


def test_the_readmes_commands_print_what_they_say(folder: Path) -> None:
    for command, said in commands_and_output(README):
        told = comparable(run_command(command, folder))
        assert told.startswith(comparable(said)) and said, f"README says otherwise:\n{command}\n{told}"


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_the_other_pages_print_what_they_say(folder: Path, page: Path, tmp_path: Path) -> None:
    (tmp_path / "events").symlink_to(folder / "events")
    for run, source, said in examples(page):
        told = comparable(run(source, tmp_path))
        is_right = told.startswith if run is run_command else told.__eq__  # of a command the page may cut
        assert said is None or is_right(comparable(said)), f"{page} says otherwise:\n{source}\n{told}"


def test_the_first_screen_keeps_its_order() -> None:
    text = README.read_text("utf-8")
    parts = (
        "lazydelta streams",
        "pip install",
        "import lazydelta",
        "$ lazydelta files",
        "What it does not do",
    )
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
    first = blocks("python")[0]["body"]
    assert len([line for line in first.splitlines() if line]) == 6


def test_storage_options_in_the_readme_make_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def open_only(url: str, *, storage_options: Mapping[str, str]) -> None:
        opened.append(open_storage(url, build_settings(storage_options, environment={})).root)

    monkeypatch.setattr(ld, "open", open_only)
    for block in blocks("python", is_run=False):
        exec(compile(block["body"].replace("…", "c2VjcmV0"), str(README), "exec"), {})
    assert {root.partition(":")[0] for root in opened} == {"abfss", "s3"}


def test_the_example_of_a_test_is_one_that_passes(tmp_path: Path) -> None:
    (block,) = blocks("python", is_run=False, page=ROOT / "CONTRIBUTING.md")
    names: dict[str, Any] = {}
    exec(compile(block["body"], "CONTRIBUTING.md", "exec"), names)
    names["test_a_removed_file_is_not_listed"](tmp_path)


def test_links_lead_somewhere() -> None:
    targets = {page: LINK.findall(FENCE.sub("", page.read_text("utf-8"))) for page in PAGES}
    dead = [(page, to) for page, found in targets.items() for to in found if not (page.parent / to).exists()]
    assert dead == []
    assert sum(map(len, targets.values())) > 100


def test_the_page_of_limits_agrees_with_the_module() -> None:
    told = {}
    for line in (ROOT / "docs" / "limits.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 4 and cells[0].startswith("`"):
            told[cells[0].strip("`")] = number(cells[1])
            assert not cells[3] or cells[3].strip("`") in {*OPTIONS, *PIPELINE_SETTINGS, *SERVE_SETTINGS}
    units = {"KIB", "MIB"}
    assert told == {
        name: value for name, value in vars(limits).items() if name.isupper() and name not in units
    }


def examples(page: Path) -> Iterator[tuple[Callable[[str, Path], str], str, str | None]]:
    """What is run of a page, one after the other: how, what, and what it says where it says something."""
    text = page.read_text("utf-8")
    outputs = dict(python_and_output(page))
    for block in FENCE.finditer(text):
        if block["mark"] is None and block["kind"] == "python":
            yield run_python, block["body"], outputs[block["body"]]
        if block["mark"] is None and block["kind"] == "console" and page.name in WITH_COMMANDS:
            for command, said in commands_of(block["body"]):
                yield run_command, command, said or None


def python_and_output(page: Path) -> Iterator[tuple[str, str | None]]:
    """Each Python block that is run, with the text block that follows it at once, if one does."""
    text = page.read_text("utf-8")
    for block in blocks("python", page=page):
        following = FENCE.match(text, block.end() + 2)
        is_told = following is not None and following["kind"] == "text"
        yield block["body"], following["body"] if following is not None and is_told else None


def commands_and_output(page: Path) -> Iterator[tuple[str, str]]:
    """Each command that is run here, with the lines below it."""
    for block in blocks("console", page=page):
        yield from commands_of(block["body"])


def commands_of(body: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        command, _, said = part.partition("\n")
        if not command.startswith(RUN_ELSEWHERE):
            yield command, said


def with_table(place: Path) -> Path:
    """The folder with the table that the README tells how to make."""
    found = GENERATE.search(README.read_text("utf-8"))
    assert found is not None
    command = [sys.executable, "-m", "bench.generate", *shlex.split(found[1])]
    subprocess.run(command, cwd=place, env=environment(), check=True, capture_output=True)
    return place


def run_python(source: str, place: Path) -> str:
    """What a program prints; it runs in this process, in a folder."""
    with contextlib.chdir(place), contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(source, "an example", "exec"), {"__name__": "__main__"})
    return out.getvalue()


def run_command(command: str, place: Path) -> str:
    """What a command shows on a terminal."""
    words = shlex.split(command)
    assert words[0] == "lazydelta", command
    with contextlib.chdir(place):
        return run_inside(*words[1:], terminal="out err", TERM="dumb", COLUMNS="200").out


def environment() -> dict[str, str]:
    """This process's own, with the repository's modules and a plain terminal."""
    modules = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**os.environ, "PYTHONPATH": modules, "TERM": "dumb", "COLUMNS": "200"}


def comparable(text: str) -> str:
    """The text without what differs from run to run."""
    return VARIES.sub(r"… \1", nameless(text))


def nameless(text: str) -> str:
    """The text without the folder that the table happened to be in."""
    return FOLDER.sub(r"file:///data/\1", text)


def number(text: str) -> float:
    """`256 KiB` as a number."""
    value, _, unit = text.partition(" ")
    return float(value) * {"": 1, "KiB": limits.KIB, "MiB": limits.MIB}[unit]


def rewrite() -> None:
    """Put today's outputs into the README."""
    with tempfile.TemporaryDirectory() as name:
        place = with_table(Path(name))
        text = README.read_text("utf-8")
        for source, said in list(python_and_output(README)):
            fresh = nameless(run_python(source, place))
            text = text.replace(f"{source}```\n\n```text\n{said}```", f"{source}```\n\n```text\n{fresh}```")
        for command, said in list(commands_and_output(README)):
            fresh = nameless(run_command(command, place))
            text = text.replace(f"$ {command}\n{said}", f"$ {command}\n{fresh}")
        README.write_text(text, "utf-8")


if __name__ == "__main__":
    rewrite()
