"""The page of the C ABI: its program compiles and runs, its tables name what there is."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import lazydelta as ld
from lazydelta.capi.build import SOURCES
from lazydelta.capi.request import Request
from tests.support.capi_library import c_environment, compiled
from tests.support.table_builder import TableBuilder

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "c-api.md").read_text("utf-8")


def test_the_program_of_the_page_lists_files(tmp_path: Path) -> None:
    (program,) = re.findall(r"```c\n(.*?)```", PAGE, re.DOTALL)
    source = tmp_path / "list.c"
    source.write_text(program, "utf-8")
    table = TableBuilder(tmp_path / "table").commit(["a.parquet", "b.parquet"]).path
    done = subprocess.run(
        [compiled([source], tmp_path / "list"), table],
        capture_output=True,
        text=True,
        check=False,
        env=c_environment(),
    )
    expected = [f"{file.path}: {file.size} bytes" for file in ld.open(table).scan().files()]
    assert (done.returncode, done.stdout.splitlines()) == (0, expected), done.stderr


def test_the_page_and_the_header_name_every_option() -> None:
    header = (SOURCES / "delta_lazy.h").read_text("utf-8")
    for name in Request.__struct_fields__:
        assert f"`{name}`" in PAGE, name
        assert f'"{name}"' in header, name


def test_the_page_names_every_function() -> None:
    declared = set(
        re.findall(
            r"^(?:int|const char \*)\s?(delta_\w+)\(", (SOURCES / "delta_lazy.h").read_text("utf-8"), re.M
        )
    )
    assert len(declared) == 6
    assert all(f"`{name}`" in PAGE for name in declared)
