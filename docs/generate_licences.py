"""Write docs/licences.md: the licence of everything that an install brings along.

    python docs/generate_licences.py

Contract: what stands in the installed distributions' own metadata, nothing looked up. The page lists what an
install of lazydelta with every extra asks for, by way of the dependencies' own dependencies; what only tests
and builds need is not handed to anybody and is not listed.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

PAGE = Path(__file__).parent / "licences.md"
ROOT = "lazydelta"
_HEAD = """# Licences of dependencies

What an install of lazydelta brings along, with every extra, and under which licence, as each package tells.
Written by `python docs/generate_licences.py`; a test compares. lazydelta itself is under the Apache License
2.0. Java's parts of the Spark pipeline (Spark, Delta, Hadoop) come with pyspark or are fetched by it, and are
under the Apache License 2.0, too.

| package | licence | asked for by |
|---|---|---|
"""
_CLASSIFIER = "License :: OSI Approved :: "
_LONG = 60  # some packages put the whole text there


def page() -> str:
    """The page as it should be."""
    rows = sorted(_needed().items(), key=lambda item: item[0].lower())
    return _HEAD + "".join(
        f"| {name} | {licence_of(distribution(name))} | {', '.join(sorted(by))} |\n" for name, by in rows
    )


def licence_of(found: Distribution) -> str:
    """The licence as the package tells it."""
    about = found.metadata
    expression = about.get("License-Expression")
    if expression:
        return str(expression)
    told = [
        str(line).removeprefix(_CLASSIFIER)
        for line in about.get_all("Classifier") or ()
        if str(line).startswith(_CLASSIFIER)
    ]
    text = str(about.get("License") or "").strip()
    if text and len(text) <= _LONG and "\n" not in text and "dual" not in text.lower():
        return text
    return ", ".join(told) or "see the package"


def _needed() -> dict[str, set[str]]:
    """Every package that is asked for, and by whom."""
    asked: dict[str, set[str]] = {}
    waiting = [(ROOT, True)]
    seen: set[str] = set()
    while waiting:
        name, with_extras = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for wanted in distribution(name).requires or ():
            needed = _applies(wanted, with_extras=with_extras)
            if needed is None:
                continue
            asked.setdefault(needed, set()).add(name)
            waiting.append((needed, False))
    return asked


def _applies(requirement: str, *, with_extras: bool) -> str | None:
    """The package's own name where the requirement holds here; None where it does not, or nobody has it."""
    text, _, marker = requirement.partition(";")
    if "extra" in marker and not with_extras:
        return None
    if re.search(
        r"(sys_platform|platform_system|os_name)\s*==\s*['\"](win|Windows|nt|darwin|Darwin)", marker
    ):
        return None
    name = re.match(r"[A-Za-z0-9._-]+", text)
    assert name is not None, requirement
    try:
        return str(distribution(name[0]).metadata["Name"])
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE}", file=sys.stderr)
