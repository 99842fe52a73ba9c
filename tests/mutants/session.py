"""One call of `make mutants`: the baseline, then each mutant, by several workers; known results are kept."""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

import msgspec

from tests.mutants import baseline
from tests.mutants.drawing import Mutant
from tests.mutants.judging import Judge, Verdict
from tests.mutants.runs import Workspace

_OWN = Path(__file__).parent
Item = TypeVar("Item")
Result = TypeVar("Result")


class Session:
    """The workers, and the folder in which results of this source and these tests stay."""

    def __init__(
        self, *, source: Path, tests: Path, folders: Sequence[str], kept: Path, workers: int, scratch: Path
    ) -> None:
        self._tests, self._folders = tests, folders
        names = [_digest(source / "lazydelta"), _digest(tests / "tests")]
        if tuple(folders) != baseline.FOLDERS:
            names.append("-".join(folders).replace("/", "."))
        self.folder = kept / "-".join(names)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._stop = threading.Event()
        self._workers = workers
        self._idle: SimpleQueue[Workspace] = SimpleQueue()
        for number in range(workers):
            place = scratch / f"worker-{number}"
            place.mkdir()
            self._idle.put(Workspace(place, source, tests, self._stop))

    def run(
        self, mutants: Sequence[Mutant], say: Callable[[str], None], *, seconds: float, module_seconds: float
    ) -> tuple[dict[str, Verdict], list[str]]:
        """The verdicts by the mutants' keys, and the tests left out because they fail without a mutant."""
        verdicts = self._verdicts()
        pieces = baseline.pieces_of(self._tests, self._folders, self.folder)
        is_new = not any(map(baseline.is_measured, pieces))
        known = self._baseline(pieces, mutants, say)
        judge = Judge(known, seconds=seconds, module_seconds=module_seconds)
        pending = [mutant for mutant in mutants if mutant.key not in verdicts]
        if not is_new:
            with self._workspace() as workspace:
                judge.check_baseline(workspace, pending)
        done = len(mutants) - len(pending)
        with closing(self._each(pending, judge.judge)) as judged:
            for mutant, verdict in judged:
                verdicts[mutant.key] = verdict
                self._keep(verdicts)
                done += 1
                reason = (
                    verdict.by or verdict.why or f"{verdict.tests_chosen} of {verdict.tests_covering} tests"
                )
                place = f"{mutant.file}:{mutant.line}"
                say(f"{done}/{len(mutants)} {verdict.status:<11} {verdict.seconds:6.1f} s  {place}  {reason}")
        return {mutant.key: verdicts[mutant.key] for mutant in mutants}, known.left_out

    def _baseline(
        self, pieces: list[baseline.Piece], mutants: Sequence[Mutant], say: Callable[[str], None]
    ) -> baseline.Known:
        missing = [piece for piece in pieces if not baseline.is_measured(piece)]
        done = len(pieces) - len(missing)
        with closing(
            self._each(missing, lambda piece, workspace: baseline.measure(workspace, piece))
        ) as work:
            for number, ((_, files), _) in enumerate(work, start=done + 1):
                say(f"tests without a mutant: {number} of {len(pieces)} pieces ({files[0]} ...)")
        return baseline.load([place for place, _ in pieces], mutants, say)

    def _each(
        self, items: Sequence[Item], work: Callable[[Item, Workspace], Result]
    ) -> Generator[tuple[Item, Result]]:
        """What `work` returns for each item, as it is ready; after an error or Ctrl-C nothing runs on."""

        def one(item: Item) -> Result:
            with self._workspace() as workspace:
                return work(item, workspace)

        with ThreadPoolExecutor(self._workers) as threads:
            futures = {threads.submit(one, item): item for item in items}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BaseException:
                self._stop.set()
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    @contextmanager
    def _workspace(self) -> Iterator[Workspace]:
        workspace = self._idle.get()
        try:
            yield workspace
        finally:
            self._idle.put(workspace)

    def _verdicts(self) -> dict[str, Verdict]:
        place = self.folder / "verdicts.json"
        return msgspec.json.decode(place.read_bytes(), type=dict[str, Verdict]) if place.exists() else {}

    def _keep(self, verdicts: dict[str, Verdict]) -> None:
        unfinished = self.folder / "verdicts.unfinished"
        unfinished.write_bytes(msgspec.json.encode(verdicts))
        unfinished.replace(self.folder / "verdicts.json")


@contextmanager
def open_session(
    *, source: Path, tests: Path, folders: Sequence[str], kept: Path, workers: int
) -> Iterator[Session]:
    """A session whose copies of the package are removed at the end."""
    with tempfile.TemporaryDirectory(prefix="lazydelta-mutants-", ignore_cleanup_errors=True) as scratch:
        yield Session(
            source=source, tests=tests, folders=folders, kept=kept, workers=workers, scratch=Path(scratch)
        )


def _digest(folder: Path) -> str:
    """Of every file but this tool's own."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and _OWN not in path.parents:
            found.update(f"{path.relative_to(folder)}|{path.stat().st_size}|".encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:12]
