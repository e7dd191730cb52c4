"""Which program exactly: the files behind a command, found once, with digests for identity and fingerprints for guards.

A program that is replaced half-way would mix two programs in one certificate. So every file that a command names (the
executable, a script, the interpreter behind a `#!` line) is hashed when the campaign starts and looked at before and
after every run. Shared libraries are not followed.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from captime.errors import ScenarioError
from captime.streams.contents import digest_of_file, fingerprint_of
from captime.supervision.messages import Fingerprint


@dataclass(frozen=True, slots=True)
class FoundCommand:
    """A command with its files found on this machine.

    Attributes:
        words: The command; the executable and the files it names as absolute paths.
        digests: SHA-256 of each of these files, by the word that named it.
        fingerprints: By which a change of one of them is noticed.
        written: The command as it was written.
    """

    words: tuple[str, ...]
    digests: dict[str, str]
    fingerprints: tuple[Fingerprint, ...]
    written: tuple[str, ...]

    @property
    def template(self) -> tuple[str, ...]:
        """The words with their placeholders; braces in paths that were found stand for themselves."""
        return tuple(
            word if word == written else word.replace("{", "{{").replace("}", "}}")
            for word, written in zip(self.words, self.written, strict=True)
        )


def find_command(words: Sequence[str], folder: Path, environment: Mapping[str, str], where: str) -> FoundCommand:
    """Find the executable and the files that a command names.

    Args:
        words: The command, with placeholders.
        folder: Relative paths are seen from here. A word without placeholders that is the name of a file there becomes
            its absolute path, because the program will run in a directory of its own.
        environment: Its `PATH` is searched.
        where: Where the command is written, for messages.
    """
    files: dict[str, Path] = {words[0]: _executable(words[0], folder, environment, where)}
    for word in words[1:]:
        if "{" not in word and not word.startswith("-") and word not in files and (folder / word).is_file():
            files[word] = folder / word
    for word, path in list(files.items()):
        behind = interpreter_of(path)
        if behind is not None:
            files.setdefault(f"#! of {word}", behind)
    absolute = {word: os.path.abspath(path) for word, path in files.items()}  # noqa: PTH100 (links are kept as named)
    digests = {word: digest_of_file(Path(path)) for word, path in absolute.items()}
    by_path = {path: digests[word] for word, path in absolute.items()}
    return FoundCommand(
        words=tuple(absolute.get(word, word) for word in words),
        digests=digests,
        fingerprints=tuple(fingerprint_of(path, digest) for path, digest in by_path.items()),
        written=tuple(words),
    )


def interpreter_of(script: Path) -> Path | None:
    """Return the program behind a script's `#!` line, `env` seen through; None if it is no script."""
    with script.open("rb") as stream:
        first = stream.readline(4096)
    if not first.startswith(b"#!"):
        return None
    words = [os.fsdecode(word) for word in first[2:].split()]
    if words and os.path.basename(words[0]) == "env":  # noqa: PTH119 (a word of any bytes)
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    found = shutil.which(words[0]) if words else None
    return None if found is None else Path(found)


def _executable(word: str, folder: Path, environment: Mapping[str, str], where: str) -> Path:
    if "{" in word:
        raise ScenarioError(
            f"{where}: the program itself is {word!r}; expected its name without placeholders. A configuration that is "
            "another program has a command of its own: name = { command = [...] }"
        )
    path = os.fspath(folder / word) if os.sep in word else word
    found = shutil.which(path, path=environment.get("PATH", os.defpath))
    if found is None and os.sep not in word and (folder / word).is_file():
        raise ScenarioError(f"{where}: there is no program {word!r} on the PATH; the file beside it is ./{word}")
    if found is None and os.path.isfile(path):  # noqa: PTH113 (a word of any bytes)
        raise ScenarioError(f"{where}: {path!r} is not executable; run chmod +x, or name its interpreter first")
    if found is None:
        near = get_close_matches(word, _programs(environment), n=1, cutoff=0.75) if os.sep not in word else []
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ScenarioError(
            f"{where}: there is no program {word!r}; {hint}install it, or give its path as seen from the scenario"
        )
    return Path(found)


def _programs(environment: Mapping[str, str]) -> list[str]:
    """Names on the PATH, for a guess at what was meant."""
    names: set[str] = set()
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isdir(folder):  # noqa: PTH112 (a word of any bytes)
            names.update(os.listdir(folder))  # noqa: PTH208 (same)
    return sorted(names)
