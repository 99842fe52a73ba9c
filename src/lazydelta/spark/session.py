"""The Spark session of the pipeline: Java, the pinned jars of Delta, settings, a quiet standard error.

Why: Spark's own failures at this point (no Java, a jar that cannot be fetched) are stack traces that do
not say what to set. Contract: a session that is already active in the process is used as it is. Otherwise
one is started on `local[*]` unless configured; once the jars are in the cache it needs no network. What
Spark writes to its standard error goes to a file of its own (`Launch.log`).
"""

from __future__ import annotations

import atexit
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lazydelta.errors import LazyDeltaError, StorageError
from lazydelta.settings import process_environment
from lazydelta.spark.config import SessionConfig
from lazydelta.spark.settings_text import is_secret
from lazydelta.storage.scratch_folder import ScratchFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CACHE_VARIABLE = "LAZYDELTA_CACHE"
MAVEN_VARIABLE = "LAZYDELTA_MAVEN_ROOT"
JAVA_MIN = 17

# Spark's own distribution has these already; without the list 33 jars are fetched instead of ten.
_EXCLUDES = (
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.apache.parquet:parquet-hadoop",
    "com.fasterxml.jackson.core:jackson-databind",
    "com.fasterxml.jackson.core:jackson-core",
    "com.fasterxml.jackson.core:jackson-annotations",
    "com.fasterxml.jackson.datatype:jackson-datatype-jdk8",
    "org.slf4j:slf4j-api",
    "org.apache.logging.log4j:log4j-api",
    "org.apache.logging.log4j:log4j-core",
    "org.apache.logging.log4j:log4j-slf4j2-impl",
    "org.scala-lang:scala-library",
)
# One resolver and no local Maven folder: a half-filled one (a pom without its jar) makes ivy fail.
_IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"{root}/></resolvers>
</ivysettings>
"""
_EXTENSIONS = "spark.sql.extensions"
_CATALOG = "spark.sql.catalog.spark_catalog"
_DELTA_SETTINGS = {
    # INT96, Spark's default, carries no statistics for other readers.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    _EXTENSIONS: DELTA_EXTENSION,
    _CATALOG: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# What suits one machine; a cluster's own settings win.
_LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.databricks.delta.snapshotPartitions": "2",  # 50 tasks to read a log otherwise
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM: thousands of tasks otherwise
}
_QUIET_SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
}
_UNFETCHED = re.compile(
    r"unresolved dependency|UNRESOLVED DEPENDENCIES|Server access error|download failed", re.I
)
_FETCH_PAUSES = (2.0, 8.0)  # seconds before another try: a repository that is busy answers "not found" too


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is started with."""

    settings: dict[str, str]
    scratch: Path  # what Spark leaves behind; gone with the process
    log: Path  # the JVM's standard output and error
    jars_marker: Path | None  # touched once the jars are complete


def get_session(config: SessionConfig, *, environment: Mapping[str, str] | None = None) -> SparkSession:
    """The active session, or a new one with Delta on it."""
    active = _active_session()
    if active is not None:
        return check_delta(active)
    variables = process_environment() if environment is None else environment
    check_java(variables)
    return start(plan_launch(config.spark, variables))


def plan_launch(given: Mapping[str, str], environment: Mapping[str, str]) -> Launch:
    """The settings of a new session: the defaults, then the jars, then what was given."""
    folder = ScratchFolder(Path(tempfile.gettempdir()), "lazydelta-spark-scratch-")
    atexit.register(folder.remove)
    scratch = folder.path
    jars, marker = _jar_settings(given, environment)
    is_submitted = "PYSPARK_GATEWAY_PORT" in environment  # spark-submit has decided where it runs
    master = given.get("spark.master", "local[*]")
    settings = {"spark.app.name": "lazydelta"} | _DELTA_SETTINGS | _QUIET_SETTINGS
    if not is_submitted:
        settings["spark.master"] = master
        settings |= jars
        if master.startswith("local"):
            settings |= _LOCAL_SETTINGS
            settings["spark.sql.warehouse.dir"] = str(scratch / "warehouse")
            settings["spark.driver.extraJavaOptions"] = f"-Dderby.system.home={scratch}"
    rest = {key: value for key, value in given.items() if key not in jars}
    return Launch(settings=settings | rest, scratch=scratch, log=scratch / "spark.log", jars_marker=marker)


