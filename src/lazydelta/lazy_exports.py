"""Names that a package exports, each imported at its first use: importing the package loads nothing."""

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_exports(package: str, names_of: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package; `names_of` has the exported names of each of its modules."""
    homes = {name: f"{package}.{module}" for module, names in names_of.items() for name in names.split()}

    def look_up(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return look_up
