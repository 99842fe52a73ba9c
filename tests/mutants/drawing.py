"""Draws mutants of the source by a seed.

The draw depends on the seed and on the source alone, so that two suites of tests meet the same mutants. A
mutant keeps its place in the order of a seed while its function stays as it is.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from tests.mutants.operators import Change, Source, changes_of

PACKAGES = ("protocol", "predicate", "log", "scan", "rows", "sidecar/format")
_LOGS = ("LOGGER", "logger", "logging", "warnings")
_CACHES = ("cache", "lru_cache")
_TUNING = ("BYTES", "ROWS", "FILES", "SECONDS", "THREADS", "MAX", "MIN")  # ends of names of sizes and times


class Mutant(msgspec.Struct, frozen=True):
    """One change of one module; `file` is relative to the folder that holds the package."""

    key: str
    package: str
    file: str
    line: int
    statement: tuple[int, int]  # the first line of the statement and that of the change
    is_module_wide: bool  # runs at import or once in a process: any test of the module may notice it
    change: Change

    def applied(self, body: bytes) -> bytes:
        return body[: self.change.start] + self.change.text.encode() + body[self.change.end :]

    def diff(self, body: bytes) -> str:
        """The lines taken out and put in."""
        lines = (body.decode().splitlines(), self.applied(body).decode().splitlines())
        changed = [line for line in difflib.unified_diff(*lines, n=0, lineterm="") if line[:2] != "@@"]
        return "\n".join(changed[2:])


def draw(folder: Path, *, seed: int, count: int, packages: Sequence[str] = PACKAGES) -> list[Mutant]:
    """The first `count` mutants of the seed's order, of `folder/lazydelta`."""
    found = [mutant for package in packages for mutant in _package_mutants(folder, package)]
    found.sort(key=lambda mutant: hashlib.sha256(f"{seed}|{mutant.key}".encode()).digest())
    bodies = {mutant.file: (folder / mutant.file).read_bytes() for mutant in found}
    return list(islice((mutant for mutant in found if _is_another(mutant, bodies[mutant.file])), count))


def mutants_of(body: bytes, file: str, package: str) -> Iterator[Mutant]:
    """Every mutant of a module, in the order of the text."""
    seen: Counter[str] = Counter()
    for walked in _walk(ast.parse(body), _Place(), source := Source(body)):
        change, place = walked
        before = body[change.start : change.end].decode()
        words = "|".join([file, place.scope, change.operator, before, change.text])
        key = hashlib.sha256(f"{words}|{seen[words]}".encode()).hexdigest()[:12]
        seen[words] += 1
        line = source.line_of(change.start)
        yield Mutant(
            key, package, file, line, (min(place.first_line, line), line), place.is_module_wide, change
        )


class _Place(msgspec.Struct, frozen=True):
    """What lies around a node."""

    scope: str = ""
    first_line: int = 1
    is_module_wide: bool = True
    returns_value: bool = False


def _package_mutants(folder: Path, package: str) -> Iterator[Mutant]:
    for path in sorted((folder / "lazydelta" / package).rglob("*.py")):
        yield from mutants_of(path.read_bytes(), path.relative_to(folder).as_posix(), package)


def _is_another(mutant: Mutant, body: bytes) -> bool:
    """Whether the mutant is valid Python, and another program."""
    try:
        return ast.dump(ast.parse(mutant.applied(body))) != ast.dump(ast.parse(body))
    except SyntaxError:
        return False


def _walk(node: ast.AST, place: _Place, source: Source) -> Iterator[tuple[Change, _Place]]:
    if _is_left_out(node):
        return
    if isinstance(node, ast.stmt):
        place = msgspec.structs.replace(place, first_line=node.lineno)
    for change in changes_of(node, source, returns_value=place.returns_value):
        yield change, place
    children: Iterable[ast.AST]
    match node:
        case ast.FunctionDef(args=args, body=body) | ast.AsyncFunctionDef(args=args, body=body):
            for default in [*args.defaults, *filter(None, args.kw_defaults)]:
                yield from _walk(default, place, source)
            children, place = body, _inside(node, place)
        case ast.ClassDef(body=body):
            children, place = body, msgspec.structs.replace(place, scope=f"{place.scope}.{node.name}")
        case ast.Lambda(body=value):
            children, place = [value], msgspec.structs.replace(place, is_module_wide=False)
        case ast.AnnAssign(value=value):
            children = [value] if value else []
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=orelse):
            children = orelse
        case ast.Slice():
            children = [child for child in ast.iter_child_nodes(node) if not _is_zero_or_one(child)]
        case _:
            children = ast.iter_child_nodes(node)
    for child in children:
        yield from _walk(child, place, source)


def _inside(node: ast.FunctionDef | ast.AsyncFunctionDef, place: _Place) -> _Place:
    decorators = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
    return _Place(
        scope=f"{place.scope}.{node.name}",
        first_line=node.lineno,
        is_module_wide=any(
            name in decorators.replace(".", " ").replace("(", " ").split() for name in _CACHES
        ),
        returns_value=node.returns is not None and ast.unparse(node.returns) not in ("None", "NoReturn"),
    )


def _is_left_out(node: ast.AST) -> bool:
    """Texts, errors, logs and what only tunes: a change there is no fault, or no test need notice it."""
    is_left_out = False
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.FunctionDef(name="__repr__"):
            is_left_out = True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            is_left_out = not node.orelse
        case ast.Expr(value=ast.Call(func=function)):
            is_left_out = ast.unparse(function).partition(".")[0] in _LOGS
        case ast.Call(func=ast.Name(id=name)):
            is_left_out = name.endswith("Error") or name in ("cast", "TypeVar", "NewType")
        case ast.keyword(arg=name):
            is_left_out = name == "strict"
        case ast.Assign(targets=[ast.Name(id=name), *_]) | ast.AnnAssign(target=ast.Name(id=name)):
            is_left_out = name == "__all__" or (name.isupper() and name.endswith(_TUNING))
    return is_left_out


def _is_zero_or_one(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in (0, 1)
