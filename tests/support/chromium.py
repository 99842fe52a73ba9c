"""Chromium without a window, for the tests of the web page: the machine's own, or one in the project's cache.

Contract: `browser` is one process per folder of tests, driven by playwright. Nothing is installed on the
machine and no rights are needed: where it has no Chromium, apt's packages are unpacked below the cache with
their libraries and a font; where there is no apt either, playwright fetches its own build into the cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import playwright
import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

from tests.support.apt import has_apt, unpacked
from tests.support.capi_library import cache_folder
from tests.support.node import node
from tests.support.skips import skip

PACKAGES = ("chromium-headless-shell", "fonts-dejavu-core")
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{fonts}</dir><dir>/usr/share/fonts</dir><cachedir>{cache}</cachedir></fontconfig>
"""


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One Chromium; tests open contexts of their own."""
    _prepare_driver()
    with sync_playwright() as driver:
        program, environment = _found(driver)
        # Without its sandbox: tests may run as root, where Chromium has none.
        launched = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox"], env={**os.environ, **environment}
        )
        try:
            yield launched
        finally:
            launched.close()


def _prepare_driver() -> None:
    """Playwright brings a Node that needs a library of the system; without that, another Node runs it."""
    program = Path(playwright.__file__).parent / "driver" / "node"
    if subprocess.run([program, "--version"], check=False, capture_output=True).returncode:
        os.environ["PLAYWRIGHT_NODEJS_PATH"] = node()


def _found(driver: Playwright) -> tuple[str, dict[str, str | float | bool]]:
    """The program, and what its environment needs."""
    own = Path(driver.chromium.executable_path)
    for program in (*map(shutil.which, _NAMES), str(own) if own.exists() else None):
        if program:
            return program, {}
    return _of_apt(cache_folder() / "chromium") if has_apt() else _of_playwright(own)


def _of_apt(folder: Path) -> tuple[str, dict[str, str | float | bool]]:
    root = unpacked(folder, PACKAGES, done="1", versions={})
    fonts = folder / "fonts.conf"
    fonts.write_text(_FONTS.format(fonts=root / "usr/share/fonts", cache=folder / "font-cache"), "utf-8")
    libraries = sorted({str(path.parent) for path in root.rglob("*.so*")})
    environment: dict[str, str | float | bool] = {
        "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        "FONTCONFIG_FILE": str(fonts),
    }
    return str(root / "usr/lib/chromium/chromium-headless-shell"), environment


def _of_playwright(own: Path) -> tuple[str, dict[str, str | float | bool]]:
    folder = cache_folder() / "playwright"
    environment = {**os.environ, "PLAYWRIGHT_BROWSERS_PATH": str(folder)}
    command = [sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"]
    if subprocess.run(command, env=environment, check=False, capture_output=True).returncode:
        skip("Chromium is missing")
    found = next(iter(folder.rglob("*headless*shell*/" + own.name)), None) or next(
        path for path in folder.rglob("*headless*shell*") if path.is_file() and os.access(path, os.X_OK)
    )
    return str(found), {}
