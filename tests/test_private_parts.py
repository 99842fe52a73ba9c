"""Private parts of other packages are not used; the exceptions of today stand in `private_parts.txt`.

The rule: a name with one leading underscore may be used in the package (the folder) that defines it, and
nothing that another package owns is changed at run time. In a module of `src/lazydelta` these count as uses:

- an import of a private name or of a private module from another package;
- `x._name`, or `getattr(x, "_name")` and its like, where the module imports `x` from another package; where
  `x` is not imported (`self`, a parameter, a variable), if no module of the folder defines `_name`;
- an assignment to an attribute of something that is imported from another package, and `setattr` or `delattr`
  on anything but `self` and `cls`;
- `unittest.mock`, `ctypes.pythonapi`, and the attributes in `INTERNALS`.

The standard library and third-party packages are other packages, too. The list has a line for each module and
name, so a module may use again what it is listed for. Generated code is not looked at.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
EXCEPTIONS = Path(__file__).with_name("private_parts.txt")
EXCEPTIONS_COUNT = 105  # only ever lowered

# Private by name, but documented for everyone in Python's manual.
DOCUMENTED = {"os._exit", "sys._current_frames", "sys.stderr ="}
INTERNALS = {"__bases__", "__closure__", "__code__", "__globals__", "__subclasses__"}
BY_NAME = {"getattr", "hasattr", "setattr", "delattr"}


def test_no_private_part_of_another_package_is_used_but_those_listed() -> None:
    new = sorted(uses_today() - exceptions())
    assert new == [], "use the public interface, or write the part ourselves"


def test_no_listed_exception_has_become_needless() -> None:
    needless = sorted(exceptions() - uses_today())
    assert needless == [], f"remove these lines from {EXCEPTIONS.name}"


def test_the_list_of_exceptions_only_gets_shorter() -> None:
    assert len(exceptions()) == EXCEPTIONS_COUNT, "lower EXCEPTIONS_COUNT to the lines left; never raise it"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import pyarrow._parquet", ["pyarrow._parquet"]),
        ("from pyarrow._parquet import FileMetaData", ["pyarrow._parquet.FileMetaData"]),
        ("from pyarrow.parquet import _thing as thing", ["pyarrow.parquet._thing"]),
        ("from lazydelta.scan.files import _thing", ["lazydelta.scan.files._thing"]),
        ("from lazydelta.rows.page_token import _thing", []),
        ("from lazydelta.rows._inner import thing", []),
        ("from lazydelta import limits\nlimits._thing", ["lazydelta.limits._thing"]),
        ("from lazydelta import limits\nlimits.THING = 1", ["lazydelta.limits.THING ="]),
        ("from lazydelta.rows import page_token\npage_token._thing", []),
        ("from __future__ import annotations", []),
        ("import pyarrow as pa\npa.lib._thing()", ["pyarrow.lib._thing"]),
        ("from duckdb_kql import lower\ndef _span(): ...\nlower._span(1)", ["duckdb_kql.lower._span"]),
        ("from duckdb import connect\nconnect()._thing", ["duckdb.connect()._thing"]),
        ("def f(spark):\n    spark._jvm.scala()", ["._jvm"]),
        ("def f(spark):\n    hasattr(spark, '_jvm')", ["._jvm"]),
        ("class A:\n    def f(self):\n        self._thing = 1\ndef g(a):\n    return a._thing", []),
        ("class A(B):\n    def f(self):\n        return self._of_the_base", ["._of_the_base"]),
        ("def f(pair):\n    return pair._2()", []),  # what Scala calls the second of two
        ("import pyarrow as pa\npa.Table.thing = 1", ["pyarrow.Table.thing ="]),
        ("import pyarrow as pa\ndel pa.thing", ["pyarrow.thing ="]),
        ("def f(module):\n    setattr(module, 'thing', 1)", ["setattr(...)"]),
        ("class A:\n    def f(self):\n        setattr(self, 'thing', 1)", []),
        ("from lazydelta.limits import of\nof.thing = 1", ["lazydelta.limits.of.thing ="]),
        ("def f(found):\n    found.thing = 1", []),
        ("from unittest import mock", ["unittest.mock"]),
        ("import ctypes\nctypes.pythonapi.Thing()", ["ctypes.pythonapi"]),
        ("def f(kind):\n    return kind.__bases__", [".__bases__"]),
        ("import os\nos._exit(1)", []),
    ],
)
def test_a_use_is_found_by_the_rule(code: str, expected: list[str]) -> None:
    names = defined(ast.parse(code))
    assert sorted(uses(ast.parse(code), "lazydelta.rows", names)) == expected


@cache
def uses_today() -> frozenset[str]:
    """`module: use`, for every use in the package."""
    found = set()
    for folder in sorted({path.parent for path in (SOURCE / "lazydelta").rglob("*.py")}):
        trees = {
            path: ast.parse(path.read_text("utf-8"))
            for path in folder.glob("*.py")
            if not path.name.endswith("_pb2.py")
        }
        names = {name for tree in trees.values() for name in defined(tree)}
        package = ".".join(folder.relative_to(SOURCE).parts)
        for path, tree in trees.items():
            module = path.relative_to(SOURCE / "lazydelta").as_posix()
            found |= {f"{module}: {use}" for use in uses(tree, package, names)}
    return frozenset(found)


@cache
def exceptions() -> frozenset[str]:
    """The lines of the list."""
    lines = EXCEPTIONS.read_text("utf-8").splitlines()
    assert lines == sorted(set(lines)), "keep the list sorted, each line once"
    return frozenset(lines)


def defined(tree: ast.Module) -> set[str]:
    """Names that a module defines: functions, classes, variables, attributes of `self` and `cls`."""
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                names.add(name)
    return names


def uses(tree: ast.Module, package: str, names: set[str]) -> set[str]:
    """What a module of `package`, whose modules define `names`, uses of what belongs to others."""
    imported: dict[str, str] = {}
    found: set[str] = set()
    for node in ast.walk(tree):
        for name, origin in _imports(node):
            imported[name] = origin
            is_private = any(_is_private(part) for part in origin.split("."))
            if origin.startswith("unittest.mock") or (is_private and _is_foreign(origin, package)):
                found.add(origin)
    for node in ast.walk(tree):
        if _sets_by_name(node):
            found.add("setattr(...)")
        for value, name in _attributes(node):
            origin = _origin(value, imported)
            is_foreign = _is_foreign(origin, package) if origin else name not in names
            use = f"{origin or ''}.{name}"
            if (is_foreign and _is_private(name)) or name in INTERNALS or use == "ctypes.pythonapi":
                found.add(use)
            elif is_foreign and origin and isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
                found.add(f"{use} =")
    return found - DOCUMENTED


def _attributes(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """`x` and `name` of `x.name` and of `getattr(x, "name")`."""
    match node:
        case ast.Attribute(value=value, attr=name):
            yield value, name
        case ast.Call(func=ast.Name(id=function), args=[value, ast.Constant(value=str(name)), *_]):
            if function in BY_NAME:
                yield value, name


def _sets_by_name(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[value, *_]):
            return ast.unparse(value) not in ("self", "cls")
    return False


def _imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Names that an import binds, each with what it stands for."""
    match node:
        case ast.Import(names=aliases):
            for alias in aliases:
                yield (alias.asname or alias.name.partition(".")[0]), alias.name
        case ast.ImportFrom(module=str(module), names=aliases):
            for alias in aliases:
                yield (alias.asname or alias.name), f"{module}.{alias.name}"


def _origin(node: ast.expr, imported: dict[str, str]) -> str | None:
    """What an expression stands for, where it starts at a name that is imported."""
    match node:
        case ast.Name(id=name):
            return imported.get(name)
        case ast.Attribute(value=value, attr=name):
            origin = _origin(value, imported)
            return origin and f"{origin}.{name}"
        case ast.Call(func=value) | ast.Subscript(value=value):
            origin = _origin(value, imported)
            return origin and f"{origin}()"
    return None


def _is_private(name: str) -> bool:
    return re.match(r"_[A-Za-z]", name) is not None


def _is_foreign(origin: str, package: str) -> bool:
    """Whether a name belongs to another package: to another folder of ours, or to none."""
    folder = SOURCE
    for part in origin.split("."):
        if _is_private(part) or not (folder / part).is_dir():
            break
        folder /= part
    return ".".join(folder.relative_to(SOURCE).parts) != package
