"""What the source itself must not do with anything it reads, and what it may leave on a disk."""

from __future__ import annotations

import ast
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from docs import generate_licences

import lazydelta as ld
from lazydelta import limits
from tests.test_tidy import PACKAGE, package_files

# Modules that make code or objects out of bytes, and calls that do.
FORBIDDEN_MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "marshal",
    "shelve",
    "yaml",
    "code",
    "codeop",
}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_ATTRIBUTES = {("os", "system"), ("os", "popen"), ("np", "load"), ("numpy", "load")}


def test_nothing_that_is_read_becomes_code_or_an_object_of_pythons() -> None:
    found = [f"{path.relative_to(PACKAGE)}: {what}" for path in package_files() for what in _misdeeds(path)]
    assert found == []


def test_a_misdeed_would_be_found(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(
        "import pickle\nfrom marshal import loads\neval('1')\nos.system('x')\nrun(a, shell=True)\n"
    )
    assert len(list(_misdeeds(path))) == 5


def _misdeeds(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] in FORBIDDEN_MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in FORBIDDEN_MODULES:
            yield str(node.module)
        elif isinstance(node, ast.Call):
            yield from _bad_call(node)


def _bad_call(node: ast.Call) -> Iterator[str]:
    if isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
        yield node.func.id
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        pair = (node.func.value.id, node.func.attr)
        if pair in FORBIDDEN_ATTRIBUTES:
            yield ".".join(pair)
    if any(word.arg == "shell" and ast.unparse(word.value) != "False" for word in node.keywords):
        yield "shell="


def test_the_page_of_licences_is_what_the_packages_say() -> None:
    assert generate_licences.PAGE.read_text("utf-8") == generate_licences.page(), (
        "run python docs/generate_licences.py"
    )


def test_no_dependency_is_of_a_licence_that_binds_its_users() -> None:
    text = generate_licences.PAGE.read_text("utf-8")
    assert re.findall(r"\bA?GPL\b|Affero|SSPL|see the package", text) == []


# Those of Python's calls that make a file or a folder nobody else may open; `gettempdir` only tells a place.
PRIVATE = {"TemporaryDirectory", "TemporaryFile", "NamedTemporaryFile", "mkdtemp", "mkstemp", "gettempdir"}


def test_temporary_files_are_made_by_calls_that_keep_them_private() -> None:
    used = {
        (str(path.relative_to(PACKAGE)), node.attr)
        for path in package_files()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "tempfile"
    }
    assert {name for name, call in used} >= {"scan/remove_set.py", "storage/nameless_file.py"}
    assert [one for one in used if one[1] not in PRIVATE] == []


def test_rows_that_wait_on_a_disk_are_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, scratch = tmp_path / "table", tmp_path / "scratch"
    write_deltalake(str(table), pa.table({"secret": [1, 2, 3]}))
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr(limits, "MATERIALIZE_BYTES", 1)
    used: list[str] = []
    temporary_file = tempfile.TemporaryFile
    monkeypatch.setattr(
        tempfile, "TemporaryFile", lambda *a, **k: used.append("x") or temporary_file(*a, **k)
    )
    with ld.open(str(table)).scan(order="desc", batch_size=1).batches() as rows:
        assert next(rows)["secret"].to_pylist() == [3]
        assert list(scratch.iterdir()) == []  # a file without a name
    assert used
