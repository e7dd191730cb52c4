"""An endless stream: a generator program makes instance number 0, 1, 2, … when it is needed first."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from captime.streams.finite import GENERATOR, TARGET, Seeds
from captime.streams.protocol import Element, Instance
from captime.supervision.messages import Preparation

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
