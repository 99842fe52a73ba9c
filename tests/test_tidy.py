"""Rules of the repository that no other tool checks: what a file may name, read and export.

Imports between packages, and which package may import an optional dependency, are contracts of import-linter
in `pyproject.toml`. Private parts of other packages are in `test_private_parts.py`. Ruff limits how many
statements a function has.
"""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
from functools import cache
from pathlib import Path

import lazydelta

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "lazydelta"
# Catches accidents only: a module is split where it has two concepts, not at a line count.
MODULE_LINES_MAX = 800
ADR_SECTIONS = ("status", "context", "options", "decision", "consequences")

# Settings are built here and passed down; nothing else may look at the environment.
ENVIRONMENT_READERS = ("cli/", "table.py", "serve/", "settings.py")

# Hosts of package registries and paths of somebody's machine, spelled so that this file holds none.
FORBIDDEN = re.compile(
    "|".join(
        [
            r"repo1?\.maven\.(org|apache)",
            r"files\.pythonhosted",
            r"pypi\.(org|python)",
            r"registry\.npmjs",
            r"crates\.io/api",
            r"proxy\.golang",
            r"(?<![\w.])/wor" + r"k/(main|shared)",
            r"(?<![\w.])/ro" + r"ot/",
            r"(?<![\w.<])/ho" + r"me/[a-z]",
            r"(?<![\w.])/Use" + r"rs/[a-z]",
        ]
    )
)


def package_files() -> list[Path]:
    """Every module of the package."""
    return sorted(PACKAGE.rglob("*.py"))


@cache
def tracked_files() -> tuple[Path, ...]:
    """What is in the repository, or about to be: ignored files are not."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(path for path in (ROOT / name for name in listed.stdout.splitlines()) if path.is_file())


def test_no_module_is_so_long_that_it_must_be_an_accident() -> None:
    modules = [path for path in tracked_files() if path.suffix == ".py"]
    lengths = {_name(path): len(path.read_text("utf-8").splitlines()) for path in modules}
    assert {name: lines for name, lines in lengths.items() if lines > MODULE_LINES_MAX} == {}


def test_public_means_listed_in_all_and_importable() -> None:
    assert sorted(lazydelta.__all__) == sorted(set(lazydelta.__all__))
    missing = [name for name in lazydelta.__all__ if not hasattr(lazydelta, name)]
    assert missing == []
    submodules = {path.stem for path in PACKAGE.iterdir() if not path.name.startswith("_")}
    ours = {
        name
        for name, value in vars(lazydelta).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("lazydelta")
    }
    assert ours - submodules <= set(lazydelta.__all__), "imported into lazydelta but not listed"


def test_a_packages_init_only_re_exports() -> None:
    others = [
        f"{_inside(path)}: {ast.unparse(node)[:60]}"
        for path in package_files()
        if path.name == "__init__.py"
        for index, node in enumerate(ast.parse(path.read_text("utf-8")).body)
        if not (_is_docstring(node, index) or _is_re_export(node) or _is_lazy_export(node))
    ]
    assert others == []


def test_every_module_can_be_imported() -> None:
    for path in package_files():
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        importlib.import_module(module.removesuffix(".__init__").removesuffix(".__main__"))


def test_no_file_names_a_registry_or_somebodys_machine() -> None:
    found = {}
    for path in tracked_files():
        if path.suffix == ".lock" or path.name == "LICENSE" or path == Path(__file__).resolve():
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        if hits := sorted({match[0] for match in FORBIDDEN.finditer(text)}):
            found[_name(path)] = hits
    assert found == {}


def test_only_the_edges_read_the_environment() -> None:
    readers = [
        _inside(path)
        for path in package_files()
        if re.search(
            r"\bos\.(environ|getenv)\b|from os import .*\b(environ|getenv)\b", path.read_text("utf-8")
        )
        and not _inside(path).startswith(ENVIRONMENT_READERS)
    ]
    assert readers == []


def test_files_of_tests_have_names_of_their_own() -> None:
    # pytest imports them by name alone: two of one name end a whole run before it begins
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_every_decision_record_has_its_sections() -> None:
    records = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    lacking = {}
    for path in records:
        headings = {
            re.sub(r"\W.*", "", line.lstrip("# ").lower())
            for line in path.read_text("utf-8").splitlines()
            if line.startswith("#")
        }
        text = path.read_text("utf-8").lower()
        absent = [name for name in ADR_SECTIONS if name not in headings and f"{name}:" not in text]
        if absent:
            lacking[path.name] = absent
    assert lacking == {}


def test_every_type_ignore_carries_a_reason() -> None:
    bare = [
        f"{_inside(path)}:{number}: {line.strip()}"
        for path in package_files()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if "# type: ignore" in line and not re.search(r"# type: ignore\[[\w, -]+\]\s+#? ?\S", line)
    ]
    assert bare == []


def test_a_module_that_uses_any_says_why() -> None:
    silent = [
        _inside(path)
        for path in package_files()
        if re.search(r"^from typing import .*\bAny\b", path.read_text("utf-8"), re.MULTILINE)
        and not re.search(r"\bAny\b[^\n]*#|#[^\n]*\bAny\b", path.read_text("utf-8"))
    ]
    assert silent == []


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _inside(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def _is_docstring(node: ast.stmt, index: int) -> bool:
    return index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_re_export(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom | ast.Import):
        return True
    is_all = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("__all__", "__version__")
    return is_all or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))


def _is_lazy_export(node: ast.stmt) -> bool:
    """Names that load their module when asked for, which keeps `--help` fast, are re-exports too."""
    if isinstance(node, ast.FunctionDef):
        return node.name in ("__getattr__", "__dir__")
    return isinstance(node, ast.Assign | ast.AnnAssign) and bool(
        re.match(r"_[A-Z]+\b|TYPE_CHECKING = False$", ast.unparse(node))
    )
