"""What is wrong with a query in KQL, with Kusto's code for it and the place in its text.

Contract: `line` and `column` count from 1; None where the place is not known. Codes are Kusto's own, since
its clients look at them.
"""

from __future__ import annotations

from lazydelta.errors import InvalidRequestError

SYNTAX = "SYN0002"  # it does not parse
TOO_LARGE = "SYN0003"  # it is longer or deeper than a query may be
UNKNOWN_NAME = "SEM0100"  # of a table, a column, a function
TWICE = "SEM0034"  # two columns of one name
MISMATCH = "SEM0064"  # values of these types do not go together
UNSUPPORTED = "SEM0001"  # a part of the language that is not translated
BAD_VALUE = "General_BadRequest"  # a value of the data or of a parameter that does not do

Place = tuple[int, int] | None  # line and column, from 1


class KqlError(InvalidRequestError):
    """A query in KQL that cannot be run."""

    def __init__(self, what: str, where: str, fix: str, code: str = UNSUPPORTED, at: Place = None) -> None:
        super().__init__(what, where, fix)
        self.args = (*self.args, code, at)  # all of them, so that the error survives pickling

    @property
    def code(self) -> str:
        """Kusto's code."""
        return str(self.args[3])

    @property
    def line(self) -> int | None:
        """Of the place, from 1."""
        return None if self.args[4] is None else int(self.args[4][0])

    @property
    def column(self) -> int | None:
        """Of the place, from 1."""
        return None if self.args[4] is None else int(self.args[4][1])


class UnsupportedKqlError(KqlError):
    """A part of the language that is not translated."""

    def __init__(  # noqa: PLR0917  # by position, so that the error survives pickling
        self,
        what: str,
        where: str,
        fix: str,
        code: str = UNSUPPORTED,
        at: Place = None,
        operator: str = "",
    ) -> None:
        super().__init__(what, where, fix, code, at)
        self.args = (*self.args, operator)

    @property
    def operator(self) -> str:
        """Its name."""
        return str(self.args[5])


def place_of(text: str, offset: int) -> tuple[int, int]:
    """Line and column of a character, from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def shown_place(text: str, at: Place) -> str:
    """`KQL, line 2, column 7: | where …`, as errors say it."""
    if at is None:
        return f"KQL: {' '.join(text.split())[:200]}"
    lines = text.split("\n")
    shown = lines[at[0] - 1].strip()[:200] if at[0] <= len(lines) else ""
    return f"KQL, line {at[0]}, column {at[1]}: {shown}"


def kql_error(what: str, text: str, at: Place, fix: str, code: str) -> KqlError:
    """An error at a place of a query."""
    return KqlError(what, shown_place(text, at), fix, code, at)


def unsupported(operator: str, text: str, at: Place, *, why: str = "", fix: str = "") -> UnsupportedKqlError:
    """A part of the language that is not translated, at its place."""
    what = f"{operator} is not supported" + (f": {why}" if why else "")
    fix = fix or "write the query without it; docs/kql.md lists what is supported"
    return UnsupportedKqlError(what[:600], shown_place(text, at), fix, UNSUPPORTED, at, operator)
