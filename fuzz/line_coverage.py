"""Which lines of some modules were run: enough to say how far inputs reach into a parser.

Why not a library: it would be one more dependency for one number.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, Self

import msgspec

import lazydelta

PACKAGE = Path(lazydelta.__file__).parent
Lines = dict[str, list[int]]  # by module, below the package


class LineCoverage:
    """Watches modules while it is entered; nothing is slowed down where none are named."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._names = {str(PACKAGE / module): module for module in modules}
        self.found: dict[str, set[int]] = {module: set() for module in modules}
        self._left: dict[CodeType, set[int]] = {}  # of each function, the lines that were not run yet

    def __enter__(self) -> Self:
        if self._names:
            threading.settrace(self._call)
            sys.settrace(self._call)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]  # the stubs forget that none is one

    def save(self, path: Path) -> None:
        """Add what was found to the file."""
        known = msgspec.json.decode(path.read_bytes(), type=Lines) if path.exists() else {}
        for module, lines in self.found.items():
            known[module] = sorted(lines | set(known.get(module, [])))
        path.write_bytes(msgspec.json.encode(known))

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        module = self._names.get(frame.f_code.co_filename)
        if module is None:
            return None
        lines, code = self.found[module], frame.f_code
        if code not in self._left:
            self._left[code] = {number for *_, number in code.co_lines() if number is not None}
        left = self._left[code]
        if not left:
            return None  # all of it was run: nothing more to watch

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            del event, argument
            lines.add(frame.f_lineno)
            left.discard(frame.f_lineno)
            return line

        return line(frame, event, argument)


def lines_of(module: str) -> set[int]:
    """The lines inside functions that can be run: those of the module itself run with its import."""
    path = PACKAGE / module
    code = compile(path.read_text("utf-8"), str(path), "exec")
    return {line for inner in _functions(code) for *_, line in inner.co_lines() if line is not None}


def share_run(modules: Sequence[str], run: Lines) -> float:
    """The share of those lines that were run."""
    all_lines = {(module, line) for module in modules for line in lines_of(module)}
    hit = {(module, line) for module in modules for line in run.get(module, [])}
    return len(all_lines & hit) / max(1, len(all_lines))


def _functions(code: CodeType) -> list[CodeType]:
    """The code of functions: neither the module's nor a class body's, which run once."""
    found = []
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            is_function = bool(inner.co_flags & 0x02)  # it has locals of its own
            found += ([inner] if is_function else []) + _functions(inner)
    return found
