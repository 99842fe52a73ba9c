"""Shares of the memory of statements: bounded in all, and no client has all of them."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from lazydelta.serve.refusals import LimitReachedError
from lazydelta.serve.sign_in import ANYONE, Client
from lazydelta.serve.statement_memory import AT_ONCE, KEPT, StatementMemory


def taken(memory: StatementMemory, client: Client, shares: ExitStack) -> int:
    """As many as the client gets without waiting."""
    count = 0
    while True:
        try:
            shares.enter_context(memory.share("KQL", client, waiting_seconds=0))
        except LimitReachedError:
            return count
        count += 1


def test_a_client_leaves_shares_for_those_that_have_none() -> None:
    memory = StatementMemory()
    with ExitStack() as shares:
        assert taken(memory, Client("ann"), shares) == AT_ONCE - KEPT
        assert [taken(memory, Client(name), shares) for name in ("ben", "eve", "dan")] == [1, 1, 0]
    with ExitStack() as shares:
        assert taken(memory, Client("ben"), shares) == AT_ONCE - KEPT, "all were given back"


def test_who_need_not_sign_in_has_all() -> None:
    memory = StatementMemory()
    with ExitStack() as shares:
        assert taken(memory, ANYONE, shares) == AT_ONCE


def test_a_refusal_says_who_runs_too_many() -> None:
    memory, ann = StatementMemory(), Client("ann")
    with ExitStack() as shares:
        taken(memory, ann, shares)
        with pytest.raises(LimitReachedError, match="ann runs as many"):
            shares.enter_context(memory.share("KQL", ann, waiting_seconds=0.01))
