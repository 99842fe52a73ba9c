"""Jars from Maven's central repository, fetched by Ivy, which PySpark brings.

Contract: of one version; the jar that is asked for is checked by its digest.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pyspark

_IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir="{folder}/ivy"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""
_SECONDS_MAX = 300.0


def fetch_jars(group: str, name: str, version: str, folder: Path, sha256: str) -> None:
    """The jar and those that it needs, as `name-version.jar`."""
    ivy = next(Path(pyspark.__file__).parent.joinpath("jars").glob("ivy-*.jar"))
    settings = folder / "settings.xml"
    settings.write_text(_IVY_SETTINGS.format(folder=folder), "utf-8")
    command = ["java", "-jar", str(ivy), "-settings", str(settings), "-confs", "default"]
    command += ["-dependency", group, name, version]
    command += ["-retrieve", f"{folder}/[artifact]-[revision].[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS_MAX)
    found = folder / f"{name}-{version}.jar"
    if done.returncode or not found.exists():
        raise RuntimeError(f"Ivy could not fetch {name} {version}:\n{done.stdout}\n{done.stderr}")
    digest = hashlib.sha256(found.read_bytes()).hexdigest()
    if digest != sha256:
        raise RuntimeError(f"{name} {version} has the digest {digest}, not {sha256}")
