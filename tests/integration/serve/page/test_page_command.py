"""`lazydelta ui`: one table in the browser, for this machine alone."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from lazydelta.cli.ui_command import config_text, table_name
from lazydelta.serve.config import load_config
from tests.support.page_views import opened

ROOT = Path(__file__).resolve().parents[4]


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command, ended at the end."""
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-m", "lazydelta", "ui", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def url(machines: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> str:
    return machines(tmp_path_factory.mktemp("tables"))


def test_the_command_tells_the_address_and_ends_by_ctrl_c(browser: Browser, url: str) -> None:
    with started(url) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/ui/#table=machines", address)
        with opened(browser, address) as page:
            expect(page.locator("#map-state")).to_contain_text("24 live files")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "", "")


def test_the_page_is_opened_where_that_is_asked_for(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}.part && mv {seen}.part {seen}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    with started(url, "--open") as process:
        assert process.stdout is not None
        address = process.stdout.readline()
        give_up = time.monotonic() + 60
        while not seen.exists():
            assert time.monotonic() < give_up
            time.sleep(0.05)
    assert seen.read_text() == address


def test_the_address_comes_as_json_and_options_reach_the_table(url: str, tmp_path: Path) -> None:
    with started(
        url, "--json", "--name", "press", "--storage-option", "delta.sidecar.enabled=false"
    ) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert told["table"] == "press"
        facts = httpx.get(told["url"].partition("#")[0] + "api/tables/press", timeout=60).json()
        assert (facts["version"], facts["sidecar"]) == (23, None)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_wrong_address_is_an_error_before_anything_is_served(tmp_path: Path) -> None:
    with started(str(tmp_path / "nothing")) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (3, "")
    assert "no Delta table here" in err


def test_what_is_wrong_with_an_option_is_told_by_its_name(url: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        for arguments, told in (
            (("--name", "a b"), "--name: 'a b'"),
            (("--port", str(port)), "--port: 127.0.0.1"),
        ):
            with started(url, *arguments) as process:
                out, err = process.communicate(timeout=60)
            assert (process.returncode, out) == (2, "")
            assert told in err
            assert "serve.toml" not in err
            assert "host" not in err


def test_a_table_whose_name_is_a_word_of_the_languages_is_asked(browser: Browser, url: str) -> None:
    with started(url, "--name", "order") as process:
        assert process.stdout is not None
        with opened(browser, process.stdout.readline().strip()) as page:
            text = page.locator("#query-text")
            for language, first in (
                ("sql", 'select * from "order" limit 100'),
                ("kql", "['order'] | take 100"),
            ):
                page.locator(f'input[value="{language}"]').check()
                expect(text).to_have_value(first)
                text.press("Control+Enter")
                expect(page.locator("#result-state")).to_contain_text("100 rows in")
                expect(page.locator("#query-error")).to_be_hidden()
            page.locator('input[value="sql"]').check()
            expect(text).to_have_value('select * from "order" limit 100')


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("s3://lake/orders", "orders"),
        ("abfss://lake@account/telemetry/", "telemetry"),
        ("/data/my table.v2", "my_table_v2"),
        ("./2026-orders", "t_2026_orders"),
        ("s3://lake/日本", "t"),
    ],
)
def test_a_table_is_called_by_the_end_of_its_address(url: str, name: str) -> None:
    assert table_name(url) == name


def test_the_configuration_holds_no_option_by_its_value(tmp_path: Path) -> None:
    path = tmp_path / "serve.toml"
    path.write_text(config_text('/data/a "b"', "t", 0, ["account_key", "delta.cache.bytes"]), "utf-8")
    environment = {"LAZYDELTA_UI_OPTION_0": "secret", "LAZYDELTA_UI_OPTION_1": "0"}
    config = load_config(str(path), environment=environment)
    assert config.tables["t"].url == '/data/a "b"'
    assert config.tables["t"].settings.storage_options["account_key"] == "secret"
    assert "secret" not in path.read_text("utf-8")
