"""The generated reference and the list of exit codes say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs import generate_reference

import lazydelta
from lazydelta import errors
from lazydelta.cli.doctor_command import EXIT_FINDINGS
from lazydelta.cli.prompt_exit import EXIT_INTERRUPTED, EXIT_TERMINATED
from lazydelta.sample.make import SampleSpec, make_sample
from lazydelta.settings import OPTIONS, variable_of
from lazydelta.telemetry import COUNTERS, GAUGES, PREFIX

DOCS = Path(generate_reference.__file__).parent
REFERENCE = DOCS / "reference"


@pytest.mark.parametrize("name", sorted(generate_reference.pages()))
def test_a_page_of_the_reference_is_what_the_code_says(name: str) -> None:
    written = (REFERENCE / name).read_text("utf-8")
    assert written == generate_reference.pages()[name], "run python docs/generate_reference.py"


def test_the_reference_holds_no_page_that_nothing_writes() -> None:
    assert {path.name for path in REFERENCE.iterdir()} == set(generate_reference.pages())


def test_the_reference_does_not_depend_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    before = generate_reference.command_line_page()
    monkeypatch.setenv("COLUMNS", "200")
    assert generate_reference.command_line_page() == before


def test_help_fits_a_terminal_of_eighty_columns() -> None:
    shown = generate_reference.command_line_page().partition("```text")[2].splitlines()
    assert [line for line in shown if len(line) > 80] == []


def test_every_command_has_its_chapter_with_examples() -> None:
    text = (REFERENCE / "cli.md").read_text("utf-8")
    chapters = dict(re.findall(r"^## lazydelta ([\w -]+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert list(chapters) == generate_reference.command_names()
    assert {"files", "explain", "info", "history", "sidecar build", "sidecar verify"} <= set(chapters)
    assert [name for name, body in chapters.items() if f"    lazydelta {name}" not in body] == []


def test_every_option_and_metric_is_listed() -> None:
    options = (REFERENCE / "options.md").read_text("utf-8")
    metrics = (REFERENCE / "metrics.md").read_text("utf-8")
    assert [name for name in OPTIONS if f"| `{name}` | `{variable_of(name)}` |" not in options] == []
    assert [name for name in (*COUNTERS, *GAUGES) if f"| `{PREFIX}{name}` |" not in metrics] == []


def test_every_exit_code_is_documented_with_its_error() -> None:
    rows = re.findall(
        r"^\| (\d+) \|.*\| (?:`(\w+)`)? ?\|$", (DOCS / "exit-codes.md").read_text(), re.MULTILINE
    )
    documented = {int(code): name for code, name in rows}
    raised = {
        error.exit_code: name
        for name, error in vars(errors).items()
        if isinstance(error, type) and issubclass(error, errors.LazyDeltaError)
    }
    assert documented == {0: "", **raised, EXIT_FINDINGS: "", EXIT_INTERRUPTED: "", EXIT_TERMINATED: ""}


def test_every_code_of_the_doctor_is_described() -> None:
    rules = Path(lazydelta.__file__).parent.glob("upkeep/doctor*.py")
    told = {code for path in rules for code in re.findall(r'code="(\w+)"', path.read_text("utf-8"))}
    listed = set(re.findall(r"`(\w+)`", (DOCS / "doctor.md").read_text("utf-8")))
    assert len(told) > 15
    assert told - listed == set()


def test_queries_that_stand_in_a_sentence_run(tmp_path: Path) -> None:
    make_sample(tmp_path / "sample", SampleSpec(hours=2, files=2, rows=10))
    table = lazydelta.open(tmp_path / "sample")
    pages = [path.read_text("utf-8") for path in DOCS.rglob("*.md")]
    found = {one for page in pages for one in re.findall(r'`lazydelta (sql|kql) URL "([^"]+)"`', page)}
    assert {language for language, _ in found} == {"sql", "kql"}
    for language, text in found:
        result = table.sql(text) if language == "sql" else table.kql(text)
        assert result.fetchall()


def test_the_help_names_the_exit_codes() -> None:
    listed = (REFERENCE / "cli.md").read_text("utf-8").partition("Exit codes:")[2].partition("```")[0]
    rows = re.findall(r"^\| (\d+) \|", (DOCS / "exit-codes.md").read_text(), re.MULTILINE)
    assert re.findall(r"\b\d+\b", listed) == rows
