"""A prompt for KQL: queries line by line, with history and completion.

Contract: an empty line runs what was typed; Ctrl-C drops it, or ends the query that runs; Ctrl-D leaves. What
is wrong with a query is told, and the prompt goes on. The history is a file of this user's alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lazydelta.cli.kql_completion import candidates
from lazydelta.cli.line_history import kept_history
from lazydelta.cli.outcome import error_text
from lazydelta.cli.prompt_exit import Terminated, on_interrupt
from lazydelta.cli.sql_command import FORMATS
from lazydelta.cli.streams import write_lines
from lazydelta.errors import LazyDeltaError

if TYPE_CHECKING:
    from lazydelta.engines.kql.result import KqlResult

_FIRST, _MORE = "kql> ", "   > "
_HELP = """An empty line runs the query; a query may have several lines.
#tables           what can be asked
#schema [NAME]    the columns of a table
#explain          say after each query what was read; again: no more
#format NAME      table, csv, json or jsonl
#quit             leave, as Ctrl-D does; Ctrl-C drops what was typed and ends a query that runs
Tab completes tables, columns, operators and functions."""


class Prompt:
    """Asks for queries until nobody wants more."""

    def __init__(
        self,
        ask: Callable[[str], KqlResult],
        columns: Mapping[str, Sequence[str]],
        *,
        format_: str,
        is_explained: bool,
    ) -> None:
        """`columns`: of each table, those that are known."""
        self._ask = ask
        self._columns = columns
        self._format = format_
        self._is_explained = is_explained
        self._typed: list[str] = []
        self._running: KqlResult | None = None
        self._is_busy = self._is_stopped = False

    def run(self) -> None:
        """Until Ctrl-D or #quit."""
        on_interrupt(self._stop)
        with kept_history(os.environ, self._completed):
            print("KQL over the lazy table; #help tells more, Ctrl-D leaves.", file=sys.stderr)
            while self._goes_on():
                pass

    def _goes_on(self) -> bool:
        try:
            line = input(_MORE if self._typed else _FIRST)
        except EOFError:
            print(file=sys.stderr)
            if self._typed:
                self._run_typed()
            return False
        except KeyboardInterrupt as stop:
            if isinstance(stop, Terminated):
                raise
            print("^C", file=sys.stderr)
            self._typed.clear()
            return True
        return self._took(line)

    def _took(self, line: str) -> bool:
        """Whether to go on."""
        if not self._typed and line.strip().startswith("#"):
            return self._obeyed(line.split())
        if line.strip():
            self._typed.append(line)
        elif self._typed:
            self._run_typed()
        return True

    def _obeyed(self, words: list[str]) -> bool:
        command, rest = words[0], words[1:]
        if command in ("#quit", "#exit"):
            return False
        if command == "#tables":
            write_lines(self._columns)
        elif command == "#schema":
            self._show_schema(rest[0] if rest else next(iter(self._columns)))
        elif command == "#explain":
            self._is_explained = not self._is_explained
            print(f"explain is {'on' if self._is_explained else 'off'}", file=sys.stderr)
        elif command == "#format" and rest and rest[0] in FORMATS and rest[0] != "parquet":
            self._format = rest[0]
        else:
            print(_HELP, file=sys.stderr)
        return True

    def _show_schema(self, table: str) -> None:
        from lazydelta.engines.kql.tokens import quoted_name

        self._run(f"{quoted_name(table)} | getschema")

    def _run_typed(self) -> None:
        query = "\n".join(self._typed)
        self._typed.clear()
        self._run(query)

    def _run(self, query: str) -> None:
        from lazydelta.cli.kql_command import show_kql_rows

        self._is_busy = True
        try:
            with self._ask(query) as found:
                self._running = found
                if not self._is_stopped:
                    show_kql_rows(found, format_=self._format, output=None)
                if self._is_explained and not self._is_stopped:
                    print(found.report(), file=sys.stderr)
        except LazyDeltaError as error:
            if not self._is_stopped:
                print(error_text(error), file=sys.stderr)
        except KeyboardInterrupt as stop:
            if isinstance(stop, Terminated):
                raise
        finally:
            if self._is_stopped:
                print("^C: the query was ended", file=sys.stderr)
            self._running, self._is_busy, self._is_stopped = None, False, False

    def _stop(self) -> None:
        """End the query that runs, from another thread: this one may wait for DuckDB and hear nothing."""
        self._is_stopped = self._is_busy
        if self._running is not None:
            self._running.close()

    def _completed(self, word: str, index: int) -> str | None:
        import readline

        line = readline.get_line_buffer()[: readline.get_endidx()]
        found = candidates("\n".join([*self._typed, line]), word, self._columns)
        if index >= len(found):
            return None
        return f"{found[index]} " if len(found) == 1 else found[index]
