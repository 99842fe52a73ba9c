"""A bare Debian in a folder, where commands run as on a machine of its own (debootstrap, unshare, chroot).

Contract: the folder holds Python with its venv, git, make and what Debian itself needs. How this machine
reaches package registries (certificates, proxies, the settings of pip, npm, Maven and apt) is copied into it.
A command has its own mounts and process ids: nothing stays mounted or running when it ends, however it ends.
By hand: `python -m tests.support.bare_system FOLDER COMMAND ...` makes the folder and runs a command in it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGES = ("make", "git", "python3", "python3-venv")
RELEASE = "bookworm"  # Debian 12, whose Python is 3.11.2
HOME = "/root"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_VARIABLES = re.compile(
    r"(PIP|UV|NPM_CONFIG|MAVEN|SSL|CURL|REQUESTS|NODE_EXTRA|GIT_SSL|DEFAULT_ARTIFACT)_.*|.*_PROXY|.*_CA_CERTS",
    re.IGNORECASE,
)
_FILES = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/ssl/certs",
    "/etc/pip.conf",
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d",
    "/etc/apt/apt.conf.d",
    "/etc/apt/auth.conf.d",
    "~/.config/pip",
    "~/.pip",
    "~/.npmrc",
    "~/.m2/settings.xml",
)
# Mounts are this process's own, and so are process ids: the end of the command ends both.
_ENTER = """
set -e
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
mount --rbind /sys "$0/sys"
root="$0"; folder="$1"; shift
exec chroot "$root" sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
"""


def why_not() -> str | None:
    """Why no bare system can be made here, if none can."""
    lacking = [name for name in ("debootstrap", "unshare", "chroot", "apt-get") if shutil.which(name) is None]
    if lacking:
        return f"a bare system needs {', '.join(lacking)}"
    if os.geteuid() != 0:
        return "a bare system needs root"
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "true"], check=False, capture_output=True
    )
    return "a bare system needs the right to mount" if tried.returncode else None


def make(root: Path) -> None:
    """Debian in this folder, where it is not there yet."""
    done = root / ".made"
    if not done.exists():
        shutil.rmtree(root, ignore_errors=True)
        command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}"]
        _checked([*command, RELEASE, str(root), _mirror()])
        done.touch()
    for path in _settings():
        _copy(path, root)


def run(
    root: Path, command: list[str], *, folder: str = HOME, log: Path | None = None, **more: str
) -> subprocess.CompletedProcess[bytes]:
    """The command in the system; its output goes to the log, or to ours."""
    carried = {name: value for name, value in os.environ.items() if _VARIABLES.fullmatch(name)}
    environment = {**carried, "HOME": HOME, "PATH": _PATH, "LANG": "C.UTF-8", **more}
    alone = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
    whole = [*alone, "sh", "-c", _ENTER, str(root), folder, *command]
    if log is None:
        return subprocess.run(whole, env=environment, check=False)
    with log.open("wb") as out:
        return subprocess.run(whole, env=environment, check=False, stdout=out, stderr=subprocess.STDOUT)


def put_clone(root: Path, repository: Path, folder: str) -> None:
    """A clone of the repository, as committed, with the tables that lie beside it."""
    target = root / folder.lstrip("/")
    remove(root, folder)
    _checked(["git", "clone", "--quiet", "--no-hardlinks", str(repository), str(target)])
    golden = repository.parent / "shared" / "golden"
    if golden.exists():
        shutil.copytree(golden, target.parent / "shared" / "golden", symlinks=True, dirs_exist_ok=True)


def remove(root: Path, folder: str) -> None:
    """A folder of the system."""
    shutil.rmtree(root / folder.lstrip("/"), ignore_errors=True)


def _mirror() -> str:
    """Where this machine's apt gets packages of the release from."""
    listed = _checked(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", f"Codename: {RELEASE}", "Created-By: Packages"]
    )
    places = listed.split()
    if not places:
        raise RuntimeError(f"apt on this machine has no packages of {RELEASE}\n  fix: apt-get update")
    return places[0]


def _settings() -> Iterator[Path]:
    """Files and folders that say how registries are reached."""
    yield from (Path(name).expanduser() for name in _FILES)
    for name, value in os.environ.items():
        if _VARIABLES.fullmatch(name) and value.startswith("/"):
            yield Path(value)
    npm = shutil.which("npm")
    if npm:
        yield Path(_checked([npm, "config", "get", "globalconfig"]).strip())


def _copy(path: Path, root: Path) -> None:
    """To the same place; what is in the home folder, to the home folder of the system."""
    home = Path.home()
    place = Path(HOME) / path.relative_to(home) if path.is_relative_to(home) else path
    target = root / str(place).lstrip("/")
    if path.is_dir():
        shutil.rmtree(target, ignore_errors=True)  # its links would lead out of the system
        shutil.copytree(path, target, ignore_dangling_symlinks=True)
    elif path.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy2(path, target)


def _checked(command: list[str], environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit("usage: python -m tests.support.bare_system FOLDER [COMMAND ...]")
    make(Path(sys.argv[1]))
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:] or ["bash"]).returncode)
