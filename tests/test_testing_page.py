"""What docs/testing.md says of the tests is true: capabilities have tests, and few files reach inside.

Tests use what packages export, so that the inside of a package can be rewritten without touching them. A
package exports what its `__all__` lists; its modules, and packages within it, are its inside. For the
packages in `HELD` the page lists each file that reaches inside, with its reason. The others follow when they
are rebuilt; until then the number of files must not rise.
"""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path

from tests.support import skips

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {path.parent.name for path in (ROOT / "src" / "lazydelta").glob("*/__init__.py")}
HELD = {"log", "predicate", "rows", "scan", "sidecar", "storage"}
HELD_FILES_MAX = 25
OTHER_FILES_MAX = 226
ROW = re.compile(r"^\| `(tests/[\w/.]+)` \| (\S.*) \|$", re.MULTILINE)


@cache
def reaching_inside() -> dict[str, set[str]]:
    """The packages that each file of the tests reaches inside of."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        packages = {name.split(".")[1] for name in _imports(path) if _is_inside(name)}
        if packages:
            found[path.relative_to(ROOT).as_posix()] = packages
    return found


def section(heading: str) -> str:
    text = (ROOT / "docs" / "testing.md").read_text("utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_every_capability_has_tests_in_the_default_suite() -> None:
    rows = [line for line in section("Capabilities").splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 50
    for row in rows:
        names = re.findall(r"`(tests/[\w/.-]+)`", row)
        assert names, f"no test is named: {row}"
        for name in names:
            text = (ROOT / name).read_text("utf-8")
            assert "def test_" in text, f"{name} has no test"
            assert not re.search(r"^pytestmark = .*\blong\(", text, re.MULTILINE), f"{name} is long"


def test_skips_of_the_page_are_those_that_a_run_allows() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", section("Skips"), re.MULTILINE)
    assert dict(rows[1:]) == skips.ALLOWED


def test_files_that_reach_inside_of_a_held_package_are_listed_with_a_reason() -> None:
    listed = dict(ROW.findall(section("Tests of an inside")))
    found = {name for name, packages in reaching_inside().items() if packages & HELD}
    assert found - set(listed) == set(), "use what the package exports, or list the file and say why"
    assert set(listed) - found == set(), "no longer true: take the file off the list"
    assert len(found) <= HELD_FILES_MAX


def test_no_more_files_reach_inside_of_the_other_packages() -> None:
    found = [name for name, packages in reaching_inside().items() if packages - HELD]
    assert len(found) <= OTHER_FILES_MAX


def _imports(path: Path) -> set[str]:
    """Full names of what a file imports from lazydelta."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.startswith("lazydelta.")}


def _is_inside(name: str) -> bool:
    _, package, *inner = name.split(".")
    if package not in PACKAGES or not inner:
        return False
    exported = getattr(importlib.import_module(f"lazydelta.{package}"), "__all__", ())
    return len(inner) > 1 or inner[0] not in exported
