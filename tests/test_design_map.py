"""The design map stays true: what it names exists, and no concept is left without an answer."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAP = ROOT / "docs" / "design-map.md"
PLACE = re.compile(r"`((?:src|tests|bench|docs|clients)/[\w./-]+)(?:::(\w+))?`")
ROW = re.compile(r"^\|(?P<concept>.+?)\|(?P<rest>.+)\|$")
ANSWERS = ("later", "not needed")
HEADINGS = ("concept", "field", "error", "metric")
# What a reader of the design documents would look for by name.
CONCEPTS = re.findall(
    r"\S+",
    """
LazyDeltaScanner ReverseCommitReader RemoveSet PredicateEvaluator StreamingOutput FeatureTripwire
LogicalFileView PlanFile MetadataSource ReversePlanner AzureDeltaLogClient retention_floor_guard
choose_floor_within_retention emitted_paths windowing tombstones overrides hybrid smart_scan matrix
LazyScanConfig ScanStrategy SidecarAwareProvider manifest LazyRecordBatchIterator
get_stats_for_files OrderedKeyIterator RowLoaderIterator PredicateFilterIterator LimitIterator
Materializer continuation pushdown FFI|ABI C# Flight Kusto SidecarCache commits_scanned
files_emitted fallback_triggered remove_set_size time_to_first_file_ms predicate limit strategy
batch_size remove_set_memory_limit enable_fallback commit_read_parallelism
checkpoint_row_groups_per_batch theorem.1 theorem.2 theorem.3 timeout missing _event_hour
""",
)


def places() -> list[tuple[str, str]]:
    """Every path that the map names, with the name after `::` or nothing."""
    return sorted(set(PLACE.findall(MAP.read_text("utf-8"))))


def rows() -> list[tuple[str, str]]:
    """Concept and answer of every row, headings left out."""
    found = []
    for line in MAP.read_text("utf-8").splitlines():
        row = ROW.match(line)
        if row and not set(line) <= set("|- ") and row["concept"].strip() not in HEADINGS:
            found.append((row["concept"].strip(), row["rest"]))
    return found


def test_every_place_that_the_map_names_exists() -> None:
    found = places()
    assert len(found) > 100
    missing = [path for path, _ in found if not (ROOT / path).exists()]
    assert missing == []
    assert [(path, name) for path, name in found if name and name not in names_of(path)] == []


def test_every_concept_has_a_place_or_a_reason() -> None:
    silent = [
        concept for concept, rest in rows() if not PLACE.search(rest) and not rest.strip().startswith(ANSWERS)
    ]
    assert silent == []


def test_what_is_not_needed_says_why() -> None:
    bare = [
        concept
        for concept, rest in rows()
        if rest.strip().startswith("not needed") and not rest.partition("|")[2].strip()
    ]
    assert bare == []


def test_every_concept_of_the_design_documents_is_in_the_map() -> None:
    listed = "\n".join(text for text, _ in rows())
    assert [concept for concept in CONCEPTS if not re.search(concept, listed, re.IGNORECASE)] == []


@cache
def names_of(path: str) -> frozenset[str]:
    """What a module defines at its top level."""
    names: set[str] = set()
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return frozenset(names)
