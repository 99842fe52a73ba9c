"""Lines that were typed at a prompt, kept for the next time, and completion while they are typed.

Contract: the file is this user's alone, and holds a bounded number of lines. Where Python has no readline, or
the file cannot be written, the prompt goes without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

_LINES_MAX = 1000
_WORD_ENDS = " \t\n|()[]{},;='\"<>+*/"
Completer = Callable[[str, int], str | None]


@contextmanager
def kept_history(environment: Mapping[str, str], completer: Completer) -> Iterator[None]:
    """While it lasts, lines are read with history and completion."""
    try:
        import readline
    except ImportError:
        yield
        return
    readline.set_completer_delims(_WORD_ENDS)
    readline.set_completer(completer)
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    readline.set_history_length(_LINES_MAX)
    history = history_file(environment)
    with suppress(OSError):
        history.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        history.touch(mode=0o600)
        readline.read_history_file(history)
    try:
        yield
    finally:
        with suppress(OSError):
            readline.write_history_file(history)


def history_file(environment: Mapping[str, str]) -> Path:
    """Where the lines are kept."""
    state = environment.get("XDG_STATE_HOME")
    home = Path(environment["HOME"]) if environment.get("HOME") else Path.home()
    return (Path(state) if state else home / ".local" / "state") / "lazydelta" / "kql_history"
