"""What a session needs before it starts: Java, jars, settings; each lack says what to set."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lazydelta.errors import LazyDeltaError, StorageError
from lazydelta.spark.config import SparkConfig
from lazydelta.spark.session import (
    CACHE_VARIABLE,
    DELTA_PACKAGE,
    MAVEN_VARIABLE,
    cache_folder,
    check_java,
    get_session,
    plan_launch,
)


def fake_java(folder: Path, says: str) -> Path:
    """A `java` whose -version prints this to stderr."""
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\n")
    java.chmod(0o755)
    return folder


def filled_cache(folder: Path) -> dict[str, str]:
    """An environment whose cache has the jars."""
    jars = folder / "ivy" / "jars"
    jars.mkdir(parents=True)
    (jars / "io.delta_delta-spark.jar").touch()
    (folder / "ivy" / f"{DELTA_PACKAGE.replace(':', '_')}.complete").touch()
    return {CACHE_VARIABLE: str(folder)}


def test_no_java_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(LazyDeltaError, match="there is none") as caught:
        check_java({"PATH": str(tmp_path)})
    assert "Java 17" in caught.value.fix
    assert "JAVA_HOME" in caught.value.fix


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(LazyDeltaError) as caught:
        check_java({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin"})
    assert caught.value.where == f"JAVA_HOME={tmp_path}"


@pytest.mark.parametrize("says", ['java version "1.8.0_292"', 'openjdk version "11.0.2" 2019-01-15', "what?"])
def test_an_old_java_is_told_which_was_found(tmp_path: Path, says: str) -> None:
    home = fake_java(tmp_path / "jdk", says)
    with pytest.raises(LazyDeltaError, match="Java 17 or newer") as caught:
        check_java({"JAVA_HOME": str(home)})
    assert says in caught.value.what
    assert caught.value.where == str(home / "bin" / "java")


@pytest.mark.parametrize("says", ['openjdk version "17.0.15" 2025-04-15', 'java version "21" 2023-09-19'])
def test_a_new_java_will_do_from_the_path_too(tmp_path: Path, says: str) -> None:
    home = fake_java(tmp_path / "jdk", says)
    check_java({"PATH": f"{home / 'bin'}:/bin"})


def test_a_java_that_does_not_run_is_told(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "")
    (home / "bin" / "java").write_bytes(b"\x7fELF no program")
    with pytest.raises(LazyDeltaError, match="Java"):
        check_java({"JAVA_HOME": str(home)})


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(LazyDeltaError) as caught:
        get_session(SparkConfig())
    assert caught.value.fix == "pip install 'lazydelta[spark]'"


def test_a_filled_cache_needs_no_repository(tmp_path: Path) -> None:
    settings = plan_launch({}, filled_cache(tmp_path)).settings
    assert settings["spark.jars"].endswith("delta-spark.jar")
    assert settings["spark.master"] == "local[*]"
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert not settings.get("spark.jars.packages")


def test_an_empty_cache_is_filled_from_the_repository_that_is_named(tmp_path: Path) -> None:
    environment = {CACHE_VARIABLE: str(tmp_path), MAVEN_VARIABLE: "https://mirror.example/maven2"}
    launch = plan_launch({}, environment)
    assert launch.settings["spark.jars.packages"] == DELTA_PACKAGE
    assert launch.settings["spark.jars.ivy"] == str(tmp_path / "ivy")
    assert (
        'root="https://mirror.example/maven2"' in Path(launch.settings["spark.jars.ivySettings"]).read_text()
    )
    assert launch.jars_marker is not None


def test_more_packages_get_a_cache_of_their_own(tmp_path: Path) -> None:
    given = {"spark.jars.packages": "org.example:store:1.0", "spark.jars.excludes": "a:b"}
    settings = plan_launch(given, filled_cache(tmp_path)).settings
    assert settings["spark.jars.packages"] == f"{DELTA_PACKAGE},org.example:store:1.0"
    assert settings["spark.jars.ivy"] != str(tmp_path / "ivy")
    assert settings["spark.jars.excludes"].endswith(",a:b")


def test_jars_that_are_given_are_used_as_they_are(tmp_path: Path) -> None:
    given = {"spark.jars": "/opt/jars/delta-spark_4.2.jar,/opt/jars/delta-storage.jar"}
    settings = plan_launch(given, {CACHE_VARIABLE: str(tmp_path)}).settings
    assert settings["spark.jars"] == given["spark.jars"]
    assert "spark.jars.packages" not in settings
    assert list(tmp_path.iterdir()) == []


def test_other_jars_stand_beside_deltas(tmp_path: Path) -> None:
    settings = plan_launch({"spark.jars": "/opt/mine.jar"}, filled_cache(tmp_path)).settings
    assert "delta-spark.jar" in settings["spark.jars"]
    assert settings["spark.jars"].endswith(",/opt/mine.jar")


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be written") as caught:
        plan_launch({}, {CACHE_VARIABLE: str(tmp_path / "file")})
    assert CACHE_VARIABLE in caught.value.fix


def test_settings_of_the_caller_win_and_a_cluster_gets_no_local_ones(tmp_path: Path) -> None:
    environment = filled_cache(tmp_path)
    given = {"spark.master": "yarn", "spark.log.level": "WARN"}
    settings = plan_launch(given, environment).settings
    assert (settings["spark.master"], settings["spark.log.level"]) == ("yarn", "WARN")
    assert "spark.driver.bindAddress" not in settings
    submitted = plan_launch({}, {**environment, "PYSPARK_GATEWAY_PORT": "1"}).settings
    assert "spark.master" not in submitted


def test_the_cache_is_the_users_own_unless_said() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/lazydelta")
    assert cache_folder({}) == Path.home() / ".cache" / "lazydelta"
    assert cache_folder({CACHE_VARIABLE: "/y", "XDG_CACHE_HOME": "/x"}) == Path("/y")
