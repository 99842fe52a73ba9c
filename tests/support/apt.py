"""Programs of the machine that tests need, from apt, unpacked into the project's cache.

Contract: nothing is installed on the machine, and no rights are needed: packages are fetched by apt, which
checks signatures, with what they need that this machine lacks, and unpacked below the cache. One process
fetches at a time. A folder that is done for these packages is used as it is.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def unpacked(folder: Path, packages: Sequence[str], *, done: str, versions: Mapping[str, str]) -> Path:
    """The root of the packages; `done` names the state of the folder, `versions` how theirs must begin."""
    folder.mkdir(parents=True, exist_ok=True)
    root, mark = folder / "root", folder / f".{done}"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists():
            shutil.rmtree(root, ignore_errors=True)
            for archive in _fetched(folder, packages, versions):
                subprocess.run(["dpkg", "-x", str(archive), str(root)], check=True)
            shutil.rmtree(folder / "archives")
            mark.touch()
    return root


def has_apt() -> bool:
    """Whether packages can be fetched at all."""
    return shutil.which("apt-get") is not None and shutil.which("dpkg") is not None


def _fetched(folder: Path, packages: Sequence[str], versions: Mapping[str, str]) -> list[Path]:
    """The archives of the packages and of what they need that this machine lacks."""
    archives = folder / "archives"
    shutil.rmtree(archives, ignore_errors=True)
    for part in (archives, folder / "lists/partial", folder / "cache/archives/partial"):
        part.mkdir(parents=True, exist_ok=True)
    # apt's own folders belong to root: lists and downloads go below ours.
    options = [f"Dir::State::lists={folder / 'lists'}", f"Dir::Cache={folder / 'cache'}"]
    options += ["Debug::NoLocking=1", "APT::Sandbox::User="]
    apt = ["apt-get", "--quiet", *(word for option in options for word in ("-o", option))]
    _run([*apt, "update"], archives)
    plan = _run([*apt, "--simulate", "--no-install-recommends", "install", *packages], archives)
    wanted = re.findall(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) ", plan, re.MULTILINE)
    for name, version in wanted:
        if not version.startswith(versions.get(name, "")):
            raise RuntimeError(f"apt offers {name} {version}, not {versions[name]}\n  fix: install {name}")
    _run([*apt, "download", *(f"{name}={version}" for name, version in wanted)], archives)
    return sorted(archives.glob("*.deb"))


def _run(command: list[str], where: Path) -> str:
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"apt could not do it: {' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return done.stdout
