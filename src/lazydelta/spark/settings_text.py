"""The effective settings as TOML that can be read again; secrets are masked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import msgspec

from lazydelta.redaction import redacted
from lazydelta.spark.config import IngestConfig

MASK = "***"
_SECRET_NAME = re.compile(
    r"secret|passw|pwd|token|credential|signature|jaas|sas|(^|[._-])key($|[._-])|(account|access|api)[._-]?key",
    re.I,
)
_SECRET_VALUE = re.compile(r"(password|passwd|pwd|sig|token|secret|accountkey)=", re.I)


def settings_text(config: IngestConfig) -> str:
    """[ingest], [sidecar] and [spark]; what is not set is left out."""
    tree = msgspec.structs.asdict(config)
    sidecar = msgspec.structs.asdict(tree.pop("sidecar"))
    spark = tree.pop("spark")
    tables = {name: value for name, value in tree.items() if isinstance(value, dict)}
    lines = [*_table("ingest", {name: value for name, value in tree.items() if name not in tables})]
    for name, table in tables.items():
        if table:
            lines += ["", *_table(f"ingest.{name}", _masked(table))]
    lines += ["", *_table("sidecar", sidecar), "", *_table("spark", _masked(spark))]
    return "\n".join(lines)


def is_secret(name: str, value: str) -> bool:
    """Whether a setting looks like one that nobody should read."""
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.search(value) or redacted(value) != value)


def _table(name: str, values: Mapping[str, object]) -> Iterator[str]:
    yield f"[{name}]"
    for key, value in values.items():
        if value is not None:
            yield f"{_key(key)} = {_value(redacted(value) if isinstance(value, str) else value)}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: object) -> str:
    # JSON's text, numbers and truth values are TOML's too; DEL alone must be escaped on top.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _masked(table: Mapping[str, str]) -> dict[str, str]:
    return {name: MASK if is_secret(name, value) else value for name, value in table.items()}
