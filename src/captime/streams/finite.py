"""Instances, and finite streams of them: each once in random order, as given, or drawn with replacement."""

import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np

from captime.errors import InvariantViolated, ScenarioError
from captime.supervision.messages import Fingerprint, Preparation

# What an instance, a place in the stream and a stream look like.


@dataclass(frozen=True, slots=True)
class Instance:
    """Something to solve.

    Attributes:
        name: Unique, shown to people; of a file the path as seen from the scenario (surrogateescape).
        path: The file, absolute; None if the instance is a value.
        value: What a function is given, or a program in place of a path; used where there is no path.
        digest: SHA-256 of the content; nothing for a generated instance, which is not known yet.
        fingerprint: By which a change of the file is noticed; None if there is no file, or not yet.
        preparation: The command that makes the file.
        answer: The known right answer.
    """

    name: str
    path: str | None = None
    value: Any = None
    digest: str = ""
    fingerprint: Fingerprint | None = None
    preparation: Preparation | None = None
    answer: bytes | None = None


@dataclass(frozen=True, slots=True)
class Element:
    """A place in the stream: every configuration meets this instance with this seed there.

    Attributes:
        position: Counted from 0.
        instance: What is to be solved.
        seed: For the program's own random choices.
    """

    position: int
    instance: Instance
    seed: int


class InstanceStream(Protocol):
    """A fixed, possibly endless sequence of instances and seeds."""

    @property
    def length(self) -> int | None:
        """How many positions there are; None for an endless stream."""
        ...

    @property
    def population(self) -> str:
        """`stream`: the distribution the instances were drawn from. `finite`: exactly these instances."""
        ...

    @property
    def n_instances(self) -> int | None:
        """How many different instances there are; None if they are made on demand."""
        ...

    def at(self, position: int) -> Element:
        """Return the instance and the seed of that position; the same whenever it is asked."""
        ...

    def describe(self) -> dict[str, object]:
        """Return what makes the stream what it is, in words that JSON knows; goes into the hash of the scenario."""
        ...


# Finite sets of instances: each once in a random order, as given, or drawn with replacement without end.

# Seeds by position: for the target program, and for the generator of instances, each from a generator of its own.
#
# They are keyed by the campaign's seed and the position, and by nothing else. The draws of captimes have another key,
# so that no program can guess from its seed how long it will be allowed to run.

TARGET = 0x74617267
"""Key of the seeds that target programs are given."""
GENERATOR = 0x67656E65
"""Key of the seeds that instance generators are given."""
ORDER = 0x6F726472
"""Key of the order of finite sets of instances."""

_BLOCK = 4096
_LARGEST = 2**31 - 1


def fresh_seed() -> int:
    """Draw the seed of a campaign that was given none, from the system's source of randomness.

    A seed that is the same for all, or that was chosen after a look at results, is no randomness: for any fixed seed
    there are configurations that suit its draws.
    """
    return secrets.randbelow(_LARGEST)


class Seeds:
    """Numbers from 1 to 2³¹ - 1, one per position; drawn in blocks, so that looking ahead does not change them.

    Args:
        key: What the seeds are for.
        seed: The campaign's.

    >>> Seeds(TARGET, 1).at(70_000) == Seeds(TARGET, 1).at(70_000) != Seeds(GENERATOR, 1).at(70_000)
    True
    """

    def __init__(self, key: int, seed: int) -> None:
        self._key = (key, seed)
        self._blocks: dict[int, list[int]] = {}

    def at(self, position: int) -> int:
        """Return the seed of that position."""
        block, offset = divmod(position, _BLOCK)
        if block not in self._blocks:
            rng = np.random.default_rng((*self._key, block))
            self._blocks[block] = rng.integers(1, _LARGEST, size=_BLOCK, endpoint=True).tolist()
        return self._blocks[block][offset]


Sampling = Literal["shuffle", "given", "replace"]
SAMPLINGS: tuple[str, ...] = get_args(Sampling)

BY_NAME = "by-name"
"""How a ledger says that instances were listed in the order of their names."""

# Draws with replacement are made this many at a time, so that the stream does not depend on how far one looked.


