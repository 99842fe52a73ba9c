"""Small files in a stream's checkpoint location, through Spark's own file systems.

Why: the location may be anywhere that Spark can write, with credentials that only Spark was given.
Contract: a file appears whole or not at all; a name is written once. Names are relative to the location.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from lazydelta.errors import StorageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class StreamFiles:
    """The files below one checkpoint location."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._location = location
        jvm: Any = spark._jvm  # Any: objects of the JVM
        self._path = jvm.org.apache.hadoop.fs.Path
        configuration = spark._jsparkSession.sessionState().newHadoopConf()
        self._store = self._guarded(lambda: self._path(location).getFileSystem(configuration))

    def read(self, name: str) -> str | None:
        """The text of a file, or None where there is none."""
        path = self._at(name)
        if not self._guarded(lambda: self._store.exists(path)):
            return None

        def text() -> str:
            stream = self._store.open(path)
            try:
                return bytes(stream.readAllBytes()).decode()
            finally:
                stream.close()

        return str(self._guarded(text))

    def write(self, name: str, text: str) -> None:
        """Let a file appear, whole."""

        def appear() -> bool:
            hidden = self._at(f"{name}.{uuid.uuid4().hex}.part")
            stream = self._store.create(hidden, False)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()
            return bool(self._store.rename(hidden, self._at(name)))

        if not self._guarded(appear):
            raise StorageError(
                f"{name} cannot be renamed into place",
                self._location,
                "is another stream using the location?",
            )

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none where it does not exist."""
        path = self._at(folder)
        if not self._guarded(lambda: self._store.exists(path)):
            return []
        return [status.getPath().getName() for status in self._guarded(lambda: self._store.listStatus(path))]

    def _at(self, name: str) -> Any:
        return self._path(f"{self._location.rstrip('/')}/{name}")

    def _guarded(self, action: Any) -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return action()
        except Py4JJavaError as problem:
            raise StorageError(
                f"the checkpoint location cannot be used: {problem.java_exception.toString()}",
                self._location,
                "name a folder that this process may create and write, or give Spark its credentials",
            ) from problem
