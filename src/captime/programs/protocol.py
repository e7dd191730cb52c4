"""What a program looks like: it turns requests into launches, and reports into outcomes."""

import math
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from captime.errors import ScenarioError
from captime.runs import RunOutcome, RunRequest
from captime.streams.files import digest_of_file, fingerprint_of
from captime.streams.finite import Instance
from captime.supervision.messages import Clock, Fingerprint, FunctionCall, Launch, Preparation, Report, StopValue

# One configuration of the program: a name and settings, or another program altogether.

Setting = str | int | float | bool | list[str]
"""A value of a setting; a list is zero or more words of the command line."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What distinguishes one candidate from the others.

    Attributes:
        name: Unique, shown to people.
        settings: Values by name; a setting that is not active is absent.
        command: A command of its own, in place of the target's: choosing among programs is choosing a configuration.
        answer: Its own pattern of a right answer; None for the target's.
        exit_codes: Its own accepted exit codes; None for the target's.
        given: What a function is called with in place of the settings, where JSON has no word for it, such as an array
            of NumPy; None for the settings themselves.
        origin: Where it came from: `listed`, `default`, `favourite`, `random` or `model`.
    """

    name: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    command: tuple[str, ...] | None = None
    answer: str | None = None
    exit_codes: tuple[int, ...] | None = None
    origin: str = "listed"
    given: Mapping[str, Any] | None = None

    def describe(self) -> dict[str, Any]:
        """Everything but the origin, in words that JSON knows."""
        own = {"command": self.command, "answer": self.answer, "exit_codes": self.exit_codes}
        return {
            "name": self.name,
            "settings": dict(self.settings),
            **{
                key: list(value) if isinstance(value, tuple) else value
                for key, value in own.items()
                if value is not None
            },
        }


class Program(Protocol):
    """The program to be configured, as far as an executor has to know it."""

    @property
    def repeatable(self) -> bool:
        """Whether the same request with the same seed has the same law of runtimes.

        It has if the seed is part of the command, if the program is deterministic, or if the user says so. Otherwise
        runs that were stopped or lost are never tried again.
        """
        ...

    def launch(self, request: RunRequest, number: int, tag: str) -> Launch:
        """Return what a slot supervisor has to do for this request."""
        ...

    def judge(self, request: RunRequest, report: Report) -> RunOutcome:
        """Return what the report means; only a positive answer in time counts as one."""
        ...

    def describe(self) -> dict[str, object]:
        """Return what makes the program what it is, in words that JSON knows; goes into the hash of the scenario."""
        ...

    def command_line(self, config: int, instance: str, seed: int) -> list[str]:
        """Return the command of a configuration, for people to paste."""
        ...

    def how_started(self, config: int, instance: Instance, seed: int) -> str:
        """Return a sentence without its full stop that says how a run is started: the command, or the call."""
        ...


class GrowingProgram(Program, Protocol):
    """A program that takes more configurations on its way."""

    def extend(self, configurations: Sequence[Configuration]) -> None:
        """These join, with the next indices."""
        ...


@runtime_checkable
class SeedTaker(GrowingProgram, Protocol):
    """A program of which it is known whether it is given the seed of a run."""

    @property
    def seeded(self) -> bool:
        """Whether every run is given its seed."""
        ...

    def once(self) -> Self:
        """Return the same program, as one that does not repeat itself."""
        ...


# Guesses at what was meant, for messages.


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """`; did you mean 'x'?`, or nothing if nothing known is near.

    >>> did_you_mean("detla", ["delta", "seed"])
    "; did you mean 'delta'?"
    """
    near = get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else ""


# Under which conditions runs take place: limits, directory, environment. The same for every configuration.

INHERITED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "TZ",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "JAVA_HOME",
)
"""What a program inherits of the environment by default: enough to be found and to run."""

# Beyond the factor, for programs whose captime is shorter than what starting them takes.
_GRACE = 1.0


