"""A strict reader of Prometheus' text format: whatever the format forbids is an error.

Spec: Prometheus, "Exposition formats", "Text-based format"; of conventions: counters end in `_total`, every
family has its help and its kind, histograms are cumulative.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_HELP = re.compile(rf"# HELP ({_NAME}) (\S.*)\Z")
_TYPE = re.compile(rf"# TYPE ({_NAME}) (counter|gauge|histogram)\Z")
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)\Z")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|\Z)')
Labels = frozenset[tuple[str, str]]


class Family(NamedTuple):
    """Samples of one name."""

    kind: str
    help: str
    samples: dict[tuple[str, Labels], float]


def parsed(text: str) -> dict[str, Family]:
    """The families by name."""
    assert text.endswith("\n")
    families: dict[str, Family] = {}
    told: tuple[str, str] | None = None
    current = ""
    for line in text[:-1].split("\n"):
        if found := _HELP.match(line):
            assert told is None and found[1] not in families, line
            told = (found[1], found[2])
        elif found := _TYPE.match(line):
            assert told is not None and told[0] == found[1], line
            current = found[1]
            families[current] = Family(found[2], told[1], {})
            assert (found[2] == "counter") == current.endswith("_total"), line
            told = None
        else:
            assert told is None, line
            _add(families[current], current, line)
    assert told is None
    for name, family in families.items():
        assert family.samples, name
        if family.kind == "histogram":
            _check_histogram(name, family)
    return families


def _add(family: Family, name: str, line: str) -> None:
    found = _SAMPLE.match(line)
    assert found is not None, line
    endings = ("_bucket", "_sum", "_count") if family.kind == "histogram" else ("",)
    assert found[1] in [name + ending for ending in endings], line
    key = (found[1], _labels(found[2] or ""))
    assert key not in family.samples, line
    value = float(found[3])
    assert family.kind == "gauge" or value >= 0, line
    family.samples[key] = value


def _labels(text: str) -> Labels:
    found, at = [], 0
    while at < len(text):
        label = _LABEL.match(text, at)
        assert label is not None, text
        found.append((label[1], re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], label[2])))
        at = label.end()
    assert len({name for name, _ in found}) == len(found), text
    return frozenset(found)


def _check_histogram(name: str, family: Family) -> None:
    rest: dict[Labels, list[tuple[float, float]]] = {}
    for (sample, labels), value in family.samples.items():
        if sample == f"{name}_bucket":
            upper = dict(labels)["le"]
            others = frozenset(label for label in labels if label[0] != "le")
            rest.setdefault(others, []).append((float(upper.replace("+Inf", "inf")), value))
    for labels, buckets in rest.items():
        assert buckets == sorted(buckets), (name, labels)
        assert [count for _, count in buckets] == sorted(count for _, count in buckets), (name, labels)
        assert buckets[-1] == (float("inf"), family.samples[f"{name}_count", labels]), (name, labels)
        assert family.samples[f"{name}_sum", labels] >= 0
