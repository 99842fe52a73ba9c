"""A table's leaves by their physical paths: what statistics and partition values are named by.

Spec: PROTOCOL.md, "Column Mapping".
"""

from __future__ import annotations

from collections.abc import Iterator

from lazydelta.protocol.schema import Field, StructType

Path = tuple[str, ...]


def physical_leaves(schema: StructType) -> Iterator[tuple[Path, Field]]:
    """Every leaf with its physical path, structs opened, arrays and maps closed."""
    for field in schema.fields:
        if isinstance(field.type, StructType):
            yield from (((field.physical_name, *path), leaf) for path, leaf in physical_leaves(field.type))
        else:
            yield (field.physical_name,), field
