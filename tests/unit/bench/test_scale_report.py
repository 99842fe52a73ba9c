"""Verdicts on what queries cost by the size of the table."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench.ladder_runs import Run
from bench.scale.bill import Prices, Saved, bill_page, checkpoint_price, queries_a_second, query_price
from bench.scale.model import derived, derived_page, manifest_bytes
from bench.scale.next_checkpoint import CheckpointCost
from bench.scale.report import LARGER, SMALLER, Figures, judged, scale_page, scale_picture
from bench.scale.run import is_published, parser

FACTS = {"first_s": 0.1, "all_s": 0.2, "requests": 8, "round_trips": 4, "bytes_read": 1000, "peak_mb": 10.0}


def run(**changes: object) -> Run:
    return Run(table="t", level="L7", query="take", place="store", round=1, facts=FACTS | changes)


def figures(files: int, query: str = "take 100", **changes: object) -> Figures:
    return Figures.of(files, query, [run(**changes)], manifest_bytes=100)


def failures(*of: Figures) -> list[str]:
    return [check.measured for check in judged(of) if not check.passed]


def test_a_figure_is_the_median_of_its_runs() -> None:
    runs = [run(all_s=seconds) for seconds in (5.0, 0.1, 0.3)]
    assert Figures.of(7, "take 100", runs, manifest_bytes=1).all_s == 0.3


def test_what_stays_within_twice_is_kept() -> None:
    assert failures(figures(SMALLER), figures(LARGER, all_s=0.39, bytes_read=1999, peak_mb=19.9)) == []


def test_each_measure_is_judged() -> None:
    for name, told in {"all_s": "time", "bytes_read": "bytes", "peak_mb": "memory"}.items():
        (found,) = failures(figures(SMALLER), figures(LARGER, **{name: 2.1 * FACTS[name]}))
        assert f"{told} 2.10 times" in found


def test_a_wrong_answer_and_a_long_manifest_are_told() -> None:
    wrong = Figures.of(
        SMALLER, "take 100", [msgspec.structs.replace(run(), failure="counted 3")], manifest_bytes=1
    )
    assert failures(wrong) == [f"{SMALLER:,} files, take 100: counted 3"]
    assert failures(wrong, figures(LARGER))[0] == f"{SMALLER:,} files, take 100: counted 3"
    assert failures(msgspec.structs.replace(figures(5), manifest_bytes=2_000_000)) == ["2,000,000 at most"]


def cost(files: int, **changes: object) -> CheckpointCost:
    about = {"changes": 10, "cpu_s": 1.0, "requests": 60, "round_trips": 30, "bytes_read": 900}
    about |= {"bytes_written": 100, "memory_mb": 40.0, "parts_written": 1, "parts_referenced": 5}
    return CheckpointCost(files=files, **about | changes)


def test_one_more_checkpoint_is_judged() -> None:
    def told(**changes: object) -> list[str]:
        checks = judged([], [cost(SMALLER), cost(LARGER, **changes)])
        return [check.measured for check in checks if not check.passed]

    assert told(bytes_read=1900) == []
    assert told(bytes_written=1200) == ["bytes 2.10 times, memory 1.00 times"]
    assert told(memory_mb=88.0) == ["bytes 1.00 times, memory 2.20 times"]
    assert told(failure="the build was full") == ["the build was full"]


def test_the_page_and_the_picture_have_every_query(tmp_path: Path) -> None:
    found = [figures(files, query) for files in (10, 100) for query in ("take 100", "the last hour")]
    costs = [cost(10), cost(100, failure="the build was full")]
    page = scale_page(found, costs, judged(found, costs), latency_ms=30)
    assert page.count("| take 100 |") == page.count("| the last hour |") == 2
    assert "the build was full" in page
    assert scale_picture(tmp_path / "scale.png", found, costs).read_bytes().startswith(b"\x89PNG")


def test_the_model_derives_bytes_by_the_manifest_alone() -> None:
    found = [figures(SMALLER, bytes_read=1_000_000), figures(LARGER, bytes_read=900_000), figures(10)]
    (one,) = derived(found, base=SMALLER)
    assert (one.files, one.requests) == (LARGER, FACTS["requests"])
    assert one.bytes_read == 1_000_000 - manifest_bytes(SMALLER) + manifest_bytes(LARGER)
    assert manifest_bytes(LARGER) < manifest_bytes(SMALLER), "one is packed, the other lists row groups"
    assert "0.97" not in derived_page([figures(10)], base=SMALLER)
    assert derived_page(found, base=SMALLER).count("take 100") == 1


def test_a_day_is_billed_by_its_requests() -> None:
    prices = Prices(get=1.0, put=10.0, list=5.0, gets_a_second=800)
    query = figures(SMALLER)  # 8 requests, one of them a listing
    assert query_price(query, prices) == (7 + 5) / 1e6
    assert checkpoint_price(cost(SMALLER), prices) == (55 + 15 + 20) / 1e6
    assert queries_a_second(query, prices) == 100
    page = bill_page(Saved([query], [cost(SMALLER)]), prices, queries=1_000_000, checkpoints=1_000_000)
    assert "| 12.00 | 100 |" in page
    assert "| 90.00 |" in page


def test_only_a_run_in_which_nothing_was_chosen_otherwise_is_published() -> None:
    assert is_published(parser().parse_args([]))
    for chosen in (["--rounds", "1"], ["--latency-ms", "0"], ["--files", str(SMALLER), str(LARGER)]):
        assert not is_published(parser().parse_args(chosen))
