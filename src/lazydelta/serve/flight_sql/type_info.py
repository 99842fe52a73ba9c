"""The types of SQL that results may have, by the numbers of ODBC and JDBC."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_T, _I, _B = pa.string(), pa.int32(), pa.bool_()
TYPES = pa.schema(
    [
        pa.field("type_name", _T, nullable=False),
        pa.field("data_type", _I, nullable=False),
        pa.field("column_size", _I),
        pa.field("literal_prefix", _T),
        pa.field("literal_suffix", _T),
        pa.field("create_params", pa.list_(pa.field("item", _T, nullable=False))),
        pa.field("nullable", _I, nullable=False),
        pa.field("case_sensitive", _B, nullable=False),
        pa.field("searchable", _I, nullable=False),
        pa.field("unsigned_attribute", _B),
        pa.field("fixed_prec_scale", _B, nullable=False),
        pa.field("auto_increment", _B),
        pa.field("local_type_name", _T),
        pa.field("minimum_scale", _I),
        pa.field("maximum_scale", _I),
        pa.field("sql_data_type", _I, nullable=False),
        pa.field("datetime_subcode", _I),
        pa.field("num_prec_radix", _I),
        pa.field("interval_precision", _I),
    ]
)
_NULLABLE, _SEARCHABLE, _BASIC = 1, 3, 2
_DATETIME = 9


def type_info(number: int | None) -> pa.Table:
    """All types, or those of one number."""
    rows = sorted(_rows(), key=lambda row: (row["data_type"], row["type_name"]))
    return pa.Table.from_pylist([row for row in rows if number in (None, row["data_type"])], TYPES)


def _rows() -> list[dict[str, Any]]:  # Any: as the columns have it
    return [
        _number("BOOLEAN", -7, 1, None),
        _number("TINYINT", -6, 3, 10),
        _number("SMALLINT", 5, 5, 10),
        _number("INTEGER", 4, 10, 10),
        _number("BIGINT", -5, 19, 10),
        _number("FLOAT", 7, 24, 2),
        _number("DOUBLE", 8, 53, 2),
        _number(
            "DECIMAL", 3, 38, 10, create_params=["precision", "scale"], minimum_scale=0, maximum_scale=38
        ),
        _type("VARCHAR", 12, None, quote="'", case_sensitive=True, searchable=_SEARCHABLE),
        _type("BLOB", -3, None, quote="'"),
        _time("DATE", 91, 10, 1),
        _time("TIME", 92, 15, 2),
        _time("TIMESTAMP", 93, 26, 3),
        _time("TIMESTAMP WITH TIME ZONE", 93, 32, 5),
    ]


def _number(name: str, number: int, size: int, radix: int | None, **more: Any) -> dict[str, Any]:
    sign = None if radix is None else False
    return _type(
        name, number, size, num_prec_radix=radix, unsigned_attribute=sign, auto_increment=sign, **more
    )


def _time(name: str, number: int, size: int, subcode: int) -> dict[str, Any]:
    return _type(name, number, size, quote="'", sql_data_type=_DATETIME, datetime_subcode=subcode)


def _type(name: str, number: int, size: int | None, quote: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "type_name": name,
        "data_type": number,
        "column_size": size,
        "literal_prefix": quote,
        "literal_suffix": quote,
        "nullable": _NULLABLE,
        "case_sensitive": False,
        "searchable": _BASIC,
        "fixed_prec_scale": False,
        "local_type_name": name,
        "sql_data_type": number,
        **more,
    }
