"""Batches as they go over the wire: small enough for messages of clients, in types that they know.

Why: clients of gRPC refuse messages beyond a size of their own (4 MiB where they say nothing, 16 MiB for
ADBC, none for Arrow's in C++), and a batch of many rows of repeated text has more; ADBC reads no
dictionaries.
Contract: the rows in their order; a batch has at most so many bytes, unless a single row has more, since rows
cannot be split.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lazydelta import limits

_CPP = "grpc-c++/"  # pyarrow among them


def message_bytes(user_agent: str) -> int:
    """What a batch may have for a client; large ones cost both sides less."""
    takes_all = user_agent.startswith(_CPP)
    return limits.SERVE_LARGE_MESSAGE_BYTES if takes_all else limits.SERVE_MESSAGE_BYTES


def in_messages(batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    """The batch in as many parts as it takes for messages of so many bytes."""
    left = [batch]
    while left:
        part = left.pop()
        byte_count = part.nbytes  # of the slice, not of what it was cut from
        if byte_count <= most or part.num_rows <= 1:
            yield part
            continue
        pieces = min(part.num_rows, -(-byte_count // most))
        rows = -(-part.num_rows // pieces)
        left += [part.slice(start, rows) for start in reversed(range(0, part.num_rows, rows))]


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The same with plain values where there are dictionaries, inside of others, too."""
    return pa.schema([_plain(field) for field in schema], schema.metadata)


def _plain(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_dictionary(kind):
        return field.with_type(kind.value_type)
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_plain(inner) for inner in kind]))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(_plain(kind.key_field), _plain(kind.item_field)))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_plain(kind.value_field)))
    if pa.types.is_fixed_size_list(kind):
        return field.with_type(pa.list_(_plain(kind.value_field), kind.list_size))
    return field
