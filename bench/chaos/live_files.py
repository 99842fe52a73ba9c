"""The live files of one version, by hour; versions share the hours in which they do not differ.

Why: thousands of answers are held against hundreds of versions of ten thousand files each.
Contract: never changed once made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from tests.support.keys import Action, FileKey

_Hours = dict[str, dict[FileKey, Action]]


class LiveFiles:
    """Key and `add` of every live file."""

    def __init__(self, hours: _Hours | None = None, places: dict[FileKey, str] | None = None) -> None:
        self._hours: _Hours = {} if hours is None else hours
        self._places = {} if places is None else places  # the hour of every key ever; shared by all versions

    def __len__(self) -> int:
        return sum(map(len, self._hours.values()))

    def __contains__(self, key: FileKey) -> bool:
        return key in self._hours.get(self._places.get(key, ""), {})

    def __getitem__(self, key: FileKey) -> Action:
        return self._hours[self._places[key]][key]

    def __iter__(self) -> Iterator[FileKey]:
        return (key for hour in self._hours.values() for key in hour)

    def items(self) -> Iterator[tuple[FileKey, Action]]:
        """Every file."""
        return (item for hour in self._hours.values() for item in hour.items())

    def of_hour(self, hour: str) -> Mapping[FileKey, Action]:
        """The files of one hour."""
        return self._hours.get(hour, {})

    def keys_of(self, keeps: Callable[[str], bool]) -> set[FileKey]:
        """The keys of all hours that are kept."""
        return set().union(*(files for hour, files in self._hours.items() if keeps(hour)))

    def changed(
        self, *, removed: Iterable[FileKey], added: Iterable[tuple[FileKey, str, Action]]
    ) -> LiveFiles:
        """Another version: without some, then with others."""
        hours, mine = dict(self._hours), set()

        def own(hour: str) -> dict[FileKey, Action]:
            if hour not in mine:
                hours[hour] = dict(hours.get(hour, {}))
                mine.add(hour)
            return hours[hour]

        for key in removed:
            if key in self._places:
                own(self._places[key]).pop(key, None)
        for key, hour, action in added:
            assert self._places.setdefault(key, hour) == hour, key
            own(hour)[key] = action
        return LiveFiles(hours, self._places)
