"""The Python of the Flight SQL messages, made from `messages.proto`; `python -m` this module writes it anew.

Contract: what the compiler says of its own version is left out, so that the checked-in text changes with the
messages alone and runs with every protobuf that the package allows.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import lazydelta.serve.flight_sql

ROOM = Path(lazydelta.serve.flight_sql.__file__).parent
HEADER = "# ruff: noqa\n# fmt: off\n# mypy: ignore-errors\n"
_VERSION = re.compile(
    r"# Protobuf Python Version: .*\n|# NO CHECKED-IN PROTOBUF GENCODE\n"
    r"|from google.protobuf import runtime_version .*\n"
    r"|_runtime_version\.ValidateProtobufRuntimeVersion\([^)]*\)\n"
)


def generated() -> dict[str, str]:
    """Names of files and what has to be in them."""
    with tempfile.TemporaryDirectory() as folder:
        out = [f"--python_out={folder}", f"--pyi_out={folder}"]
        root = ROOM.parents[2]  # the whole path names the file to protobuf, which knows each name once
        source = str((ROOM / "messages.proto").relative_to(root))
        command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={root}", *out, source]
        subprocess.run(command, check=True, cwd=root)
        made = sorted(Path(folder).rglob("messages_pb2.*"))
        return {path.name: HEADER + _VERSION.sub("", path.read_text("utf-8")) for path in made}


if __name__ == "__main__":
    for name, text in generated().items():
        (ROOM / name).write_text(text, "utf-8")