@dataclass(frozen=True, slots=True)
class Conditions:
    """Limits and surroundings of a run.

    Attributes:
        clock: The clock of captimes: `cpu`, the CPU time of the whole process tree, or `wall`.
        memory: Bytes for the whole tree; None for no limit.
        output: Bytes of stdout and stderr together.
        disk: Bytes that the run's own directory may hold; None for no limit.
        processes: How many processes the tree may have; None for no limit.
        directory: Where it runs; None for a fresh directory per run.
        environment: The whole environment of the program.
        files: Further files of the program that must not change, by the names they were found under.
        wall_factor: A run is stopped after this many times its captime on the wall clock, and a second.
    """

    clock: Clock = "cpu"
    memory: int | None = None
    output: int = 1 << 30
    disk: int | None = None
    processes: int | None = None
    directory: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Fingerprint] = field(default_factory=dict)
    wall_factor: float = 5.0

    def launch(
        self,
        number: int,
        tag: str,
        captime: float,
        *,
        what: tuple[str, ...] | FunctionCall,
        preparation: Preparation | None,
        guarded: tuple[Fingerprint, ...],
        stdin: str | None = None,
        patterns: Mapping[str, str] | None = None,
        output_file: str | None = None,
        verifier: tuple[str, ...] | None = None,
        verifier_timeout: float = 60.0,
        exit_codes: tuple[int, ...] | None = None,
        until: StopValue | None = None,
    ) -> Launch:
        """Return a run of a command or a call under these conditions; the fields are those of `Launch`."""
        return Launch(
            number=number,
            argv=() if isinstance(what, FunctionCall) else what,
            call=what if isinstance(what, FunctionCall) else None,
            environment=self.environment,
            directory=self.directory,
            captime=captime,
            clock=self.clock,
            wall_limit=self.wall_limit(captime),
            memory_limit=self.memory,
            output_limit=self.output,
            disk_limit=self.disk,
            processes_limit=self.processes,
            stdin=stdin,
            patterns=patterns or {},
            output_file=output_file,
            preparation=preparation,
            guarded=(*guarded, *self.files.values()),
            tag=tag,
            verifier=verifier,
            verifier_timeout=verifier_timeout,
            exit_codes=exit_codes,
            until=until,
        )

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of the further files, by name."""
        return {name: fingerprint[-1] for name, fingerprint in self.files.items()}

    def wall_limit(self, captime: float) -> float:
        """Wall-clock seconds after which a run with that captime is stopped even if it sleeps."""
        if self.clock == "wall" or math.isinf(captime):
            return math.inf
        return captime * self.wall_factor + _GRACE


def environment_of(inherit: Sequence[str] | None, values: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program: what it inherits by name (None for the usual few), and what is set for it."""
    names = INHERITED if inherit is None else tuple(os.environ) if "*" in inherit else inherit
    return {name: os.environ[name] for name in names if name in os.environ} | dict(values)


# Instance files that must not change while a campaign runs: what each launch asks its supervisor to look after.


class InstanceGuards:
    """Remembers generated files by the first look at them; the others were looked at when the campaign began."""

    def __init__(self) -> None:
        self._made: dict[str, Fingerprint] = {}

    def of(self, instance: Instance) -> tuple[Fingerprint, ...]:
        """Return the instance's file, if there is one already."""
        if instance.fingerprint is not None:
            return (instance.fingerprint,)
        if instance.path is None:
            return ()
        if instance.path not in self._made:
            try:
                self._made[instance.path] = fingerprint_of(instance.path)
            except FileNotFoundError:
                # It is about to be made, for this very run.
                return ()
        return (self._made[instance.path],)


# Which program exactly: the files behind a command, found once, with digests for identity and fingerprints for
# guards.
#
# A program that is replaced half-way would mix two programs in one certificate. So every file that a command names
# (the executable, a script, the interpreter behind a `#!` line) is hashed when the campaign starts and looked at
# before and after every run. Shared libraries are not followed.


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
