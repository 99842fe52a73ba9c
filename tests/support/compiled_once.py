"""Programs that tests compile, kept in the project's cache for as long as their sources stay the same."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from lazydelta.capi.build import SOURCES
from tests.support.capi_library import cache_folder, compiled, library_folder


def compiled_once(name: str, made_from: Iterable[Path | str], make: Callable[[Path], object]) -> Path:
    """The folder that `make` filled for these files and texts; it is filled once, by one process."""
    digest = hashlib.sha256(name.encode())
    for part in made_from:
        digest.update(part.read_bytes() if isinstance(part, Path) else part.encode())
    folder = cache_folder() / "compiled" / f"{name}-{digest.hexdigest()[:16]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as place:
                make(Path(place))
                shutil.copytree(place, folder.with_suffix(".part"), dirs_exist_ok=True)
            folder.with_suffix(".part").rename(folder)
    return folder


def c_program(sources: Sequence[Path], *, sanitize: bool = False, with_library: bool = True) -> Path:
    """A program in C of these sources."""
    headers = sorted(SOURCES.glob("*.h"))
    library = str(library_folder(sanitize=sanitize)) if with_library else ""
    name = sources[0].stem

    def make(folder: Path) -> None:
        compiled(sources, folder / name, sanitize=sanitize, with_library=with_library)

    return compiled_once(f"c-{name}", [*sources, *headers, library, str(sanitize)], make) / name
