"""A part or row group is never ruled out while the predicate keeps a file in it.

Files are written with all the habits of writers (see `written_files`), put into parts in any order of time,
whole or split, and judged three times: part by part, row group by row group, footer by footer. What is held
against it is the verdict on each file by itself, which other tests hold against the rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lazydelta.log import rows_from_adds
from lazydelta.predicate import BoundPredicate, FileFacts, bind, parse_where
from lazydelta.protocol.actions import Add, Metadata, Protocol
from lazydelta.sidecar import (
    BUILD_COLUMNS,
    Manifest,
    PartReader,
    PartShape,
    PredicatePruner,
    SidecarConfig,
    SidecarLayout,
    WrittenPart,
    assemble,
    configured_stats_paths,
    layout_of,
    store_part,
    typed_rows,
    write_part,
)
from tests.property.test_predicates_skipping import expressions, files
from tests.support.hypothesis_profile import examples
from tests.support.written_files import (
    LITERALS,
    PARTITIONS,
    SCHEMA,
    WrittenFile,
    json_statistics,
    row_of,
    stats_json,
)
from tests.unit.sidecar.samples import ROOT, binding_of, part_facts, sorted_rows, storage_at

CONFIG = SidecarConfig()
METADATA = Metadata(
    id="t",
    partition_columns=list(PARTITIONS),
    configuration={"delta.dataSkippingNumIndexedCols": "-1"},  # every column has statistics
)
ORDERS = [None, "part", "hour", "big", "text", "instant", "exact", "day"]


def layout_by(order: str | None) -> SidecarLayout:
    paths = configured_stats_paths(METADATA, SCHEMA)
    return layout_of(METADATA, SCHEMA, stats_paths=paths, time_column=order)


def part_of(
    written: Sequence[tuple[int, WrittenFile]],
    layout: SidecarLayout,
    *,
    number: int,
    group: int,
    is_split: bool,
) -> WrittenPart:
    adds = [
        Add(
            path=str(at),
            partition_values=dict(file.partition),
            size=1,
            modification_time=0,
            stats=stats_json(file),
        )
        for at, file in written
    ]
    rows = typed_rows(rows_from_adds(adds, (*BUILD_COLUMNS, "stats"), ROOT), layout)
    return write_part(
        [sorted_rows(rows, layout)],
        layout=layout,
        facts=part_facts(number=number, num_files=len(adds)),
        config=SidecarConfig(row_group_rows=group),
        shape=PartShape(row_groups=64, rows=64 * group, is_tiered=is_split),
    )


def manifest_of(parts: Sequence[WrittenPart], layout: SidecarLayout, count: int) -> Manifest:
    return assemble(
        version=7,
        build="0123456789abcdef",
        layout=layout,
        parts=[(part.part, part.row_groups) for part in parts],
        protocol=Protocol(min_reader_version=1, min_writer_version=2),
        metadata=METADATA,
        binding=binding_of(count),
    )


@settings(max_examples=examples(30))
@given(data=st.data())
def test_nothing_is_ruled_out_that_holds_a_file_which_the_predicate_keeps(data: st.DataObject) -> None:
    columns = data.draw(st.lists(st.sampled_from(sorted(LITERALS)), min_size=1, max_size=3, unique=True))
    batches = data.draw(st.lists(st.lists(files(columns), min_size=1, max_size=5), min_size=1, max_size=3))
    expressions_ = data.draw(st.lists(expressions(columns), min_size=1, max_size=6))
    layout = layout_by(data.draw(st.sampled_from(ORDERS)))
    group, is_split = data.draw(st.integers(1, 3)), data.draw(st.booleans())
    flat = [file for batch in batches for file in batch]
    places = iter(range(len(flat)))
    parts = [
        part_of(
            [(next(places), file) for file in batch], layout, number=number, group=group, is_split=is_split
        )
        for number, batch in enumerate(batches)
    ]
    manifest = manifest_of(parts, layout, len(flat))
    with tempfile.TemporaryDirectory() as folder:
        storage = storage_at(Path(folder))
        for part in parts:
            store_part(storage, CONFIG, part)
        for expression in expressions_:
            predicate = bind(expression, SCHEMA, PARTITIONS, where="memory")
            kept = kept_files(predicate, flat)
            check(
                predicate, manifest, kept, [PartReader(storage, CONFIG.folder, part.part) for part in parts]
            )


def kept_files(predicate: BoundPredicate, written: Sequence[WrittenFile]) -> Any:
    facts = FileFacts(
        len(written),
        {name: pa.array([file.partition[name] for file in written], pa.string()) for name in PARTITIONS},
        json_statistics(written, predicate.stats_columns),
    )
    return predicate.might_match(facts)


def check(predicate: BoundPredicate, manifest: Manifest, kept: Any, readers: Sequence[PartReader]) -> None:
    pruner = PredicatePruner(predicate)
    by_part = pruner.parts(manifest)
    by_group = pruner.row_groups(manifest, manifest.row_groups)
    place = 0
    for at, reader in enumerate(readers):
        by_footer = pruner.by_footer(reader)
        assert len(by_footer) == reader.part.num_row_groups
        for group, is_possible in enumerate(by_footer):
            (rows,) = reader.batches(["path"], [group])
            needed = any(kept[int(path)] for path in rows.column(0).to_pylist())
            told = f"{predicate.expression} on {at}/{group}"
            assert by_part[at] or not needed, f"part: {told}"
            assert by_group[place] or not needed, f"row group: {told}"
            assert is_possible or not needed, f"footer: {told}"
            place += 1
        reader.close()


def test_the_verdicts_are_worth_something() -> None:
    """The test above would pass if nothing were ever ruled out."""
    values = [-5, 0, 5]
    written = [
        WrittenFile(rows=[row_of(big=value)], partition={"part": str(value), "hour": "1"}) for value in values
    ]
    layout = layout_by("big")
    part = part_of(list(enumerate(written)), layout, number=0, group=1, is_split=False)
    manifest = manifest_of([part], layout, 3)

    def pruner(where: str) -> PredicatePruner:
        return PredicatePruner(bind(parse_where(where), SCHEMA, PARTITIONS, where="memory"))

    assert pruner("big > 1").row_groups(manifest, manifest.row_groups).tolist() == [False, False, True]
    assert pruner("big > 5").parts(manifest).tolist() == [False]
