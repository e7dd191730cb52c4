"""The stream, made again: which instance and which seed every position has, from the scenario and its seed.

The rules are those of docs/ledger.md, and are written here a second time on purpose. A list of instances stands in
the scenario in the order of the stream. For a shuffled one that order follows from the seed and from the order in which
the instances were listed, which is on record too (by name for files that a pattern found).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from captime.errors import LedgerDamaged
from captime.ledger.rows import SampleRow

_TARGET, _ORDER, _BLOCK = 0x74617267, 0x6F726472, 4096
_LARGEST = 2**31 - 1
_BY_NAME = "by-name"
_ENDLESS = ("replace", "generator")


@dataclass(slots=True)
class Stream:
    """Instances and seeds by position.

    Args:
        section: What the scenario says about instances.
        seed: The campaign's.
        length: How many positions there were at first; None if there is no end of them.
        listed: In which order the instances were listed; None if it is not on record.

    Attributes:
        recomputed: Whether the order of all instances was made again from the seed.
    """

    section: Mapping[str, Any]
    seed: int
    length: int | None
    listed: object = None
    recomputed: bool = True
    _order: list[tuple[str, str]] = field(default_factory=list)
    _entries: list[tuple[str, str]] = field(default_factory=list)
    _groups: list[str] = field(default_factory=list)
    _seeds: dict[int, list[int]] = field(default_factory=dict)
    _drawn: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.section.get("seed") != self.seed:
            raise LedgerDamaged(
                f"the instances are drawn with seed {self.section.get('seed')}, but the scenario's seed is {self.seed}"
            )
        entries = self._entries = _entries(self.section.get("list"))
        if self.sampling in _ENDLESS:
            return
        length = len(entries) if self.length is None else self.length
        if not 0 <= length <= len(entries):
            raise LedgerDamaged(f"the stream has {length} positions, but the scenario lists {len(entries)} instances")
        groups = self.section.get("groups")
        self._groups = list(groups) if isinstance(groups, list) else []
        self._append(entries, length, self.listed, self._groups or None)

    @property
    def sampling(self) -> str:
        """How instances are drawn."""
        return str(self.section.get("sampling"))

    def grow(self, facts: Mapping[str, Any], row: int) -> None:
        """Take in instances that were added at the end."""
        entries, length = _entries(facts.get("list")), int(facts["length"])
        added = length - len(self._order)
        if self.sampling in _ENDLESS or not 0 <= added <= len(entries):
            raise LedgerDamaged(
                f"row {row} makes the stream {length} positions long, but adds {len(entries)} instances to "
                f"{len(self._order)}"
            )
        known, groups = self.section.get("groups"), facts.get("groups")
        if known is None:
            self._append(entries, added, facts.get("listed"), None)
        elif isinstance(known, list) and isinstance(groups, list) and len(groups) == len(entries):
            self._append(entries, added, facts.get("listed"), groups, frozenset(self._groups))
            self._groups += groups
        else:
            # An older ledger: which groups these belong to is not on record.
            self.recomputed = False
            self._order += entries[:added]

    def _append(
        self,
        entries: list[tuple[str, str]],
        count: int,
        listed: object,
        groups: Sequence[str] | None,
        met: frozenset[str] = frozenset(),
    ) -> None:
        """The next positions, after making sure that their order is what the seed gives.

        Args:
            entries: Instances, those that are met first.
            count: How many of them are met.
            listed: In which order they were listed.
            groups: The group of each.
            met: Groups that were there before; another member of one of them is not met.
        """
        before = len(self._order)
        names = [name for name, _ in (*self._order, *entries)]
        if len(set(names)) < len(names):
            raise LedgerDamaged("the stream names an instance twice: one that is met again is no independent sample")
        self._order += entries[:count]
        if self.sampling == "given":
            return
        places = _places(entries, listed)
        if places is None:
            # An older ledger: if one of the usual orders gives exactly this one, that was it.
            guesses = (
                _shuffled(entries, _new(guess, groups, met), groups, self.seed, before)
                for guess in (_by_name(entries), _by_number(entries))
            )
            self.recomputed = self.recomputed and any(guess[:count] == entries[:count] for guess in guesses)
            return
        if _shuffled(entries, _new(places, groups, met), groups, self.seed, before)[:count] != entries[:count]:
            raise LedgerDamaged(
                f"the scenario's instances from position {before} on stand in another order than the seed gives"
            )

    def check(self, row: int, sample: SampleRow) -> None:
        """Refuse a position whose instance or seed is not what the scenario gives."""
        name, digest = self._at(row, sample.position)
        if (sample.instance, sample.digest) != (name, digest):
            differs = f"instance {sample.instance!r}" if sample.instance != name else "another content"
            raise LedgerDamaged(
                f"row {row} has {differs} at position {sample.position}, where the scenario and its seed give {name!r}"
            )
        seed = self._seed(sample.position)
        if sample.seed != seed:
            raise LedgerDamaged(
                f"row {row} gives position {sample.position} the seed {sample.seed}, but the scenario's seed gives "
                f"{seed}"
            )

    def _at(self, row: int, position: int) -> tuple[str, str]:
        if self.sampling == "generator":
            return str(int(self.section.get("first", 0)) + position), ""
        if self.sampling == "replace":
            return self._entries[self._replaced(position, self._entries)]
        if position >= len(self._order):
            raise LedgerDamaged(f"row {row} runs on position {position}, but the stream has {len(self._order)}")
        return self._order[position]

    def _seed(self, position: int) -> int:
        block, offset = divmod(position, _BLOCK)
        if block not in self._seeds:
            rng = np.random.default_rng((_TARGET, self.seed, block))
            self._seeds[block] = rng.integers(1, _LARGEST, size=_BLOCK, endpoint=True).tolist()
        return self._seeds[block][offset]

    def _replaced(self, position: int, entries: list[tuple[str, str]]) -> int:
        """Which entry is drawn, with replacement: a group first, then one of its members."""
        block, offset = divmod(position, _BLOCK)
        if block not in self._drawn:
            groups = self.section.get("groups")
            members = _members(range(len(entries)), groups if isinstance(groups, list) else None)
            rng = np.random.default_rng((_ORDER, self.seed, block))
            which, fractions = rng.integers(len(members), size=_BLOCK), rng.random(_BLOCK)
            self._drawn[block] = [
                members[group][int(fraction * len(members[group]))]
                for group, fraction in zip(which.tolist(), fractions.tolist(), strict=True)
            ]
        return self._drawn[block][offset]


def _entries(told: Any) -> list[tuple[str, str]]:
    return [(str(name), str(digest)) for name, digest in told] if isinstance(told, list) else []


def _by_name(entries: list[tuple[str, str]]) -> list[int]:
    """Which entry comes first, second, … if they are listed by name."""
    return sorted(range(len(entries)), key=lambda index: entries[index][0].encode("utf-8", "backslashreplace"))


def _by_number(entries: list[tuple[str, str]]) -> list[int]:
    """Which entry comes first, second, … if numbers in their names are compared as numbers."""
    parts = [re.split(r"(\d+)", name) for name, _ in entries]
    keys = [[(int(part), "") if part.isdecimal() else (-1, part) for part in each] for each in parts]
    return sorted(range(len(entries)), key=keys.__getitem__)


def _places(entries: list[tuple[str, str]], listed: object) -> list[int] | None:
    """Which entry was listed first, second, …; None if it is not on record."""
    if listed == _BY_NAME:
        return _by_name(entries)
    if not isinstance(listed, list):
        return None
    if sorted(listed) != list(range(len(entries))):
        raise LedgerDamaged(f"the order in which {len(entries)} instances were listed is no order of as many")
    return [int(index) for index in listed]


def _members(indices: Sequence[int], groups: Sequence[str] | None) -> list[list[int]]:
    """Which entries are variations of each other, in the order in which they were listed."""
    found: dict[object, list[int]] = {}
    for index in indices:
        found.setdefault(index if groups is None else groups[index], []).append(index)
    return list(found.values())


def _new(places: list[int], groups: Sequence[str] | None, met: frozenset[str]) -> list[int]:
    """Those whose group was not there before."""
    return places if groups is None else [index for index in places if groups[index] not in met]


def _shuffled(
    entries: list[tuple[str, str]], places: list[int], groups: Sequence[str] | None, seed: int, before: int
) -> list[tuple[str, str]]:
    """One entry of every group, in the order that the seed gives."""
    members = _members(places, groups)
    rng = np.random.default_rng((_ORDER, seed, before))
    order = [members[index] for index in rng.permutation(len(members)).tolist()]
    return [entries[each[int(rng.integers(len(each)))]] for each in order]
