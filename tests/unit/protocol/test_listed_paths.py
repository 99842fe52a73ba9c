"""A path that a user has at hand means the file that a scan gives under that path."""

from __future__ import annotations

import pytest

from lazydelta.protocol.paths import listed_path, root_schemes

LAKE = "abfss://lake@account.dfs.core.windows.net/telemetry"


@pytest.mark.parametrize(
    ("path", "root", "meant"),
    [
        ("a b/100%25", "file:///t", "a b/100%25"),
        ("file:///t/a%20b", "file:///t", "a%20b"),
        ("file:/t/a", "file:///t", "a"),
        ("FILE:///t/a", "file:///t", "a"),
        ("/t/a", "file:///t", "a"),
        ("/t2/a", "file:///t", "file:///t2/a"),
        ("/with space/a", "file:///with%20space", "a"),
        ("file:///with%20space/a", "file:///with%20space", "a"),
        ("file:///with space/a", "file:///with%20space", "a"),
        ("s3://lake/t/a", "s3://lake/t", "a"),
        ("s3a://lake/t/a", "s3://lake/t", "a"),
        ("s3://other/t/a", "s3://lake/t", "s3://other/t/a"),
        (f"{LAKE}/h=1/a", LAKE, "h=1/a"),
        (f"{LAKE.replace('abfss', 'abfs')}/h=1/a", LAKE, "h=1/a"),
        ("/telemetry/a", LAKE, "a"),
    ],
)
def test_a_path_may_stand_alone_or_below_any_spelling_of_the_root(path: str, root: str, meant: str) -> None:
    assert listed_path(path, root) == meant


def test_every_spelling_of_a_scheme_is_known() -> None:
    assert set(root_schemes("s3://lake/t")) == {"s3", "s3a", "s3n"}
    assert root_schemes("file:///t") == ["file"]
