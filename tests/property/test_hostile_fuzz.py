"""The fuzzer, bounded: every parser for a few seconds, in watched processes. `make fuzz` is the long form."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from fuzz import seeds
from fuzz.planted import Planted
from fuzz.target import Target
from fuzz.targets import all_targets
from fuzz.watch import Plan, run, shares
from fuzz.worker import input_of, outcome

from tests.support.hypothesis_profile import examples

INPUTS = examples(800)
# What takes a hundred times as long as the rest has a few dozen inputs here.
COUNT_MIN = 12


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What inputs are made from; only read."""
    folder = tmp_path_factory.mktemp("fuzz") / "seeds"
    seeds.make_seeds(folder)
    return folder


def test_no_parser_lets_anything_but_a_refusal_or_an_answer_out(tmp_path: Path) -> None:
    counts = {name: max(COUNT_MIN, count) for name, count in shares(INPUTS).items()}
    half = -(-len(counts) // 2)
    tallies = run(Plan(folder=tmp_path, seed=20_261_115, processes=2, counts=counts, jobs_at_once=half))
    told = [path.read_text("utf-8") for path in sorted((tmp_path / "failures").glob("*.txt"))]
    assert told == []
    assert {name: tally.inputs for name, tally in tallies.items()} == counts
    assert all(tally.refused + tally.answered == tally.inputs for tally in tallies.values())


@pytest.mark.parametrize(
    ("name", "seed", "number"),
    [
        ("manifest", 7, 611),  # an order by a type that there is not
        ("manifest", 8, 991),  # an order by a column without a name
        ("checkpoint-v2", 20_261_116, 143),  # a sidecar of a negative size
        ("checkpoint-v2", 20_261_116, 761),  # an unknown deletion vector of a path that is no text
        ("checkpoint-v2", 8, 1030),  # the same of its own path
        ("commits", 20_261_116, 1963),  # an action whose name is no text
        ("commits", 20_261_117, 1980),  # two actions in one line
        ("delta-file", 20_261_116, 169),  # fewer rows than the footer tells
        ("delta-file", 31, 597),  # versions of no rows
        ("data-file", 31, 1500),  # a nested text that is not UTF-8
        ("part", 20_261_116, 785),
        ("plain-sidecar", 20_261_116, 913),
        ("part", 20_261_116, 920),  # a column of deletion vectors that is not there
        ("checkpoint-types", 11, 41),  # a protocol in the year 140,000
        ("checkpoint-types", 11, 103),  # a field twice
        ("checkpoint-types", 11, 119),  # a column of adds twice
        ("plain-types", 11, 162),  # a column twice
        ("part-types", 11, 44),  # a path that is no text
        ("part-types", 11, 135),  # a column that one part lacks
        ("part-types", 11, 216),  # a deletion vector that is a number
        ("part-types", 32, 1487),  # an order column that is nested
        ("delta-types", 11, 10),  # no column of actions
        ("delta-types", 11, 97),  # actions that are no texts
        ("predicate-sql", 7, 13476),  # bytes in hexadecimal that are a number beyond Python's
        ("predicate-forms", 20_261_116, 128),  # a text of which all beginnings were made
    ],
)
def test_what_got_out_once_does_not_again(planted: Path, name: str, seed: int, number: int) -> None:
    target = all_targets()[name]
    target.prepare(planted)
    assert outcome(target, input_of(target, seed, number)) in {"refused", "answered"}


@pytest.mark.long("the fuzzer's own watch over its processes, which spin and die for seconds")
def test_what_misbehaves_is_noticed_named_and_gone_behind(tmp_path: Path) -> None:
    planted: Target = Planted()
    plan = Plan(folder=tmp_path, seed=9, processes=1, counts={planted.name: 10}, hang_seconds=2)
    tally = run(plan)[planted.name]
    told = {
        (tmp_path / "failures" / f"{path.stem}.bin").read_bytes(): path.read_text("utf-8")
        for path in (tmp_path / "failures").glob("*.txt")
    }
    assert set(told) == {b"raise", b"abort", b"hang", b"grow"}
    assert "KeyError" in told[b"raise"]
    assert "ended with -6" in told[b"abort"]
    assert "hung" in told[b"hang"]
    assert "grew by" in told[b"grow"]
    assert tally.inputs == 10
    assert tally.refused and tally.answered
    assert all(f"python -m fuzz --replay {tmp_path}" in text for text in told.values())


def test_the_same_seed_gives_the_same_inputs(tmp_path: Path) -> None:
    for name in ("url", "path", "settings", "schema", "deletion-vector"):
        one, other = all_targets()[name], all_targets()[name]
        one.prepare(tmp_path)
        other.prepare(tmp_path)
        assert [one.make(Random(at)) for at in range(50)] == [other.make(Random(at)) for at in range(50)]
