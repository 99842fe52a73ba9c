"""Rules 9 to 13 of the design end to end, each by a test that fails without it and is named after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.errors import LazyDeltaError
from tests.support import actions
from tests.support.actions import add, relative_dv, stats
from tests.support.reading import STRATEGIES, keys, live_keys
from tests.support.table_builder import TableBuilder

EVERY_STRATEGY = pytest.mark.parametrize("strategy", STRATEGIES)
STATS_FORMS = pytest.mark.parametrize("form", ["tail", "json", "parsed", "both"])


def one_file(folder: Path, form: str, *, column: str = "value", kind: str = "double", **bounds: Any) -> Path:
    """A table of one file with these statistics, in the tail or in a checkpoint with that form of them."""
    vector = bounds.pop("vector", None)
    schema = {column: kind, "date": "date"}
    table = TableBuilder(folder, schema=schema)
    table.commit([add("a", stats=stats(**bounds), deletion_vector=vector)])
    if form != "tail":
        table.checkpoint(stats=form)
        table.commit()
    return folder


def decimal_stats(digits: str) -> str:
    """Statistics of a file whose every price is written with these digits."""
    return f'{{"numRecords":1,"minValues":{{"price":{digits}}},"maxValues":{{"price":{digits}}}}}'


def keeps(folder: Path, where: str) -> bool:
    """Whether the one file survives the predicate, by every strategy alike."""
    answers = {bool(live_keys(folder, where=where, strategy=strategy)) for strategy in STRATEGIES}
    assert len(answers) == 1
    return answers.pop()


@STATS_FORMS
def test_rule_9_a_file_goes_only_when_its_bounds_exclude_the_value(tmp_path: Path, form: str) -> None:
    folder = one_file(tmp_path, form, low={"value": 1.0}, high={"value": 5.0}, nulls={"value": 0})
    assert keeps(folder, "value = 1")
    assert keeps(folder, "value between 4 and 9")
    assert not keeps(folder, "value = 0.5")
    assert not keeps(folder, "value < 1")
    assert not keeps(folder, "value is null")
    assert not keeps(folder, "not (value >= 1)")


@STATS_FORMS
def test_rule_9_nan_is_the_greatest_so_a_float_max_never_excludes_greater(tmp_path: Path, form: str) -> None:
    folder = one_file(tmp_path, form, low={"value": 1.0}, high={"value": 5.0})
    assert keeps(folder, "value > 100")
    assert keeps(folder, "value >= 100")
    assert keeps(folder, "value <> 5")


@STATS_FORMS
def test_rule_9_minus_zero_equals_zero(tmp_path: Path, form: str) -> None:
    folder = one_file(tmp_path, form, low={"value": -0.0}, high={"value": -0.0})
    assert keeps(folder, "value = 0.0")
    assert keeps(folder, "value >= 0.0")
    folder = one_file(tmp_path / "other", form, low={"value": 0.0}, high={"value": 0.0})
    assert keeps(folder, "value = -0.0")
    assert keeps(folder, "value <= -0.0")


@STATS_FORMS
def test_rule_9_nulls_are_neither_equal_nor_unequal(tmp_path: Path, form: str) -> None:
    folder = one_file(tmp_path, form, records=10, nulls={"value": 10})
    assert keeps(folder, "value is null")
    assert not keeps(folder, "value is not null")
    assert not keeps(folder, "value = 1")
    assert not keeps(folder, "value <> 1")
    assert not keeps(folder, "not (value = 1)")


@STATS_FORMS
def test_rule_9_wide_bounds_still_bound_but_their_null_count_is_only_half_heard(
    tmp_path: Path, form: str
) -> None:
    bounds: dict[str, Any] = {
        "low": {"value": 1.0},
        "high": {"value": 5.0},
        "tight_bounds": False,
        "vector": relative_dv(rows=3),
    }
    folder = one_file(tmp_path, form, records=10, nulls={"value": 4}, **bounds)
    assert keeps(folder, "value is null")
    assert keeps(folder, "value is not null")
    assert not keeps(folder, "value < 1")


@STATS_FORMS
def test_rule_9_wide_bounds_with_a_null_count_of_all_but_the_deleted_rows_prove_nothing(
    tmp_path: Path, form: str
) -> None:
    # 10 rows, 3 of them deleted, 7 nulls before deletion: a value may have survived.
    folder = one_file(
        tmp_path, form, records=10, nulls={"value": 7}, tight_bounds=False, vector=relative_dv(rows=3)
    )
    assert keeps(folder, "value is not null")
    tight = one_file(
        tmp_path / "tight",
        form,
        records=10,
        nulls={"value": 7},
        tight_bounds=True,
        vector=relative_dv(rows=3),
    )
    assert not keeps(tight, "value is not null")


@STATS_FORMS
def test_rule_9_a_timestamp_max_is_raised_by_what_writers_cut_off(tmp_path: Path, form: str) -> None:
    bounds = {"low": {"ts": "2026-02-08T00:00:00.000Z"}, "high": {"ts": "2026-02-08T00:00:00.123Z"}}
    folder = one_file(tmp_path, form, column="ts", kind="timestamp", **bounds)
    assert keeps(folder, "ts >= '2026-02-08T00:00:00.123999Z'")
    assert not keeps(folder, "ts >= '2026-02-08T00:00:00.124000Z'")


@STATS_FORMS
def test_rule_9_a_truncated_string_max_keeps_what_starts_with_it(tmp_path: Path, form: str) -> None:
    bounds = {"low": {"name": "aaa"}, "high": {"name": "mmm"}}
    folder = one_file(tmp_path, form, column="name", kind="string", **bounds)
    assert keeps(folder, "name = 'mmmzzz'")
    assert not keeps(folder, "name = 'mmn'")
    assert not keeps(folder, "name = 'aa'")


@STATS_FORMS
def test_rule_9_strings_compare_by_their_utf_8_bytes(tmp_path: Path, form: str) -> None:
    # By UTF-16 units U+FF5E comes after U+1F600; by UTF-8 bytes, and by code point, before it.
    bounds = {"low": {"name": "\uff5e"}, "high": {"name": "\U0001f600"}}
    folder = one_file(tmp_path, form, column="name", kind="string", **bounds)
    assert keeps(folder, "name = '\U0001f600'")
    assert keeps(folder, "name = '\uff5f'")
    assert not keeps(folder, "name = '\uff5d'")


@STATS_FORMS
def test_rule_9_decimals_are_read_digit_by_digit(tmp_path: Path, form: str) -> None:
    raw = decimal_stats("12345678901234567.89")
    table = TableBuilder(tmp_path, schema={"price": "decimal(19,2)", "date": "date"}).commit(
        [add("a", stats=raw)]
    )
    if form != "tail":
        table.checkpoint(stats=form).commit()
    assert keeps(tmp_path, "price = 12345678901234567.89")
    assert not keeps(tmp_path, "price < 12345678901234000.00")


@STATS_FORMS
def test_rule_9_a_decimal_that_went_through_a_double_is_widened(tmp_path: Path, form: str) -> None:
    # The file holds 12345678901234567.89; a writer that went through f64 wrote ...568.0 for both bounds.
    raw = (
        '{"numRecords":1,"minValues":{"price":12345678901234568.0},"maxValues":{"price":12345678901234568.0}}'
    )
    table = TableBuilder(tmp_path, schema={"price": "decimal(19,2)", "date": "date"}).commit(
        [add("a", stats=raw)]
    )
    if form != "tail":
        table.checkpoint(stats=form).commit()
    assert keeps(tmp_path, "price = 12345678901234567.89")


@STATS_FORMS
def test_rule_9_floats_are_compared_as_float32(tmp_path: Path, form: str) -> None:
    # 0.1 as float32 is greater than 0.1 as double.
    folder = one_file(tmp_path, form, kind="float", low={"value": 0.1}, high={"value": 0.1})
    assert keeps(folder, "value = 0.1")


@EVERY_STRATEGY
@pytest.mark.parametrize("form", ["tail", "json", "parsed", "both"])
def test_rule_9_float_to_double_widening_takes_the_outer_reading(
    tmp_path: Path, form: str, strategy: str
) -> None:
    # Written as float32 0.1, which is 0.10000000149011612 as a double; the statistics say 0.1.
    table = TableBuilder(
        tmp_path,
        schema={"value": "float", "date": "date"},
        protocol=actions.protocol(["deletionVectors", "v2Checkpoint", "typeWidening"]),
    )
    table.commit([add("a", stats=stats(low={"value": 0.1}, high={"value": 0.1}))])
    widened = json.loads(actions.schema_string({"value": "double", "date": "date"}))
    widened["fields"][0]["metadata"] = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    table.commit(metadata=actions.metadata(json.dumps(widened)))
    if form != "tail":
        table.checkpoint(stats=form).commit()
    assert live_keys(tmp_path, where="value = 0.10000000149011612", strategy=strategy)


@pytest.mark.parametrize(
    "broken", ["", "{", "[]", "null", '"text"', '{"numRecords":"many"}', '{"minValues":3}']
)
@pytest.mark.parametrize("where", ["tail", "checkpoint"])
def test_rule_9_unparseable_statistics_say_nothing(tmp_path: Path, broken: str, where: str) -> None:
    table = TableBuilder(tmp_path).commit([add("a", stats=broken)])
    if where == "checkpoint":
        table.checkpoint(stats="json").commit()
    assert keeps(tmp_path, "value = 1")
    assert keeps(tmp_path, "value is null")


@pytest.mark.parametrize("mapping", ["name", "id"])
@pytest.mark.parametrize("form", ["tail", "json", "parsed", "both"])
def test_rule_9_statistics_are_looked_up_by_physical_names(tmp_path: Path, mapping: str, form: str) -> None:
    table = TableBuilder(tmp_path, column_mapping=mapping)
    table.commit([add("a", stats=stats(low={"value": 1.0}, high={"value": 5.0}))])
    if form != "tail":
        table.checkpoint(stats=form).commit()
    assert keeps(tmp_path, "value = 3")
    assert not keeps(tmp_path, "value = 0")
    assert keeps(tmp_path, "date = '2026-02-08'")
    assert not keeps(tmp_path, "date = '2026-02-09'")
    [file] = ld.open(str(tmp_path)).scan().files()
    assert file.partition_values == {"date": "2026-02-08"}


@pytest.mark.parametrize("where", ["tail", "checkpoint"])
def test_rule_9_an_empty_partition_value_keeps_both_readings(tmp_path: Path, where: str) -> None:
    table = TableBuilder(
        tmp_path, schema={"value": "double", "region": "string"}, partition_columns=["region"]
    )
    table.commit([add("a", partition={"region": ""})])
    if where == "checkpoint":
        table.checkpoint(stats="both").commit()
    assert keeps(tmp_path, "region = ''")
    assert keeps(tmp_path, "region is null")
    assert not keeps(tmp_path, "region = 'north'")


@pytest.mark.parametrize("where", ["tail", "checkpoint"])
def test_rule_9_an_empty_partition_value_of_another_type_is_null(tmp_path: Path, where: str) -> None:
    table = TableBuilder(tmp_path).commit([add("a", partition={"date": ""})])
    if where == "checkpoint":
        table.checkpoint(stats="both").commit()
    assert keeps(tmp_path, "date is null")
    assert not keeps(tmp_path, "date = '2026-02-08'")


@pytest.mark.parametrize("form", ["json", "parsed", "both"])
def test_rule_9_a_row_group_with_a_file_that_has_no_statistic_is_not_ruled_out(
    tmp_path: Path, form: str
) -> None:
    # Parquet's own bounds of `stats_parsed` ignore the null of the second file.
    table = TableBuilder(tmp_path)
    table.commit([add("known", stats=stats(low={"count": 1}, high={"count": 2})), add("unknown")])
    table.checkpoint(stats=form, row_group_rows=1000).commit()
    for strategy in STRATEGIES:
        assert live_keys(tmp_path, where="count = 77", strategy=strategy) == {("unknown", None)}


@pytest.mark.parametrize("form", ["json", "parsed", "both"])
def test_rule_9_a_row_group_with_a_file_whose_maximum_is_nan_is_not_ruled_out(
    tmp_path: Path, form: str
) -> None:
    # Parquet's own bounds ignore NaN: they say 1 to 2, although the second file reaches beyond every number.
    table = TableBuilder(tmp_path)
    files = [
        add("small", stats=stats(low={"value": 1.0}, high={"value": 2.0})),
        add("wide", stats=stats(low={"value": 1.0}, high={"value": "NaN"})),
    ]
    table.commit(files).checkpoint(stats=form, row_group_rows=1000).commit()
    for strategy in STRATEGIES:
        assert live_keys(tmp_path, where="value = 77", strategy=strategy) == {("wide", None)}


@pytest.mark.parametrize("form", ["json", "parsed", "both"])
def test_rule_9_row_groups_are_skipped_only_where_their_bounds_prove_it(tmp_path: Path, form: str) -> None:
    table = TableBuilder(tmp_path, schema={"count": "long", "date": "date"})
    files = [
        add(f"f{n:02}", stats=stats(low={"count": n}, high={"count": n}, nulls={"count": 0}))
        for n in range(20)
    ]
    table.commit(files).checkpoint(stats=form, row_group_rows=2).commit()
    for strategy in STRATEGIES:
        scan = ld.open(str(tmp_path)).scan(where="count = 7", strategy=strategy)
        assert [file.path for file in scan.files()] == ["f07"]


@EVERY_STRATEGY
def test_rule_11_a_limit_counts_files_that_might_match_not_files_seen(tmp_path: Path, strategy: str) -> None:
    table = TableBuilder(tmp_path)
    for number in range(20):
        day = "2026-02-08" if number % 4 == 0 else "2026-02-09"
        table.commit([add(f"f{number}", partition={"date": day})])
    found = keys(ld.open(str(tmp_path)).scan(where="date = '2026-02-08'", limit=3, strategy=strategy).files())
    assert len(found) == 3
    assert {int(path[1:]) % 4 for path, _ in found} == {0}


@EVERY_STRATEGY
def test_rule_12_batches_are_no_larger_than_asked_for(tmp_path: Path, strategy: str) -> None:
    names = [f"f{number}" for number in range(1000)]
    table = TableBuilder(tmp_path).commit(names[:600]).checkpoint(row_group_rows=600).commit(names[600:])
    sizes = [
        batch.num_rows
        for batch in ld.open(str(tmp_path)).scan(strategy=strategy, batch_size=64).file_batches()
    ]
    assert max(sizes) <= 64
    assert sum(sizes) == table.states[-1].live.__len__()


@EVERY_STRATEGY
def test_rule_12_the_fallback_moves_to_disk_too(tmp_path: Path, strategy: str) -> None:
    names = [f"f{number}" for number in range(5000)]
    table = TableBuilder(tmp_path).commit(names).checkpoint().commit(removes=names[:4500])
    scan = ld.open(str(tmp_path)).scan(strict=True, strategy=strategy, remove_set_memory_limit=1)
    assert set(keys(scan.files())) == table.live()
    assert scan.explain().remove_set_on_disk


def test_rule_12_what_moved_to_disk_is_gone_after_the_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    names = [f"f{number}" for number in range(5000)]
    table = (
        TableBuilder(tmp_path / "table")
        .commit(names)
        .checkpoint(row_group_rows=50)
        .commit(removes=names[:4500])
    )
    for strategy in STRATEGIES:
        how: dict[str, Any] = {"strategy": strategy, "remove_set_memory_limit": 1}
        assert len(list(ld.open(str(table.path)).scan(**how).files())) == 500
        assert list(scratch.iterdir()) == []
        half = ld.open(str(table.path)).scan(**how, batch_size=1).files()
        next(half)
        half.close()
        assert list(scratch.iterdir()) == []


@EVERY_STRATEGY
def test_rule_13_nothing_comes_twice_when_a_strict_scan_trips_after_files_were_emitted(
    tmp_path: Path, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a", "b"]).checkpoint()
    for version in range(1, 30):
        # The marker of a tripping action stands far down the tail, after files could have been emitted.
        table.commit(
            [f"v{version}"], extra_actions=[{"txn": {"appId": "x", "version": 1}}] if version == 3 else []
        )
    scan = ld.open(str(tmp_path)).scan(
        strict=True, strategy=strategy, commit_read_parallelism=2, batch_size=1
    )
    found = keys(scan.files())
    assert sorted(found) == sorted(table.live())


@EVERY_STRATEGY
def test_rule_13_damage_met_after_files_were_emitted_ends_with_an_error(
    tmp_path: Path, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit([f"f{number}" for number in range(2000)])
    table.checkpoint(row_group_rows=100).commit(["new"]).crc()
    checkpoint = table.log_file("*.checkpoint.parquet")
    paths = next(
        column
        for at in range(pq.read_metadata(checkpoint).num_columns)
        if (column := pq.read_metadata(checkpoint).row_group(10).column(at)).path_in_schema == "add.path"
    )
    start = paths.dictionary_page_offset or paths.data_page_offset
    body = bytearray(checkpoint.read_bytes())
    body[start : start + paths.total_compressed_size] = b"\x00" * paths.total_compressed_size
    checkpoint.write_bytes(bytes(body))
    found: list[Any] = []
    with pytest.raises(LazyDeltaError):
        for file in ld.open(str(tmp_path)).scan(strategy=strategy).files():
            found.append((file.path, file.dv_id))
    assert len(found) == len(set(found))
    assert set(found) <= table.live()
