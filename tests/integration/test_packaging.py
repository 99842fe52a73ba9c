"""The distributions: built, installed into an empty environment, used there as a stranger would use them.

Contract: the environment has the wheel and nothing else; its dependencies are those of this one, found beside
it, so that no registry is asked. That each extra's requirements are ones that exist together is told by the
lock, which this environment is made from.
"""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import version as installed_version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PROGRAM = """
import lazydelta as ld
from lazydelta.errors import LazyDeltaError

def sizes(url: str) -> list[int]:
    table = ld.open(url)
    try:
        return [file.size for file in table.scan("value > 3", limit=10).files()]
    except LazyDeltaError as problem:
        print(problem.what)
        return []

report = ld.open("t").doctor()
worst: str | None = report.worst
version: str = ld.__version__
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    [path] = distributions.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the wheel installed."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    interpreter = folder / "bin" / "python"
    install = [sys.executable, "-m", "uv", "pip", "install", "--no-deps", "--offline", "--no-cache"]
    subprocess.run([*install, "--python", interpreter, wheel], check=True, capture_output=True, timeout=300)
    site = next((folder / "lib").glob("python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return interpreter


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints, without this repository in reach."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MYPY"))}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"lazydelta", f"lazydelta-{PROJECT['version']}.dist-info"}
    assert "lazydelta/py.typed" in names
    tracked = subprocess.run(
        ["git", "ls-files", "src/lazydelta"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    missing = {name.removeprefix("src/") for name in tracked.stdout.splitlines()} - names
    assert missing == set()


def test_the_sdist_builds_the_same_wheel(distributions: Path, wheel: Path, tmp_path: Path) -> None:
    [sdist] = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    [folder] = tmp_path.iterdir()
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "again")]
    subprocess.run(build, cwd=folder, check=True, capture_output=True, timeout=300)
    [again] = (tmp_path / "again").glob("*.whl")
    with zipfile.ZipFile(again) as theirs, zipfile.ZipFile(wheel) as ours:
        assert sorted(theirs.namelist()) == sorted(ours.namelist())


def test_the_metadata_is_what_the_project_says(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        told = email.message_from_bytes(archive.read(name))
    assert told["Version"] == PROJECT["version"]
    assert set(told.get_all("Provides-Extra") or ()) == set(PROJECT["optional-dependencies"])
    assert told["License-Expression"] == "Apache-2.0"
    core = [text for text in told.get_all("Requires-Dist") or () if "extra ==" not in text]
    assert len(core) == len(PROJECT["dependencies"])
    for text in (
        told.get_all("Requires-Dist") or ()
    ):  # each is there: an extra that nobody can install is none
        installed_version(re.split(r"[<>=!~\[; ]", text, maxsplit=1)[0])


def test_the_version_stands_in_one_place(python: Path, tmp_path: Path) -> None:
    version = PROJECT["version"]
    assert run(python, "-m", "lazydelta", "--version", cwd=tmp_path).split() == ["lazydelta", version]
    assert run(python.with_name("lazydelta"), "--version", cwd=tmp_path).split() == ["lazydelta", version]
    shown = run(
        python, "-c", "import lazydelta; print(lazydelta.__version__, lazydelta.__file__)", cwd=tmp_path
    )
    assert shown.split()[0] == version
    assert str(python.parents[1]) in shown.split()[1], "the wheel is used, not the repository"
    project = (ROOT / "clients" / "csharp" / "LazyDelta.csproj").read_text("utf-8")
    assert f"<Version>{version}</Version>" in project
    literal = re.compile(rf"[\"']{re.escape(version)}[\"']")
    strays = [path for path in (ROOT / "src").rglob("*.py") if literal.search(path.read_text("utf-8"))]
    assert strays == []


def test_the_first_commands_work_from_an_empty_folder(python: Path, tmp_path: Path) -> None:
    command = python.with_name("lazydelta")
    assert "48,000 in 96 files" in run(command, "sample", "telemetry", cwd=tmp_path)
    assert "nothing to do" in run(command, "doctor", "telemetry", cwd=tmp_path)
    assert run(command, "sql", "telemetry", "select count(*) as n from t", cwd=tmp_path).split() == [
        "n",
        "48000",
    ]
    assert len(run(command, "files", "telemetry", "--limit", "3", cwd=tmp_path).splitlines()) == 3


def test_types_reach_a_program_of_a_user(python: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    check = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python), "program.py"]
    cache = ["--cache-dir", str(tmp_path / "cache")]
    assert "Success" in run(*check, *cache, cwd=tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM + "\nld.open(3)\nwrong: int = ld.open('t').url\nld.opne\n")
    done = subprocess.run([*check, *cache], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert len(re.findall(r"error:.*\[(?:arg-type|assignment|attr-defined)\]", done.stdout)) == 3


def test_importing_the_package_loads_nothing_heavy(python: Path, tmp_path: Path) -> None:
    """Seconds depend on the machine; what is loaded does not."""
    source = "import sys, lazydelta; print(*sorted(name.partition('.')[0] for name in sys.modules))"
    loaded = set(run(python, "-c", source, cwd=tmp_path).split())
    heavy = {"pyarrow", "numpy", "pandas", "polars", "duckdb", "pyspark", "obstore", "sqlglot", "msgspec"}
    heavy |= {"rich", "typer", "asyncio", "typing", "importlib_metadata", "starlette", "opentelemetry"}
    assert loaded & heavy == set()


def test_help_loads_no_arrow(python: Path, tmp_path: Path) -> None:
    source = (
        "import sys\n"
        "from lazydelta.cli.app import app\n"
        "from typer.testing import CliRunner\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = set(run(python, "-c", source, cwd=tmp_path).split())
    assert loaded & {"pyarrow", "numpy", "pandas", "duckdb", "sqlglot", "obstore"} == set()
