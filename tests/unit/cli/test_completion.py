"""Shell completion: bash, zsh and fish really complete, each with its own script."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command_line import environment
from tests.support.shells import shell, shell_environment, zsh_modules

# What is typed, what is offered, and what is not.
TYPED = [
    ("lazydelta sid", {"sidecar"}, {"files"}),
    ("lazydelta sidecar ver", {"verify"}, {"build"}),
    ("lazydelta files t --with", {"--with-stats"}, {"--where"}),
    ("lazydelta files t --strategy re", {"reverse"}, {"auto"}),
    ("lazydelta doctor t --js", {"--json"}, {"--where"}),
    ("lazydelta sql t q --format j", {"json", "jsonl"}, {"csv"}),
]
COMPLETE = """\
COMP_WORDS=({words}) COMP_CWORD={at}
_lazydelta_completion lazydelta
echo "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def with_command(tmp_path: Path) -> dict[str, str]:
    """An environment in which `lazydelta` is a command, and home an empty folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "lazydelta"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m lazydelta.cli "$@"\n')
    script.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    return environment(PATH=f"{folder}:{os.environ['PATH']}", HOME=str(home))


def in_bash(script: str, env: dict[str, str]) -> str:
    """What a script prints; bash is the parent of the command, as at a prompt."""
    done = subprocess.run(
        ["bash", "--norc"], input=script, env=env, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_bash_completes_commands_options_and_values(with_command: dict[str, str]) -> None:
    asked = [COMPLETE.format(words=words, at=len(words.split()) - 1) for words, _, _ in TYPED]
    script = 'eval "$(lazydelta --show-completion)"\n' + "".join(asked)
    found = [set(line.split()) for line in in_bash(script, with_command).splitlines()]
    assert [offered - one for one, (_, offered, _) in zip(found, TYPED, strict=True)] == [set()] * len(TYPED)
    assert [others & one for one, (_, _, others) in zip(found, TYPED, strict=True)] == [set()] * len(TYPED)


def test_completion_can_be_installed_for_bash(with_command: dict[str, str]) -> None:
    told = in_bash("lazydelta --install-completion\n", with_command)
    home = Path(with_command["HOME"])
    assert "bash completion installed" in told
    [script] = [path for path in home.rglob("lazydelta*") if path.is_file()]
    assert "_lazydelta_completion" in script.read_text()
    assert str(script) in (home / ".bashrc").read_text()


def test_fish_completes_commands_options_and_values(with_command: dict[str, str]) -> None:
    asked = [f"complete -C '{words}'; echo =====" for words, _, _ in TYPED[::3]]
    script = "; ".join(["env _LAZYDELTA_COMPLETE=source_fish lazydelta | source", *asked])
    done = subprocess.run(
        [shell("fish"), "--no-config", "-c", script],
        env=with_command | shell_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = [{line.partition("\t")[0] for line in part.split("\n")} for part in done.stdout.split("=====\n")]
    assert [part - {""} for part in found[:-1]] == [offered for _, offered, _ in TYPED[::3]]


def test_zsh_completes_what_is_typed_at_its_prompt(with_command: dict[str, str]) -> None:
    begin = f"{zsh_modules()}; autoload -U compinit; compinit -u -D; PS1='> '"
    source = "env _LAZYDELTA_COMPLETE=source_zsh lazydelta > $HOME/completion; . $HOME/completion"
    parent, child = pty.openpty()
    environment = with_command | shell_environment() | {"TERM": "dumb"}
    with subprocess.Popen(
        [shell("zsh"), "-f", "-i"], stdin=child, stdout=child, stderr=child, env=environment
    ) as process:
        os.close(child)
        os.write(parent, f"{begin}; {source}; echo rea''dy\n".encode())
        shown_until(parent, b"ready")
        for typed, completed in (
            (b"lazydelta sidecar ver", b"lazydelta sidecar verify "),
            (b"lazydelta files t --strategy re", b"lazydelta files t --strategy reverse "),
        ):
            os.write(parent, typed + b"\t")
            shown_until(parent, completed)
            os.write(parent, b"\x15")  # forget the line
        process.kill()
    os.close(parent)


def shown_until(terminal: int, words: bytes) -> None:
    """Wait until the terminal shows the words."""
    shown, give_up = b"", time.monotonic() + 60
    while words not in shown:
        assert time.monotonic() < give_up, shown
        if select.select([terminal], [], [], 0.5)[0]:
            shown += os.read(terminal, 65536)