class FiniteStream:
    """A finite list of instances; of a group, one member counts per sample.

    Args:
        instances: The instances, as listed.
        sampling: `shuffle`: each once, in an order drawn from the seed. `given`: each once, as listed; then the list
            itself has to be in random order. `replace`: draws with replacement, without end.
        seed: The campaign's.
        groups: Which instances are variations of each other; None if all stand for themselves.
        known: Names of instances in the order of a stream begun earlier. They keep their positions, and instances that
            are new follow them: that is how a stream grows.
        seeds: With how many seeds each instance is among `instances`, under a name of its own each time.
    """

    def __init__(
        self,
        instances: Sequence[Instance],
        sampling: str = "shuffle",
        seed: int = 0,
        *,
        groups: Sequence[str] | None = None,
        known: Sequence[str] = (),
        seeds: int = 1,
    ) -> None:
        if not instances:
            raise ScenarioError("there is no instance; name at least one")
        if sampling not in SAMPLINGS:
            raise ScenarioError(f"sampling is {sampling!r}; there are {', '.join(SAMPLINGS)}")
        self.sampling = sampling
        self.seed = seed
        self.seeds = seeds
        self._instances = list(instances)
        self._groups = None if groups is None else list(groups)
        self._seeds = Seeds(TARGET, seed)
        members: dict[str, list[int]] = {}
        for index, name in enumerate(groups if groups is not None else (each.name for each in instances)):
            members.setdefault(name, []).append(index)
        self._members = list(members.values())
        self._draws: dict[int, list[int]] = {}
        # As they were listed before: those that are met, and variations of them, which are not.
        self._listed: list[int] = []
        self._order = [] if sampling == "replace" else self._fixed_order(known)

    @property
    def length(self) -> int | None:
        """See the protocol."""
        return None if self.sampling == "replace" else len(self._order)

    @property
    def population(self) -> str:
        """See the protocol."""
        return "finite" if self.sampling == "replace" else "stream"

    @property
    def n_instances(self) -> int | None:
        """See the protocol."""
        return len(self._instances)

    @property
    def instances(self) -> Sequence[Instance]:
        """All instances, in the order in which they were given."""
        return self._instances

    @property
    def has_answers(self) -> bool:
        """Whether the right answer of any instance is known."""
        return any(each.answer is not None for each in self._instances)

    def at(self, position: int) -> Element:
        """See the protocol."""
        if self.sampling == "replace":
            index = self._drawn(position)
        elif position < len(self._order):
            index = self._order[position]
        else:
            # Going round again would count instances twice and break every bound.
            raise InvariantViolated(f"position {position} was asked for, but the stream has {len(self._order)}")
        return Element(position, self._instances[index], self._seeds.at(position))

    def describe(self) -> dict[str, object]:
        """See the protocol. Instances stand in the order of the stream, so that longer streams show as extensions."""
        order = self._order if self.sampling != "replace" else range(len(self._instances))
        listed_order = list(dict.fromkeys([*self._listed, *order, *range(len(self._instances))]))
        listed = [self._instances[index] for index in listed_order]
        return {
            "sampling": self.sampling,
            "seed": self.seed,
            "list": [[each.name, each.digest] for each in listed],
            "answers": {each.name: each.answer.hex() for each in listed if each.answer is not None},
            "groups": None if self._groups is None else [self._groups[index] for index in listed_order],
            **({} if self.seeds == 1 else {"seeds": self.seeds}),
        }

    def listed_as(self, names: Sequence[str]) -> str | list[int]:
        """Tell in which order some of the instances were listed, for those who make the shuffled order again.

        Args:
            names: Their names, in the order of the stream.

        Returns:
            `by-name` if they were listed in the order of their names, else which of them was listed first, second, …
        """
        place = {name: index for index, name in enumerate(names)}
        listed = [place[each.name] for each in self._instances if each.name in place]
        by_name = sorted(range(len(names)), key=lambda index: names[index].encode("utf-8", "backslashreplace"))
        return BY_NAME if listed == by_name else listed

    def _fixed_order(self, known: Sequence[str]) -> list[int]:
        """One member of every group, each group once; what is known stays where it was."""
        place = {each.name: index for index, each in enumerate(self._instances)}
        missing = [name for name in known if name not in place]
        if missing:
            raise ScenarioError(
                f"instance {missing[0]!r} was part of the stream and is gone; put it back, or begin another campaign"
            )
        self._listed = [place[name] for name in known]
        group = {index: number for number, members in enumerate(self._members) for index in members}
        # Of a group the first that was listed is met; meeting a variation of it as well would count one sample twice.
        met: dict[int, int] = {}
        for index in self._listed:
            met.setdefault(group[index], index)
        before = list(met.values())
        new = [members for number, members in enumerate(self._members) if number not in met]
        if self.sampling == "given":
            return before + [members[0] for members in new]
        rng = np.random.default_rng((ORDER, self.seed, len(before)))
        shuffled = [new[index] for index in rng.permutation(len(new))]
        return before + [members[int(rng.integers(len(members)))] for members in shuffled]

    def _drawn(self, position: int) -> int:
        block, offset = divmod(position, _BLOCK)
        if block not in self._draws:
            rng = np.random.default_rng((ORDER, self.seed, block))
            # Fractions for the member within the group: one call each, whatever the sizes of the groups.
            groups, fractions = rng.integers(len(self._members), size=_BLOCK), rng.random(_BLOCK)
            self._draws[block] = [
                self._members[group][int(fraction * len(self._members[group]))]
                for group, fraction in zip(groups.tolist(), fractions.tolist(), strict=True)
            ]
        return self._draws[block][offset]