def start(launch: Launch) -> SparkSession:
    """Start Java and Spark."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    # Workers would otherwise take the first python3 on the path, which may have no pyarrow.
    variables = process_environment()
    variables.setdefault("PYSPARK_PYTHON", sys.executable)
    variables.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    conf = SparkConf(loadDefaults=False)
    # The launcher's settings stand on a command line that every user of the machine can see.
    shown = SparkConf(loadDefaults=False)
    for key, value in launch.settings.items():
        conf.set(key, value)
        if not is_secret(key, value):
            shown.set(key, value)
    started: Any = launch_gateway  # Any: py4j has no types
    pauses = list(_FETCH_PAUSES)
    while True:
        try:
            with launch.log.open("wb") as log:
                gateway = started(shown, {"stdout": log, "stderr": log})
            SparkContext(conf=conf, gateway=gateway)
            session: SparkSession = _spark_session_class().builder.getOrCreate()
            break
        except (PySparkException, Py4JError, OSError) as problem:
            # One download of many that fails ends Java; what was fetched by then is kept.
            if not pauses or not _lacks_jars(_said(launch)):
                raise _unstarted(launch, problem) from problem
            time.sleep(pauses.pop(0))
    if launch.jars_marker is not None:
        launch.jars_marker.touch()
    return session


def check_delta(session: SparkSession) -> SparkSession:
    """The same session, or an error that says what it has to be started with."""
    if not hasattr(session, "_jsparkSession"):
        raise LazyDeltaError(
            "the pipeline cannot use a session of Spark Connect",
            "the Spark session",
            "run it beside the driver, with a session that has no remote()",
        )
    lacking = {}
    if not _has_delta_classes(session):
        lacking["spark.jars.packages"] = DELTA_PACKAGE
    if DELTA_EXTENSION not in (session.conf.get(_EXTENSIONS, "") or ""):
        lacking[_EXTENSIONS] = DELTA_EXTENSION
    if not session.conf.get(_CATALOG, ""):  # another one may be Delta's in disguise
        lacking[_CATALOG] = _DELTA_SETTINGS[_CATALOG]
    if lacking:
        settings = ", ".join(f"{name}={value}" for name, value in lacking.items())
        raise LazyDeltaError(
            "the Spark session has no Delta Lake",
            session.conf.get("spark.app.name", "") or "Spark",
            f"start it with {settings}; or stop it, and lazydelta starts one that has all of it",
        )
    return session


def check_java(environment: Mapping[str, str]) -> None:
    """Raise unless the Java that Spark will take is new enough."""
    home = environment.get("JAVA_HOME")
    java = (
        shutil.which(str(Path(home, "bin", "java")))
        if home
        else shutil.which("java", path=environment.get("PATH"))
    )
    fix = f"install Java {JAVA_MIN} (a JRE suffices), or set JAVA_HOME to where it is"
    if java is None:
        where = f"JAVA_HOME={home}" if home else "the PATH"
        raise LazyDeltaError("Spark needs Java, and there is none", where, fix)
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise LazyDeltaError(f"Java does not run: {problem}", java, fix) from problem
    words = (done.stderr or done.stdout).strip()
    found = re.search(r'version "(?:1\.)?(\d+)', words)
    if found is None or int(found[1]) < JAVA_MIN:
        said = words.splitlines()[0] if words else "nothing"
        raise LazyDeltaError(f"Spark needs Java {JAVA_MIN} or newer; this one says: {said}", java, fix)


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Where jars are kept between runs."""
    given = environment.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lazydelta"


def _spark_session_class() -> Any:  # Any: PySpark's builder is typed as a property of a class
    try:
        from pyspark.sql import SparkSession
    except ImportError as problem:
        raise LazyDeltaError(
            "PySpark is not installed", sys.executable, "pip install 'lazydelta[spark]'"
        ) from problem
    return SparkSession


