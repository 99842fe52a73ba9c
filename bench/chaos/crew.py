"""The processes of a run: started, killed in the middle, started again, watched.

Contract: every one is a process group of its own, so that what it started dies with it. Those that may be
killed begin again with another seed. A reader that ends by itself, or whose question takes longer than any
may, is trouble. All are gone when the block ends.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from bench.chaos.report import Tally

QUESTION_SECONDS_MAX = 150.0


class Member(msgspec.Struct, kw_only=True):
    """One process and what it told so far."""

    name: str
    module: str
    arguments: Sequence[str]
    store: str
    events: Path
    is_mortal: bool
    niceness: int = 0
    starts: int = 0
    process: Any = None  # Any: subprocess.Popen is generic in what it reads
    offset: int = 0
    begun: dict[str, dict[str, Any]] = msgspec.field(
        default_factory=dict
    )  # by thread: the question under way


class Crew:
    """All of them."""

    def __init__(self, folder: Path, tally: Tally, dice: random.Random) -> None:
        self._folder, self._tally, self._dice = folder, tally, dice
        self.members: list[Member] = []
        self.hung: list[str] = []

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            _kill(member)

    def add(
        self, name: str, module: str, *arguments: str, store: str, is_mortal: bool = False, niceness: int = 0
    ) -> Member:
        """Start one; arguments may have `{seed}`, another one with each start, and `{events}`."""
        member = Member(
            name=name,
            module=module,
            arguments=arguments,
            store=store,
            events=self._folder / "events" / f"{name}.jsonl",
            is_mortal=is_mortal,
            niceness=niceness,
        )
        member.events.parent.mkdir(exist_ok=True)
        member.events.touch()
        self.members.append(member)
        self._start(member)
        return member

    def kill_one(self, *, with_spark: bool) -> None:
        """End one of the mortal at once, wherever it is, and start it again."""
        able = [
            member
            for member in self.members
            if member.is_mortal and (member.store == "spark") == with_spark and member.process.poll() is None
        ]
        if able:
            member = self._dice.choice(able)
            self._tally.kills[member.name] += 1
            _kill(member)
            self._start(member)

    def dismiss(self, *, but: str) -> None:
        """End all but those of a module; what they told last is taken."""
        for member in self.members:
            if member.module != but:
                _kill(member)
                self._read(member)
        self.members = [member for member in self.members if member.module == but]

    def look(self) -> None:
        """Take what was told, start again what died, and see who hangs."""
        for member in self.members:
            self._read(member)
            for question in member.begun.values():
                if time.time() - question["at"] > QUESTION_SECONDS_MAX:
                    self._give_up(member, question)
                    break
            if member.process.poll() is not None:
                self._ended(member)

    def _start(self, member: Member) -> None:
        member.starts += 1
        given = {"seed": f"{member.name}-{member.starts}", "events": str(member.events)}
        command = [sys.executable, "-m", member.module, *(word.format(**given) for word in member.arguments)]
        with (self._folder / "events" / f"{member.name}.log").open("ab") as log:
            member.process = subprocess.Popen(
                ["nice", "-n", str(member.niceness), *command],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    def _read(self, member: Member) -> None:
        with member.events.open("rb") as lines:
            lines.seek(member.offset)
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                member.offset += len(line)
                event = msgspec.json.decode(line)
                if event.get("is_begin"):
                    member.begun[event["reader"]] = event
                    continue
                member.begun.pop(event.get("reader", ""), None)
                self._tally.take(event, member.store)

    def _give_up(self, member: Member, question: dict[str, Any]) -> None:
        """Ask for every thread's stack, then end it."""
        self.hung.append(f"{member.name}: {question}")
        with suppress(ProcessLookupError):
            os.killpg(member.process.pid, signal.SIGUSR1)
        time.sleep(2)
        _kill(member)
        member.begun.clear()
        self._start(member)

    def _ended(self, member: Member) -> None:
        if not member.is_mortal:
            self._tally.troubles.append(f"{member.name} ended with {member.process.returncode}")
        elif member.process.returncode:
            self._tally.operations[f"{member.name} ended", str(member.process.returncode)] += 1
        if len(self._tally.troubles) < 20:
            self._start(member)


def _kill(member: Member) -> None:
    with suppress(ProcessLookupError):
        os.killpg(member.process.pid, signal.SIGKILL)
    member.process.wait()
