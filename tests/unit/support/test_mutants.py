"""The tool behind `make mutants`, on a package of three functions."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.mutants.__main__ import main
from tests.mutants.drawing import draw, mutants_of

SOURCE = Path(__file__).parents[3] / "src"

TINY = """
def is_below(value, bound):
    return value < bound

def is_above(value, bound):
    return value > bound

def is_equal(value, other):
    return value == other
"""
TINY_TESTS = """
from lazydelta.predicate.tiny import is_above, is_below

def test_a_bound_is_not_below_itself():
    assert not is_below(7, 7)

def test_nothing_is_asserted():
    is_above(7, 7)
"""


def changes(text: str) -> set[str]:
    """The line each mutant of a module puts in."""
    body = text.encode()
    return {
        mutant.diff(body).splitlines()[-1][1:].strip() for mutant in mutants_of(body, "m.py", "predicate")
    }


def test_the_draw_depends_on_the_seed_alone() -> None:
    packages = ("predicate",)
    first = draw(SOURCE, seed=1, count=9, packages=packages)
    assert draw(SOURCE, seed=1, count=5, packages=packages) == first[:5]
    assert draw(SOURCE, seed=2, count=9, packages=packages) != first


def test_every_kind_of_change() -> None:
    assert changes("x = a < b") == {"x = a <= b"}
    assert changes("x = a is not b") == {"x = a is b"}
    assert changes("x = a not in b") == {"x = a in b"}
    assert changes("x = a and b and c") == {"x = a or b and c", "x = a and b or c"}
    assert changes("x = not (a)") == {"x = (a)"}
    assert changes("x = a + b") == {"x = a - b"}
    assert changes("x += b") == {"x -= b"}
    assert changes("x = 7") == {"x = 8"}
    assert changes("x = True") == {"x = False"}
    assert changes("x = min(a)") == {"x = max(a)"}
    assert changes("f(a)") == {"pass"}
    assert changes("if a: x") == {"if True: x", "if False: x"}
    assert changes("while a: continue") == {"while a: break"}
    assert changes("def f() -> int: return a") == {"def f() -> int: return None"}


@pytest.mark.parametrize(
    "text",
    [
        '"""1 < 2"""',
        "def f() -> None: return a",
        "def f(a: 'x < 1' = b): pass",
        "def __repr__(self): return a + b",
        "__all__ = a + b",
        "assert a < b",
        "raise ValueError(a + b)",
        "x = f'{a + b}'",
        "x = text + 'more'",
        "LOGGER.info(a + b)",
        "if TYPE_CHECKING: f()",
        "x = text[1:]",
        "x = zip(a, strict=True)",
        "x: int | None",
        "x = isinstance(a, int | Decimal)",
    ],
)
def test_what_is_no_fault_is_left_alone(text: str) -> None:
    assert changes(text) == set()


def test_a_change_that_a_test_notices_is_killed_and_others_survive(tmp_path: Path) -> None:
    package = tmp_path / "src" / "lazydelta" / "predicate"
    package.mkdir(parents=True)
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    (tmp_path / "tests" / "unit" / "test_tiny.py").write_text(TINY_TESTS)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / "tiny.py").write_text(TINY)
    kept = tmp_path / "kept"
    words = ["--mutants", "50", "--workers", "1", "--keep", str(kept)]
    assert main([*words, "--tests", str(tmp_path), "--source", str(tmp_path)]) == 0
    (place,) = kept.glob("*/report-*.json")
    report = msgspec.json.decode(place.read_bytes())
    assert {result["line"]: result["status"] for result in report["results"]} == {
        3: "killed",
        6: "survived",
        9: "not covered",
    }