def _active_session() -> SparkSession | None:
    """The session of this thread, else that of the process."""
    spark_session = _spark_session_class()
    from pyspark import SparkContext

    active: SparkSession | None = spark_session.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:
        active = spark_session.builder.getOrCreate()
    return active


def _has_delta_classes(session: SparkSession) -> bool:
    from py4j.java_gateway import JavaClass

    jvm: Any = session._jvm  # Any: objects of the JVM; a name that is no class is taken for a package
    return isinstance(jvm.org.apache.spark.sql.delta.DeltaLog, JavaClass)


def _jar_settings(
    given: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[dict[str, str], Path | None]:
    """Where Delta's jars come from: the caller, the cache, or a Maven repository by way of the cache."""
    own_jars = given.get("spark.jars", "")
    if "delta-spark" in own_jars:
        return {}, None
    packages = [
        DELTA_PACKAGE,
        *(name.strip() for name in given.get("spark.jars.packages", "").split(",") if name),
    ]
    own_ivy = given.get("spark.jars.ivy")
    ivy = Path(own_ivy) if own_ivy else cache_folder(environment) / _ivy_name(packages)
    # Named after the pinned packages: another pin fetches anew.
    marker = ivy / f"{_marker_name(packages)}.complete"
    jars = sorted(str(jar) for jar in (ivy / "jars").glob("*.jar"))
    if marker.exists() and jars:
        return {
            "spark.jars": ",".join([*jars, *([own_jars] if own_jars else [])]),
            "spark.jars.packages": "",
        }, None
    try:
        ivy.mkdir(parents=True, exist_ok=True)
        settings_file = ivy / "ivysettings.xml"
        root = environment.get(MAVEN_VARIABLE)
        settings_file.write_text(_IVY_SETTINGS.format(root=f' root="{root}"' if root else ""))
    except OSError as problem:
        raise StorageError(
            f"the folder for jars cannot be written: {problem.strerror}",
            str(ivy),
            f"set {CACHE_VARIABLE} to a folder that can, or give spark.jars",
        ) from problem
    excludes = [*_EXCLUDES, *(name for name in given.get("spark.jars.excludes", "").split(",") if name)]
    return {
        "spark.jars.packages": ",".join(dict.fromkeys(packages)),
        "spark.jars.excludes": ",".join(excludes),
        "spark.jars.ivy": str(ivy),
        "spark.jars.ivySettings": given.get("spark.jars.ivySettings", str(settings_file)),
    }, marker


def _ivy_name(packages: list[str]) -> str:
    if packages == [DELTA_PACKAGE]:
        return "ivy"
    return "ivy-" + hashlib.sha256(",".join(packages).encode()).hexdigest()[:12]


def _marker_name(packages: list[str]) -> str:
    return packages[0].replace(":", "_") if len(packages) == 1 else _ivy_name(packages)


def _said(launch: Launch) -> str:
    try:
        return launch.log.read_text("utf-8", "replace")
    except OSError:
        return ""


def _lacks_jars(log: str) -> bool:
    return _UNFETCHED.search(log) is not None


def _unstarted(launch: Launch, problem: BaseException) -> LazyDeltaError:
    """Why Spark did not start, from what it wrote before it ended."""
    log = _said(launch)
    if _lacks_jars(log):
        missing = re.search(r"unresolved dependency: ([^\s;]+)", log)
        return StorageError(
            f"the jars of Delta Lake cannot be fetched: {missing[1] if missing else DELTA_PACKAGE}",
            launch.settings.get("spark.jars.ivySettings", "spark.jars.packages"),
            f"set {MAVEN_VARIABLE} to a Maven repository that can be reached; with no network set spark.jars "
            "to copies of the jars, or spark.jars.ivy to a filled cache",
        )
    said = re.findall(
        r"^(?:Exception in thread.*?: |Error: |Caused by: )?([\w.]*(?:Exception|Error): .*)$", log, re.M
    )
    return LazyDeltaError(
        f"Spark did not start: {said[-1] if said else str(problem).splitlines()[0]}",
        launch.settings.get("spark.master", "Spark"),
        "check the [spark] settings and --spark-conf",
    )
