"""Say exactly what to install when this machine lacks Python 3.11+ or Java 17+; written for any Python 3."""

import re
import shutil
import subprocess
import sys


def main(what):
    """Exit with a message that names the missing piece and how to get it."""
    problem = {"python": python_problem, "java": java_problem}[what]()
    if problem:
        sys.exit("lazydelta: " + problem)


def python_problem():
    """What is wrong with the Python that runs this script, if anything."""
    if sys.version_info < (3, 11):
        found = ".".join(str(part) for part in sys.version_info[:3])
        return (
            "Python 3.11 or newer is needed, {} is {}.\n"
            "  fix: install it (Debian, Ubuntu: apt-get install python3.11 python3.11-venv; "
            "macOS: brew install python@3.11), then run: make PYTHON=python3.11 ..."
        ).format(sys.executable, found)
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return "Python's venv module is missing.\n  fix: apt-get install python3-venv"
    return None


def java_problem():
    """What is wrong with the Java on the PATH, if anything."""
    java = shutil.which("java")
    advice = (
        "\n  fix: install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; "
        "macOS: brew install openjdk@17)"
    )
    if java is None:
        return "Java 17 or newer is needed for the Spark tests, and no java is on the PATH." + advice
    words = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', words)
    if found is None or int(found.group(1)) < 17:
        return "Java 17 or newer is needed for the Spark tests, {} says: {}{}".format(
            java, words.splitlines()[:1], advice
        )
    return None


if __name__ == "__main__":
    main(sys.argv[1])
