"""The project file of the client, its example and its README: they name what is there, and run."""

from __future__ import annotations

import re
import subprocess
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import lazydelta as ld
from tests.support.compiled_once import compiled_once
from tests.support.csharp import CLIENT, csharp_environment
from tests.support.mono import LANGUAGE_VERSION, mono
from tests.support.sharing_stub import SharingStub

ROOT = Path(__file__).resolve().parents[3]
AROUND = """
using System; using System.Collections.Generic; using System.Threading; using System.Threading.Tasks;
using LazyDelta;
public class Blocks {
static CancellationToken token;
static Task<List<DeltaFile>> All(IAsyncEnumerable<DeltaFile> files) { return null; }
"""


@pytest.fixture(scope="module")
def example(client: Path) -> Path:
    """The program of the example, compiled against the client."""
    source = CLIENT / "example" / "ListFiles.cs"

    def make(folder: Path) -> None:
        references = (f"-r:{client}", "-r:System.Net.Http.dll")
        mono().compiled([source], folder / "ListFiles.exe", *references)

    return compiled_once("csharp-example", [source, client, *mono().command], make) / "ListFiles.exe"


def test_the_project_file_compiles_what_mono_compiles() -> None:
    project = ET.parse(CLIENT / "LazyDelta.csproj").getroot()
    assert project.get("Sdk") == "Microsoft.NET.Sdk"
    assert project.findtext(".//TargetFrameworks") == "netstandard2.0;net8.0"
    assert project.findtext(".//LangVersion") == LANGUAGE_VERSION
    patterns = [item.get("Include") or "" for item in project.iter("Compile")]
    assert {path for pattern in patterns for path in CLIENT.glob(pattern)} == set(CLIENT.glob("src/*.cs"))
    package = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project.findtext(".//Version") == package["version"]


def test_the_example_lists_files_in_process(example: Path, client: Path, shared_table: str) -> None:
    done = _run(example, client, shared_table, "3")
    expected = [f"{file.path}\t{file.size}" for file in ld.open(shared_table).scan(limit=3).files()]
    assert (done.returncode, done.stdout.splitlines()) == (0, expected), done.stderr


def test_the_example_says_what_a_server_refused(example: Path, client: Path, stub: SharingStub) -> None:
    done = _run(example, client, "share.schema.good", "3", stub.url)
    assert done.returncode == 8 and "who are you?" in done.stderr


def test_the_code_of_the_pages_compiles(client: Path, tmp_path: Path) -> None:
    """`await foreach` and `using var` are C# 8, which mono lacks: they are tried as what they stand for."""
    pages = [ROOT / "README.md", CLIENT / "README.md", ROOT / "docs" / "csharp.md"]
    blocks = [
        block
        for page in pages
        for block in re.findall(r"```csharp\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    ]
    assert len(blocks) >= 4
    bodies = "".join(
        f"async Task Block{i}(string table) {{\n{_loops(block)}\n}}\n" for i, block in enumerate(blocks)
    )
    source = tmp_path / "Blocks.cs"
    source.write_text(f"{AROUND}{bodies}}}", "utf-8")
    flags = ("-target:library", f"-r:{client}", "-r:System.Net.Http.dll", "-nowarn:1998,649,169")
    mono().compiled([source], tmp_path / "Blocks.dll", *flags)


def _loops(block: str) -> str:
    without_usings = re.sub(r"^using [\w.]+;\n", "", block, flags=re.MULTILINE)
    pattern = r"await foreach \((?:var|DeltaFile) (\w+) in (.+)\)\n"
    without_usings = without_usings.replace("using var ", "var ")
    return re.sub(pattern, r"foreach (DeltaFile \1 in await All(\2))\n", without_usings)


def _run(example: Path, client: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**csharp_environment(), "MONO_PATH": str(client.parent)}
    command = [*mono().command, str(example), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)
