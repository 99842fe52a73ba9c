"""What a stream decides without Spark: how it hears signals, and what it calls its source."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lazydelta.spark.config import IngestConfig
from lazydelta.spark.stopping import children_deaf_to_sigterm, stop_on_signals
from lazydelta.spark.stream_source import absolute, source_name

_TWO_SIGNALS = """
import os, signal
from lazydelta.spark.stopping import stop_on_signals
with stop_on_signals() as stop:
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), number)
        print(stop.wait(60), flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_is_a_wish_and_what_was_in_place_comes_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        assert stop.wait(60)
    assert signal.getsignal(number) is before


def test_the_second_signal_is_an_order() -> None:
    done = subprocess.run([sys.executable, "-c", _TWO_SIGNALS], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("True\n", 128 + signal.SIGTERM), done.stderr


def test_away_from_the_main_thread_signals_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    def look() -> None:
        with stop_on_signals() as stop, children_deaf_to_sigterm():
            seen.extend([stop.is_set(), signal.getsignal(signal.SIGTERM)])

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [False, before]


def test_what_is_started_inside_does_not_hear_sigterm() -> None:
    with children_deaf_to_sigterm():
        child = subprocess.Popen(["sleep", "30"])
    try:
        child.terminate()
        time.sleep(0.2)
        assert child.poll() is None
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        child.kill()
        child.wait()


def test_a_source_has_one_name_however_it_is_spelled() -> None:
    here = Path.cwd()
    spellings = ("in", "in/", f"{here}/in", f"file:{here}/in", f"file://{here}/in/")
    assert {source_name(IngestConfig(source=spelling)) for spelling in spellings} == {str(here / "in")}
    assert absolute("abfss://lake@account/in/") == "abfss://lake@account/in"


def test_a_source_without_a_path_is_named_by_what_it_subscribes_to() -> None:
    brokers = {"kafka.bootstrap.servers": "a:9092", "subscribe": "telemetry", "maxOffsetsPerTrigger": "10"}
    assert source_name(IngestConfig(format="kafka", options=brokers)) == "kafka subscribe=telemetry"
    assert source_name(IngestConfig(format="table", source="lake.telemetry")) == "lake.telemetry"
