"""A range of spellings is never ruled out while a spelling of a wanted path lies in it."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import assume, given
from hypothesis import strategies as st

from lazydelta.errors import CorruptLogError
from lazydelta.protocol.path_ranges import PathRange, SortedPaths
from lazydelta.protocol.paths import canonical_path

ROOTS = ("file:///data/a", "s3://b/%25a", "abfss://lake@account.dfs.core.windows.net/t")
_PIECES = (
    "a",
    "b",
    "/",
    "=",
    ":",
    " ",
    "$",
    "%",
    "%2",
    "%41",
    "%25",
    "%2F",
    "%C3%BC",
    "ü",
    "-",
    "_",
    "0",
    "~",
)
relative = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=6).map("".join)


@st.composite
def spellings(draw: st.DrawFn, root: str) -> str:
    """A path as some log may spell it."""
    path = draw(st.sampled_from(("", "part-", "h=1/", "h=2/", "f", "s"))) + draw(relative)
    bare = root.partition("://")[2].partition("/")[2]
    aliases = (
        "",
        "",
        "",
        f"{root}/",
        f"/{bare}/",
        f"{root.upper()[:3]}{root[3:]}/",
        "s3a://b/%25a/",
        "file:/",
    )
    return draw(st.sampled_from(aliases)) + path


@given(st.data(), st.sampled_from(ROOTS))
def test_a_range_that_holds_a_spelling_of_a_wanted_path_may_hold_it(data: st.DataObject, root: str) -> None:
    raws = data.draw(st.lists(spellings(root), min_size=1, max_size=5))
    canonical = {}
    for raw in raws:
        with suppress(CorruptLogError):
            canonical[raw] = canonical_path(raw, root)
    assume(canonical)
    wanted = data.draw(st.sampled_from(sorted(canonical.values())))
    others = data.draw(st.lists(relative, max_size=3))
    ordered = sorted(canonical, key=str.encode)
    whole = PathRange(ordered[0], ordered[-1])
    assert SortedPaths([wanted, *others], root).may_hold([whole]).all()


@given(st.data(), st.sampled_from(ROOTS))
def test_spellings_of_neighbours_do_not_hide_a_path(data: st.DataObject, root: str) -> None:
    """Much in common, so that the range is narrow, and an escape at any place."""
    start = data.draw(st.sampled_from(("h=1/", "h=1/part-", "h=1/ü", "h=1/%25", "h=1/%20", "h=%31/")))
    tails = data.draw(st.lists(st.text("a$z%ü0", min_size=1, max_size=3), min_size=2, max_size=3))
    raws = [start + "".join(data.draw(spelled(one)) for one in tail) for tail in tails]
    canonical = [canonical_path(raw, root) for raw in raws]
    ordered = sorted(raws, key=str.encode)
    whole = PathRange(ordered[0], ordered[-1])
    for path in canonical:
        assert SortedPaths([path], root).may_hold([whole]).all()


def spelled(character: str) -> st.SearchStrategy[str]:
    """As it is, mostly, or escaped; a percent sign must be."""
    escaped = "".join(f"%{byte:02X}" for byte in character.encode())
    return st.just(escaped) if character == "%" else st.sampled_from((character, escaped))


@given(relative, st.sampled_from(ROOTS))
def test_a_range_without_an_end_may_hold_anything(path: str, root: str) -> None:
    ranges = [PathRange(None, "a"), PathRange("a", None), PathRange(None, None)]
    paths = SortedPaths([path], root)
    assert paths.may_hold(ranges).all()
    assert paths.likely_hold(ranges).all()


def test_ranges_of_other_hours_are_ruled_out() -> None:
    ranges = [
        PathRange("_event_hour=2026021009/part-1", "_event_hour=2026021009/part-9"),
        PathRange("_event_hour=2026021010/part-1", "_event_hour=2026021010/part-9"),
        PathRange("_event_hour=2026021010/part-9", "_event_hour=2026021013/part-1"),
        PathRange("_event_hour=2026021014/part-1", "_event_hour=2026021019/part-1"),
    ]
    paths = SortedPaths(["_event_hour=2026021010/part-5"], ROOTS[0])
    assert paths.may_hold(ranges).tolist() == [False, True, True, False]
    assert paths.likely_hold(ranges).tolist() == [False, True, False, False]


def test_a_path_outside_the_table_is_looked_for_only_where_an_absolute_path_may_stand() -> None:
    ranges = [
        PathRange("a=1/x", "a=1/z"),
        PathRange("a/x", "a/z"),
        PathRange("/data/x", "/data/z"),
        PathRange("a", "z"),
    ]
    paths = SortedPaths(["file:///elsewhere/f"], ROOTS[0])
    assert paths.may_hold(ranges).tolist() == [False, False, True, True]
