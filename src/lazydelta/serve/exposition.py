"""Numbers as text for Prometheus.

Contract: each family once, with its help and its kind before its samples; families without samples are left
out. Spec: Prometheus, "Text-based format", version 0.0.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Labels = tuple[tuple[str, str], ...]


class Exposition:
    """Collects the lines."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def text(self) -> str:
        """All of them."""
        return "\n".join(self._lines) + "\n"

    def counter(self, name: str, told: str, values: Mapping[Labels, float]) -> None:
        """What only grows."""
        assert name.endswith("_total"), name
        self._family(name, "counter", told, sorted(values.items()))

    def gauge(self, name: str, told: str, value: float) -> None:
        """What goes up and down."""
        self.gauges(name, told, [((), value)])

    def gauges(self, name: str, told: str, values: Iterable[tuple[Labels, float]]) -> None:
        """The same by labels."""
        self._family(name, "gauge", told, values)

    def histogram(
        self,
        name: str,
        told: str,
        bounds: Sequence[float],
        counts: Mapping[Labels, Sequence[int]],
        sums: Mapping[Labels, float],
    ) -> None:
        """Counts below each bound, and beyond the last; Prometheus wants them added up."""
        if counts:
            self._head(name, "histogram", told)
        for labels, found in sorted(counts.items()):
            so_far = 0
            for bound, count in zip((*bounds, None), found, strict=True):
                so_far += count
                upper = "+Inf" if bound is None else _number(bound)
                self._sample(f"{name}_bucket", (*labels, ("le", upper)), so_far)
            self._sample(f"{name}_sum", labels, sums[labels])
            self._sample(f"{name}_count", labels, so_far)

    def _family(self, name: str, kind: str, told: str, values: Iterable[tuple[Labels, float]]) -> None:
        found = list(values)
        if found:
            self._head(name, kind, told)
        for labels, value in found:
            self._sample(name, labels, value)

    def _head(self, name: str, kind: str, told: str) -> None:
        self._lines += [f"# HELP {name} {told}", f"# TYPE {name} {kind}"]

    def _sample(self, name: str, labels: Labels, value: float) -> None:
        inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
        self._lines.append(f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
