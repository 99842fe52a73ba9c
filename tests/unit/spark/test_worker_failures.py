"""What a failure on an executor becomes on the driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from lazydelta.errors import AccessDeniedError, LazyDeltaError, StorageError
from lazydelta.sidecar import SidecarConfig
from lazydelta.spark.failures import explain
from lazydelta.spark.sidecar_job import NotForSparkError, worker_failure
from lazydelta.spark.sidecar_task import UnsortedRowsError
from lazydelta.storage import LocalStorage, ObjectNotFoundError
from lazydelta.upkeep.build_plan import BuildPlan, plan_build
from tests.support.table_builder import TableBuilder


@pytest.fixture
def plan(tmp_path: Path) -> BuildPlan:
    table = TableBuilder(tmp_path).commit(["a"]).checkpoint()
    return plan_build(LocalStorage(str(table.path), f"file://{table.path}"), SidecarConfig())


def as_spark_tells_it(error: Exception) -> Exception:
    """A worker's traceback inside the message of the job's failure."""
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    trace = f'  File "worker.py", line 1, in main\n    process()\n{name}: {error}'
    return Exception(
        f"Job aborted due to stage failure\nTraceback (most recent call last):\n{trace}\n\n\tat org.x"
    )


@pytest.mark.parametrize(
    ("error", "branch"),
    [
        (StorageError("the store is full", "s3://x", "make room"), StorageError),
        (AccessDeniedError("refused", "s3://x", "sign in"), AccessDeniedError),
        (ObjectNotFoundError("gone", "s3://x", "look again"), StorageError),
        (LazyDeltaError("odd", "here", "mend it"), LazyDeltaError),
    ],
)
def test_our_own_errors_come_back_as_themselves(
    plan: BuildPlan, error: LazyDeltaError, branch: type[LazyDeltaError]
) -> None:
    found = worker_failure(as_spark_tells_it(error), plan)
    assert type(found) is branch
    assert found.args == error.args


@pytest.mark.parametrize(
    "error",
    [UnsortedRowsError("rows are not sorted"), ModuleNotFoundError("No module named 'lazydelta'")],
)
def test_what_the_local_feeder_can_do_is_left_to_it(plan: BuildPlan, error: Exception) -> None:
    assert isinstance(worker_failure(as_spark_tells_it(error), plan), NotForSparkError)


def test_anything_else_is_told_in_words(plan: BuildPlan) -> None:
    found = worker_failure(as_spark_tells_it(ValueError("bad")), plan)
    assert isinstance(found, LazyDeltaError)
    assert "the Spark job that builds the sidecar failed" in found.what


@pytest.mark.parametrize(
    ("text", "branch"),
    [
        (
            'AbfsRestOperationException: Operation failed: "Busy", 503, PUT, http://x/y, rId: , , ""',
            StorageError,
        ),
        (
            'AccessDeniedException: Operation failed: "No", 403, PUT, http://x/y, rId: , , ""',
            AccessDeniedError,
        ),
        ('AbfsRestOperationException: Operation failed: "Odd", 400, PUT, http://x/503, rId', LazyDeltaError),
    ],
)
def test_what_azure_answered_decides_the_branch(text: str, branch: type[LazyDeltaError]) -> None:
    found = explain(Exception(text), "the batch", "abfss://lake@account/t")
    assert type(found) is branch
    assert found.what == f"the batch failed: {text}"
    assert "run it again" in found.fix
