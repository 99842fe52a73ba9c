"""What may follow at the prompt of KQL: its own commands, or what the query may go on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lazydelta.engines.kql import completion

COMMANDS = ("#explain", "#format", "#help", "#quit", "#schema", "#tables")


def candidates(before: str, word: str, columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Words that begin as `word` does; `before` is all that was typed, the word included."""
    if not before.lstrip().startswith("#"):
        return completion.candidates(before, word, columns)
    possible = [*COMMANDS, *columns] if " " not in before.strip() else list(columns)
    return sorted({one for one in possible if one.startswith(word)})
