"""What goes wrong with the bytes of a data file, as the error that names the file and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from lazydelta.errors import CorruptDataError, UnsupportedTableError
from lazydelta.rows.data_file import DataFile
from lazydelta.rows.legacy_calendar import OldTimeError
from lazydelta.rows.sound_text import BrokenTextError
from lazydelta.storage import ObjectNotFoundError, ObjectTooShortError


@contextmanager
def damage_named(where: str, *, version: int) -> Iterator[None]:
    """Turn errors of pyarrow and absent or cut objects into a `CorruptDataError`; others pass.

    Times in a calendar that cannot be undone are an `UnsupportedTableError`.
    """
    try:
        yield
    except ObjectNotFoundError as gone:
        raise CorruptDataError(
            f"a data file of version {version} is not there",
            where,
            "restore the file; or, if VACUUM deleted it because the version is old, open a newer one",
        ) from gone
    except ObjectTooShortError as cut:
        raise damaged(cut.what, where, version=version) from cut
    except OldTimeError as old:
        raise UnsupportedTableError(
            f"the column {old} has times before 1900 that Spark wrote in its legacy calendar, by a time zone "
            "that the file does not name or that is not UTC",
            where,
            "rewrite the file with Spark in the rebase mode CORRECTED, or leave the column out",
        ) from old
    except BrokenTextError as broken:
        raise CorruptDataError(
            f"the column {broken} of a data file of version {version} holds a text that is not UTF-8",
            where,
            "leave the column out, or write the file's rows again with texts as UTF-8",
        ) from broken
    except (pa.ArrowException, OSError, UnicodeDecodeError) as damage:
        raise damaged(damage, where, version=version) from damage


def check_row_count(file: DataFile, row_count: int, where: str, *, version: int) -> None:
    """Raise where the log counts other rows than the footer; it counts those that are deleted, too.

    By the log `count(*)` is answered and a limit ends the search for files, so that one of them is wrong.
    """
    if file.num_records not in (None, row_count):
        raise CorruptDataError(
            f"a data file of version {version} has {row_count:,} rows, "
            f"and {file.num_records:,} by numRecords in the log",
            where,
            "restore the file that the log means; or, if the file is right, add it to the table again with "
            "statistics that count its rows",
        )


def damaged(damage: object, where: str, *, version: int) -> CorruptDataError:
    """The error of a file whose bytes are wrong."""
    return CorruptDataError(
        f"a data file of version {version} cannot be read: {damage}",
        where,
        "restore it from a copy, or remove it from the table and write its rows again",
    )