# An endless stream: a generator program makes instance number 0, 1, 2, … when it is needed first.

PLACEHOLDERS = ("k", "seed", "output")
"""What a generator's command may ask for: the number, a random seed of its own, the path of the file to write."""


class GeneratedStream:
    """Instances made on demand; a file that was made is kept, and found again by later runs.

    Args:
        command: The generator's argv, as written. `{k}` is the number of the instance, `{seed}` a random seed that
            depends on it and on the campaign's seed, `{output}` the file to write; without it, stdout is the file.
        folder: Where the files are kept.
        seed: The campaign's.
        first: Number of the first instance.
        suffix: How the names of the files end.
        timeout: Wall-clock seconds that making one may take.
        argv: The same, with programs and files found on this machine; the command itself if left out.
        identity: What else makes the generator what it is, such as the digests of its program.
        answers: Known answers by number.
    """

    length = None
    population = "stream"
    n_instances = None

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        seed: int = 0,
        *,
        first: int = 0,
        suffix: str = "",
        timeout: float = 60.0,
        argv: Sequence[str] | None = None,
        identity: Mapping[str, str] | None = None,
        answers: Mapping[str, bytes] | None = None,
    ) -> None:
        self._command = tuple(command)
        self._argv = tuple(command if argv is None else argv)
        self._first = first
        self._suffix = suffix
        self._timeout = timeout
        self._identity = dict(identity or {})
        self._answers = dict(answers or {})
        self._seed = seed
        self._targets = Seeds(TARGET, seed)
        self._seeds = Seeds(GENERATOR, seed)
        # Files of another generator, or of another seed, must not be taken for this one's.
        own = hashlib.sha256(json.dumps([self._command, self._identity, seed, suffix]).encode()).hexdigest()[:12]
        self.folder = folder / own

    @property
    def has_answers(self) -> bool:
        """Whether the right answer of any instance is known."""
        return bool(self._answers)

    def at(self, position: int) -> Element:
        """See the protocol."""
        number = str(self._first + position)
        path = os.path.join(self.folder, number + self._suffix)  # noqa: PTH118 (names of any bytes)
        values = {"{k}": number, "{seed}": str(self._seeds.at(position)), "{output}": "{part}"}
        argv = tuple(_filled(word, values) for word in self._argv)
        to_stdout = not any("{output}" in word for word in self._command)
        instance = Instance(
            name=number,
            path=path,
            preparation=Preparation(argv, path, to_stdout, self._timeout),
            answer=self._answers.get(number),
        )
        return Element(position, instance, self._targets.at(position))

    def describe(self) -> dict[str, object]:
        """See the protocol."""
        return {
            "sampling": "generator",
            "seed": self._seed,
            "generator": list(self._command),
            "programs": self._identity,
            "first": self._first,
            "suffix": self._suffix,
            "timeout": self._timeout,
            "answers": {name: answer.hex() for name, answer in sorted(self._answers.items())},
        }


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word
