"""Processes that are forked from one that has read from a store."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


@pytest.mark.parametrize("is_used", [False, True])
def test_a_child_whose_parent_asked_a_store_is_told_so_and_others_go_on(*, is_used: bool) -> None:
    code = f"""
        import os, sys
        from lazydelta.errors import StorageError
        from lazydelta.storage.forks import check_fork
        if {is_used}:
            check_fork("s3://bucket/a")
        child = os.fork()
        if not child:
            try:
                check_fork("s3://bucket/b")
            except StorageError as told:
                print(told, flush=True)
                os._exit(7)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        check_fork("s3://bucket/c")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == ("7" if is_used else "0")
    assert ("s3://bucket/b" in done.stdout and "spawn" in done.stdout) == is_used
