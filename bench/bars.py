"""A picture of a few named figures: bars beside each other, each group with a scale of its own.

Why: not every benchmark needs a drawing of its own kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.pages import RESULTS


def save_bars(name: str, groups: Mapping[str, Mapping[str, float]], *, folder: Path = RESULTS) -> Path:
    """Write `name.png`: a drawing for each group, a bar for each figure of it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    heights = [max(1, len(group)) for group in groups.values()]
    figure, places = plt.subplots(
        len(groups),
        1,
        figsize=(9, 1.2 * len(groups) + 0.4 * sum(heights)),
        gridspec_kw={"height_ratios": heights},
        squeeze=False,
        layout="constrained",
    )
    for (title, group), place in zip(groups.items(), places[:, 0], strict=True):
        drawn = place.barh(list(group), list(group.values()), color="tab:orange")
        place.bar_label(drawn, fmt="{:,.2f}", padding=3)
        place.margins(x=0.15)
        place.invert_yaxis()
        place.set_title(title, loc="left", fontsize=10)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path
