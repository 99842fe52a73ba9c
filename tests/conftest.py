"""Fixtures shared by every folder of tests."""

pytest_plugins = [
    "tests.support.hypothesis_profile",
    "tests.support.servers",
    "tests.support.spark",
]
