"""`lazydelta` as a process that does not leave a step behind: once it is reached, it waits to be killed.

`python -m tests.support.held_stream FOLDER STEP ARGUMENTS...`: the folder of a `StreamWorld`, the number
of a step in `STEPS`, and what the command is given.
Why: a step may last a few milliseconds, and a kill that is aimed by what appears on disk would come too late.
Contract: the product runs as it is. Between two steps of a batch the disk is looked at; where the step is
reached, nothing more happens. A place that the product no longer has is an error.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lazydelta.cli.start import main
from tests.support.stream_steps import STEPS
from tests.support.stream_world import StreamWorld

# What begins or ends between two of the steps.
PLACES = (
    ("lazydelta.spark.stream_batches", "write_batch"),
    ("lazydelta.spark.ingest", "_write_rows"),
    ("lazydelta.spark.stream_batches", "after_commit"),
    ("lazydelta.upkeep.build", "finish_build"),
)


def hold(world: StreamWorld, number: int) -> None:
    """Make every place wait once the step is reached."""
    before, step = world.look(), STEPS[number]

    def wait_where_reached() -> None:
        while step.is_reached(before, world.look()):
            time.sleep(1)

    def held(function: Callable[..., Any]) -> Callable[..., Any]:  # Any: whatever it takes and gives
        def run(*arguments: Any, **named: Any) -> Any:
            wait_where_reached()
            answer = function(*arguments, **named)
            wait_where_reached()
            return answer

        return run

    for module_name, name in PLACES:
        module = importlib.import_module(module_name)
        setattr(module, name, held(getattr(module, name)))


if __name__ == "__main__":
    folder, number, *sys.argv[1:] = sys.argv[1:]
    hold(StreamWorld(Path(folder)), int(number))
    main()
