"""Chromium for the tests of the web page."""

from tests.support.chromium import browser

__all__ = ["browser"]
