"""How a scan is run: one frozen struct, with the names and defaults users know."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError

Named = TypeVar("Named", bound=StrEnum)


class ScanStrategy(StrEnum):
    """In which order the log is read. The files are the same."""

    AUTO = "auto"  # chosen from the listing, the hints and the counts
    REVERSE = "reverse"  # commits newest first, then the checkpoint, if it is still needed
    FORWARD = "forward"  # the tail as a mask, the checkpoint, then the tail's files


class ScanOrder(StrEnum):
    """In which order the files come out, where that matters."""

    ASC = "asc"  # by the sidecar's order: its time column, then path
    DESC = "desc"


def check_number(name: str, value: object, minimum: int, *, where: str) -> None:
    """Raise unless the value is none at all, or a number (whole, but for times) of at least `minimum`."""
    is_time = name.endswith("_seconds")
    is_number = isinstance(value, int | float) if is_time else isinstance(value, int)
    number = float(str(value)) if is_number and not isinstance(value, bool) else math.nan
    if value is None or minimum <= number < limits.NUMBER_MAX:
        return
    kind = "number" if is_time else "whole number"
    fix = f"give a {kind} of at least {minimum}"
    if number >= limits.NUMBER_MAX:
        fix += f" and below {limits.NUMBER_MAX:,}"
    raise InvalidRequestError(f"{name} is {value!r}", where, fix)


class LazyScanConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for and how much to spend on it."""

    predicate: Any = None  # SQL text, mapping, list or expression: `predicate.parse_where` takes them all
    limit: int | None = None  # files, at most
    strategy: ScanStrategy | str = ScanStrategy.AUTO
    order: ScanOrder | str | None = None  # None: as they are found
    batch_size: int = limits.BATCH_ROWS  # rows of an output batch
    remove_set_memory_limit: int = limits.REMOVE_SET_BYTES
    enable_fallback: bool = True  # False: what would fall back is an error
    commit_read_parallelism: int = limits.COMMIT_PARALLELISM
    checkpoint_row_groups_per_batch: int = limits.CHECKPOINT_ROW_GROUPS_PER_BATCH
    scan_timeout_seconds: float = limits.SCAN_TIMEOUT_SECONDS
    strict: bool = False  # trip on every action but add, remove and commitInfo, and on deletion vectors
    use_log_compaction: bool = False  # trust compacted files above a checkpoint too
    retention_guard: Callable[[int], bool] | None = None  # may refuse a floor version
    time_zone: str = "UTC"  # of partition values and literals without one

    def checked(self) -> LazyScanConfig:
        """The same with the strategy as an enum, or an error that names the field."""
        at_least = {
            "limit": 0,
            "batch_size": 1,
            "remove_set_memory_limit": 0,
            "commit_read_parallelism": 1,
            "checkpoint_row_groups_per_batch": 1,
            "scan_timeout_seconds": 0,
        }
        for name, minimum in at_least.items():
            check_number(name, getattr(self, name), minimum, where="the scan's configuration")
        for name in ("enable_fallback", "strict", "use_log_compaction"):
            if not isinstance(getattr(self, name), bool):  # a text would count as true, "false" too
                told = f"{name} is {getattr(self, name)!r}"
                raise InvalidRequestError(told, "the scan's configuration", "give True or False")
        try:
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
            raise InvalidRequestError(
                f"there is no time zone {self.time_zone!r}",
                "the scan's configuration",
                "name one as in Europe/Berlin, or UTC",
            ) from None
        if self.retention_guard is not None and not callable(self.retention_guard):
            raise InvalidRequestError(
                f"retention_guard is {self.retention_guard!r}",
                "the scan's configuration",
                "give a function of the floor version",
            )
        strategy = _named(ScanStrategy, self.strategy, "strategy")
        order = None if self.order is None else _named(ScanOrder, self.order, "order")
        if order is not None and strategy is not ScanStrategy.AUTO:
            raise InvalidRequestError(
                f"the order {order.value!r} and the strategy {strategy.value!r} are both given",
                "the scan's configuration",
                "give one of them: an order says how the log is read",
            )
        return msgspec.structs.replace(self, strategy=strategy, order=order)


def _named(kind: type[Named], value: Any, what: str) -> Named:  # Any: what a caller gave
    try:
        return kind(value)
    except ValueError:
        raise InvalidRequestError(
            f"there is no {what} {value!r}", "the scan's configuration", f"use one of {', '.join(kind)}"
        ) from None
