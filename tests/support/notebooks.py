"""A notebook's code cells, run in order in one process, as a kernel would run them.

Why: a notebook that does not run is worse than none, and a kernel is a large thing to install for that.
Contract: cells are plain Python; what a cell prints, and the value of its last expression, is its output.
`python -m tests.support.notebooks NOTEBOOK` writes today's outputs into the notebook.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DRIVER = """
import ast, contextlib, io, json, sys
names = {"__name__": "__main__"}
for source in json.load(sys.stdin):
    tree, out = ast.parse(source), io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(out):
        exec(compile(tree, "cell", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    print(json.dumps({"text": out.getvalue(), "value": None if value is None else repr(value)}), flush=True)
"""


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    """The cells that hold code."""
    told = json.loads(notebook.read_text("utf-8"))
    assert (told["nbformat"], told["nbformat_minor"]) == (4, 5)
    return [cell for cell in told["cells"] if cell["cell_type"] == "code"]


def run_cells(sources: list[str], folder: Path) -> list[str]:
    """What each cell shows, run in `folder`."""
    for source in sources:
        ast.parse(source)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", DRIVER],
        input=json.dumps(sources), cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = [json.loads(line) for line in done.stdout.splitlines()]
    return [f"{cell['text']}{cell['value'] or ''}".rstrip("\n") for cell in shown]


def shown_in(cell: dict[str, Any]) -> str:
    """What the notebook says that a cell shows."""
    return "".join("".join(output["text"]) for output in cell["outputs"]).rstrip("\n")


def write_outputs(notebook: Path) -> None:
    """Put today's outputs into the notebook."""
    told = json.loads(notebook.read_text("utf-8"))
    cells = [cell for cell in told["cells"] if cell["cell_type"] == "code"]
    with tempfile.TemporaryDirectory() as folder:
        shown = run_cells(["".join(cell["source"]) for cell in cells], Path(folder))
    for number, (cell, text) in enumerate(zip(cells, shown, strict=True), start=1):
        cell["execution_count"] = number
        lines = [f"{line}\n" for line in text.splitlines()]
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    notebook.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    write_outputs(Path(sys.argv[1]))
