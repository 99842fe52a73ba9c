"""What rules out a part or a row group, and what must not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lazydelta.predicate import BoundPredicate, bind, parse_where
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.sidecar import (
    Manifest,
    PartReader,
    PredicatePruner,
    SidecarConfig,
    SidecarLayout,
    WrittenPart,
    ZoneBounds,
    assemble,
    store_part,
)
from lazydelta.storage import Storage
from tests.support import actions
from tests.support.actions import Action
from tests.unit.sidecar.samples import (
    binding_of,
    layout_for,
    rows_of,
    sorted_rows,
    storage_at,
    table_of,
    written,
)

CONFIG = SidecarConfig()
PERIODS = {
    "lazydelta.time.source": "ts",
    "lazydelta.time.column": "_event_hour",
    "lazydelta.time.format": "yyyyMMddHH",
    "lazydelta.time.zone": "UTC",
}


class Sidecar:
    """Parts of one file per row group, stored for real."""

    def __init__(self, folder: Path, columns: Mapping[str, Any], *, partitions: Sequence[str] = ()) -> None:
        self.storage: Storage = storage_at(folder)
        self.partitions = list(partitions)
        self.columns = dict(columns)
        self.parts: list[WrittenPart] = []
        self.layout: SidecarLayout = layout_for(self.columns, partition_columns=self.partitions)

    def part(self, *adds: Action, group: int = 1, is_split: bool = False, **columns: Any) -> Sidecar:
        """One more part; `columns` have these types in it."""
        layout = layout_for(self.columns | columns, partition_columns=self.partitions)
        rows = sorted_rows(rows_of(adds, layout), layout)
        part = written(rows, layout, row_group_rows=group, is_tiered=is_split, number=len(self.parts))
        store_part(self.storage, CONFIG, part)
        self.parts.append(part)
        return self

    @property
    def manifest(self) -> Manifest:
        return assemble(
            version=7,
            build="0123456789abcdef",
            layout=self.layout,
            parts=[(part.part, part.row_groups) for part in self.parts],
            protocol=Protocol(min_reader_version=1, min_writer_version=2),
            metadata=Metadata(id="t"),
            binding=binding_of(sum(part.part.num_rows for part in self.parts)),
        )

    def predicate(self, where: str, *, time_zone: str = "UTC") -> BoundPredicate:
        _, schema = table_of(self.columns, partition_columns=self.partitions)
        return bind(
            parse_where(where),
            schema,
            self.partitions,
            where="memory",
            time_zone=time_zone,
            configuration=PERIODS,
        )

    def by_part(self, where: str, **how: Any) -> list[bool]:
        return PredicatePruner(self.predicate(where, **how)).parts(self.manifest).tolist()

    def by_row_group(self, where: str, **how: Any) -> list[bool]:
        manifest = self.manifest
        pruner = PredicatePruner(self.predicate(where, **how))
        return pruner.row_groups(manifest, manifest.row_groups).tolist()

    def by_footer(self, where: str, **how: Any) -> list[bool]:
        found: list[bool] = []
        for part in self.parts:
            reader = PartReader(self.storage, CONFIG.folder, part.part)
            found.extend(PredicatePruner(self.predicate(where, **how)).by_footer(reader).tolist())
            reader.close()
        return found


def file(
    name: str, low: Any = None, high: Any = None, *, nulls: int | None = 0, **partition: str | None
) -> Action:
    """A file with bounds of `x`; null leaves a bound out."""
    stats = actions.stats(
        10,
        low={} if low is None else {"x": low},
        high={} if high is None else {"x": high},
        nulls={} if nulls is None else {"x": nulls},
    )
    return actions.add(name, partition=partition, stats=stats)


# --- every column, one-sided ---------------------------------------------------


def test_footers_rule_out_by_columns_that_no_order_knows(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"x": "long", "_event_hour": "string"}, partitions=["_event_hour"])
    sidecar.part(*(file(f"f{at}", at, at + 1, _event_hour=f"202602100{at}") for at in range(4)))
    assert sidecar.by_footer("x >= 3") == [False, False, True, True]
    assert sidecar.by_row_group("x >= 3") == [True] * 4
    assert sidecar.by_footer("x = 0 and _event_hour = '2026021000'") == [True, False, False, False]
    assert sidecar.by_row_group("_event_hour > '2026021002'") == [False, False, False, True]


@pytest.mark.parametrize("is_split", [False, True])
def test_a_file_without_a_bound_keeps_its_row_group(tmp_path: Path, is_split: bool) -> None:
    sidecar = Sidecar(tmp_path, {"x": "long"})
    sidecar.part(file("a", 1, 2), file("b"), file("c", 1, 2), file("d", 1, None), group=2, is_split=is_split)
    assert sidecar.by_footer("x > 5") == [True, True]
    assert sidecar.by_footer("x < 0") == [True, False]
    assert sidecar.by_part("x > 5") == [True]


@pytest.mark.parametrize("kind", ["float", "double"])
def test_a_file_whose_bound_is_nan_keeps_its_row_group(tmp_path: Path, kind: str) -> None:
    sidecar = Sidecar(tmp_path, {"x": kind})
    sidecar.part(
        file("a", 1.0, 2.0), file("b", "NaN", "NaN"), file("c", 1.0, 2.0), file("d", 3.0, 4.0), group=2
    )
    assert sidecar.by_footer("x < 0") == [True, False]
    assert sidecar.by_footer("x > 100") == [True, True]  # NaN is greatest, and no maximum tells of it


def test_counts_of_nan_that_do_not_fit_the_row_groups_are_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sidecar = Sidecar(tmp_path, {"x": "double"}).part(file("a", 1.0, 2.0), file("b", 1.0, 2.0))
    assert sidecar.by_footer("x < 0") == [False, False]
    monkeypatch.setattr(PartReader, "nan_counts", {"min.x": [0]})
    assert sidecar.by_footer("x < 0") == [True, True]


def test_minus_zero_is_zero(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"x": "double"}).part(file("a", -0.0, -0.0), file("b", 0.0, 0.0))
    for where in ("x = 0.0", "x = -0.0", "x >= 0.0", "x <= -0.0", "x in (0.0)"):
        assert sidecar.by_footer(where) == [True, True], where
        assert sidecar.by_part(where) == [True], where
    assert sidecar.by_footer("x > 0.0") == [True, True]  # NaN
    assert sidecar.by_footer("x < -0.0") == [False, False]


def test_counts_of_nulls_answer_is_null(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"x": "long"})
    sidecar.part(
        file("a", 1, 2), file("b", 1, 2),
        file("c", 1, 2), file("d", 1, 2, nulls=3),
        file("e", 1, 2, nulls=None), file("f", 1, 2), group=2,
    )  # fmt: skip
    assert sidecar.by_footer("x is null") == [False, True, True]
    assert sidecar.by_footer("x is not null") == [True, True, True]


def test_a_count_of_nulls_below_zero_says_nothing(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"x": "long"}).part(file("a", 1, 2, nulls=-1), file("b", 1, 2), group=2)
    assert sidecar.by_footer("x is null") == [True]


def test_moments_and_numbers_at_the_end_of_their_types(tmp_path: Path) -> None:
    far = Sidecar(tmp_path / "t", {"x": "timestamp"})
    far.part(file("a", "2026-02-10T00:00:00.000Z", "9999-12-31T23:59:59.999Z"))
    assert far.by_footer("x > '2100-01-01T00:00:00Z'") == [True]
    assert far.by_footer("x < '2026-02-10T00:00:00Z'") == [False]
    cut = Sidecar(tmp_path / "c", {"x": "timestamp"}).part(
        file("a", "2026-02-10T00:00:00.000Z", "2026-02-10T00:00:00.001Z")
    )
    assert cut.by_footer("x > '2026-02-10T00:00:00.001500Z'") == [True]
    assert cut.by_footer("x > '2026-02-10T00:00:00.002Z'") == [False]
    digits = "12345678901234567.0123456789"
    exact = Sidecar(tmp_path / "d", {"x": "decimal(38,10)"}).part(file("a", digits, digits))
    assert exact.by_footer(f"x = {digits}") == [True]
    assert exact.by_footer("x > 12345678901234600") == [False]


# --- texts that writers cut ----------------------------------------------------


def test_a_short_cut_maximum_reaches_past_a_greater_long_one(tmp_path: Path) -> None:
    # The first stands for every text that begins with "ab", so "abx" may be there, although "abd" is greater.
    sidecar = Sidecar(tmp_path, {"x": "string"}).part(file("a", "aa", "ab"), file("b", "aa", "abd"), group=2)
    for where in ("x = 'abx'", "x > 'abx'", "x like 'abx%'"):
        assert sidecar.by_footer(where) == [True], where
        assert sidecar.by_part(where) == [True], where
    assert sidecar.by_footer("x = 'ac'") == [False]
    assert sidecar.by_part("x = 'b'") == [False]


def test_maxima_of_one_length_stay_sharp(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"x": "string"})
    sidecar.part(file("a", "sensor-10", "sensor-40"), file("b", "sensor-10", "sensor-41"), group=2)
    assert sidecar.by_footer("x = 'sensor-42'") == [False]
    assert sidecar.by_footer("x = 'sensor-41x'") == [True]


def test_the_replacement_character_of_old_writers_hides_what_sorts_above_it(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"x": "string"})
    sidecar.part(file("a", "abc", "abc\ufffd"), file("b", "abc", "abc\U0001f600"), group=2)
    assert sidecar.by_footer("x = 'abc\U0001f601'") == [True]
    assert sidecar.by_part("x = 'abc\U0001f601'") == [True]


def test_texts_of_partition_columns_are_never_cut(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"v": "long", "p": "string"}, partitions=["p"])
    sidecar.part(actions.add("a", partition={"p": "ab"}), actions.add("b", partition={"p": "abd"}), group=2)
    assert sidecar.by_footer("p = 'abx'") == [False]
    assert sidecar.by_part("p = 'abx'") == [False]
    assert sidecar.by_row_group("p = 'abx'") == [False]


# --- parts of different ages ---------------------------------------------------


def test_parts_are_read_by_the_types_that_they_were_written_with(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"x": "decimal(22,2)"})
    sidecar.part(file("a", 1, 5), x="integer").part(file("b", 10, 15), x="long").part(
        file("c", "20.50", "30.25")
    )
    assert sidecar.by_part("x > 5.5 and x < 20") == [False, True, False]
    assert sidecar.by_footer("x > 5.5 and x < 20") == [False, True, False]
    assert sidecar.by_part("x = 20.5") == [False, False, True]


def test_an_order_column_that_was_widened_is_read_by_the_type_of_each_part(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"v": "long", "p": "timestamp_ntz"}, partitions=["p"])
    sidecar.part(actions.add("a", partition={"p": "2026-02-09"}), p="date")
    sidecar.part(actions.add("b", partition={"p": "2026-02-10 12:00:00"}))
    assert sidecar.by_row_group("p >= '2026-02-10T00:00:00'") == [False, True]
    assert sidecar.by_part("p < '2026-02-10T00:00:00'") == [True, False]


def test_a_float_that_became_a_double_keeps_what_either_reading_keeps(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"x": "double"}).part(file("a", 1.1, 1.1), x="float")
    assert sidecar.by_part("x = 1.1") == [True]
    assert sidecar.by_footer("x = 1.1") == [True]
    assert sidecar.by_part("x < 1.0") == [False]


def test_a_column_that_a_part_lacks_is_unknown_in_it(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"x": "long"}).part(file("a", 1, 2))
    sidecar.columns = {"x": "long", "y": "long"}
    for where in ("y = 1", "y is null", "y is not null"):
        assert sidecar.by_part(where) == [True]
        assert sidecar.by_footer(where) == [True]


@pytest.mark.parametrize("type_name", ["interval", "decimal(99,2)", ""])
def test_a_type_that_nobody_knows_bounds_nothing(tmp_path: Path, type_name: str) -> None:
    sidecar = Sidecar(tmp_path, {"x": "long"}).part(file("a", 1, 2))
    (part,) = sidecar.manifest.parts
    odd = msgspec.structs.replace(part.bounds[0], type=type_name)
    manifest = msgspec.structs.replace(
        sidecar.manifest, parts=(msgspec.structs.replace(part, bounds=(odd,)),)
    )
    assert PredicatePruner(sidecar.predicate("x > 5")).parts(manifest).tolist() == [True]


# --- partition columns ---------------------------------------------------------


def test_nulls_of_a_partition_column_match_no_comparison(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"v": "long", "p": "integer"}, partitions=["p"])
    sidecar.part(
        *(actions.add(name, partition={"p": value}) for name, value in (("a", None), ("b", None), ("c", "7")))
    )
    assert sidecar.by_footer("p > 5") == [False, False, True]
    assert sidecar.by_footer("p is null") == [True, True, False]
    assert sidecar.by_row_group("p > 5") == [False, False, True]
    assert sidecar.by_row_group("p is null") == [True, True, False]
    assert sidecar.by_part("p > 7") == [False]


@pytest.mark.parametrize("odd", ["", "oops"])
def test_a_partition_value_that_does_not_parse_keeps_its_row_group(tmp_path: Path, odd: str) -> None:
    sidecar = Sidecar(tmp_path, {"v": "long", "p": "integer"}, partitions=["p"])
    sidecar.part(actions.add("a", partition={"p": odd}), actions.add("b", partition={"p": "7"}), group=2)
    assert sidecar.by_footer("p > 100") == [True]
    assert sidecar.by_row_group("p > 100") == [True]
    assert sidecar.by_part("p > 100") == [True]


def test_an_empty_text_may_be_null(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"v": "long", "p": "string"}, partitions=["p"])
    sidecar.part(actions.add("a", partition={"p": ""}), actions.add("b", partition={"p": "x"}))
    assert sidecar.by_footer("p is null") == [True, True]
    assert sidecar.by_footer("p = ''") == [True, False]
    assert sidecar.by_row_group("p = ''") == [True, False]


def test_clock_times_without_a_zone_are_read_in_the_zone_of_the_query(tmp_path: Path) -> None:
    """The builder took them for UTC; who reads them in another zone must not lose files by that."""
    sidecar = Sidecar(tmp_path, {"v": "long", "p": "timestamp"}, partitions=["p"])
    sidecar.part(actions.add("a", partition={"p": "2026-02-10 12:00:00"}))
    where = "p = '2026-02-09T22:00:00Z'"  # noon of the tenth in Kiritimati
    for judge in (sidecar.by_part, sidecar.by_row_group, sidecar.by_footer):
        assert judge(where) == [False]
        assert judge(where, time_zone="Pacific/Kiritimati") == [True]
        assert judge("p > '2026-02-20T00:00:00Z'", time_zone="Pacific/Kiritimati") == [False]


# --- split parts ---------------------------------------------------------------


def test_the_statistics_of_a_split_part_are_opened_only_where_they_can_help(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"x": "long", "p": "string"}, partitions=["p"])
    sidecar.part(file("a", 1, 2, p="1"), file("b", 3, 4, p="2"), is_split=True)
    statistics = tmp_path / CONFIG.folder / str(sidecar.parts[0].part.stats_file)
    whole = statistics.read_bytes()
    statistics.unlink()
    assert sidecar.by_footer("p = '2'") == [False, True]
    assert sidecar.by_footer("p = '9' and x = 1") == [False, False]
    statistics.write_bytes(whole)
    assert sidecar.by_footer("p >= '1' and x = 3") == [False, True]
    assert sidecar.by_footer("x < 3") == [True, False]


# --- the event time ------------------------------------------------------------


def hours(*texts: str | None) -> list[Action]:
    return [actions.add(f"f{at}", partition={"_event_hour": text}) for at, text in enumerate(texts)]


def timed(folder: Path) -> Sidecar:
    return Sidecar(folder, {"ts": "timestamp", "_event_hour": "string"}, partitions=["_event_hour"])


def test_a_range_of_periods_rules_out_by_the_event_time(tmp_path: Path) -> None:
    sidecar = timed(tmp_path).part(*hours(*(f"20260210{hour:02}" for hour in range(6))), group=2)
    where = "ts >= '2026-02-10T02:30:00Z' and ts < '2026-02-10T04:00:00Z'"
    assert sidecar.by_row_group(where) == [False, True, False]
    assert sidecar.by_footer(where) == [False, True, False]
    assert sidecar.by_part(where) == [True]
    assert sidecar.by_part("ts < '2026-02-10T00:00:00Z'") == [False]


@pytest.mark.parametrize("odd", [None, "", "2026021001x", "2026021099", "20260210"])
def test_a_range_with_a_text_that_is_no_period_rules_out_nothing(tmp_path: Path, odd: str | None) -> None:
    sidecar = timed(tmp_path).part(*hours("2026021001", odd, "2026021102"), group=3)
    for judge in (sidecar.by_part, sidecar.by_row_group, sidecar.by_footer):
        assert judge("ts > '2030-01-01T00:00:00Z'") == [True]


def test_periods_of_another_format_than_the_properties_tell_bound_nothing(tmp_path: Path) -> None:
    sidecar = timed(tmp_path).part(*hours("202602100101", "202602100102"), group=2)
    assert sidecar.parts[0].part.bounds[0].period_format == "yyyyMMddHHmm"
    for judge in (sidecar.by_part, sidecar.by_row_group, sidecar.by_footer):
        assert judge("ts > '2030-01-01T00:00:00Z'") == [True]


def test_one_period_alone_needs_no_word_of_the_others(tmp_path: Path) -> None:
    sidecar = timed(tmp_path).part(*hours("2026021001", "2026021001", "oops"), group=2)
    assert sidecar.by_footer("ts > '2030-01-01T00:00:00Z'") == [False, True]
    assert sidecar.by_row_group("ts > '2030-01-01T00:00:00Z'") == [False, True]


def test_parts_without_the_word_of_an_older_writer_are_kept(tmp_path: Path) -> None:
    sidecar = timed(tmp_path).part(*hours("2026021001", "2026021002"), group=2)
    (part,) = sidecar.manifest.parts
    older = tuple(msgspec.structs.replace(zone, period_format=None) for zone in part.bounds)
    manifest = msgspec.structs.replace(sidecar.manifest, parts=(msgspec.structs.replace(part, bounds=older),))
    pruner = PredicatePruner(sidecar.predicate("ts > '2030-01-01T00:00:00Z'"))
    assert pruner.parts(manifest).tolist() == [True]
    assert pruner.row_groups(manifest, manifest.row_groups).tolist() == [True]


def test_the_writer_tells_a_format_only_if_every_row_group_has_it(tmp_path: Path) -> None:
    def told(*texts: str | None) -> str | None:
        part = timed(tmp_path / str(texts)).part(*hours(*texts), group=1).parts[0].part
        found: ZoneBounds = part.bounds[0]
        return found.period_format

    assert told("2026021001", None, "2026021002") == "yyyyMMddHH"
    assert told("2026021001", "20260210") is None
    assert told(None, None) is None
