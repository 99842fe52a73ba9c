"""How far a stream has come, as Spark's checkpoint keeps it."""

from __future__ import annotations

from typing import Any

import msgspec

from lazydelta.errors import InvalidRequestError


class StreamOffset(msgspec.Struct, frozen=True, order=True, rename="camel", kw_only=True):
    """Everything before `version` was read, and of its files the first `index`.

    With `is_snapshot` nothing was: the table as it is at `version` comes first.
    """

    version: int
    index: int = 0
    is_snapshot: bool = False
    table_id: str = ""

    def as_json(self) -> dict[str, Any]:  # Any: what JSON has
        """For Spark."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def after(self, version: int, index: int = 0) -> StreamOffset:
        """Further on in the same table."""
        return StreamOffset(version=version, index=index, table_id=self.table_id)


def parse_offset(given: dict[str, Any], table_id: str, where: str) -> StreamOffset:  # Any: what JSON has
    """What Spark has kept, which must be of this table."""
    try:
        offset = msgspec.convert(given, StreamOffset)
    except msgspec.ValidationError as error:
        raise InvalidRequestError(
            f"the stream's checkpoint has an offset that is none of lazydelta's: {error}",
            where,
            "give the stream a checkpoint location of its own",
        ) from error
    if offset.table_id != table_id:
        raise InvalidRequestError(
            "the stream's checkpoint is of another table",
            where,
            "the table was replaced, or the location is another stream's: give a new checkpoint location",
        )
    return offset
