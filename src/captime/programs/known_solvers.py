"""Programs known by name: what an answer of theirs looks like, how they exit, how they take a seed.

The facts are data, in known_solvers.toml beside this file. `recognise` looks a command up in it; the presets of
`captime init --solver` and `captime compare` start from what it finds. A solver that is not known is no error.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Family = Literal["sat", "asp", "smt", "mip", "maxsat", "cp", "compressor"]
TimeUnit = Literal["s", "ms"]

# What stands behind the name of an executable: kissat-4.0.1, z3-4.8.12-static, minisat2.2, cbc.exe.
_VERSION = re.compile(r"(?:[-_.]?v?\d+(?:\.\d+)+|[-_]v?\d+|[-_]sc\d{4})(?:[-_.].*)?$", re.IGNORECASE)
# Programs that start another one and pass it everything that follows; with the number of words they take themselves.
_LAUNCHERS = {"nice": 0, "nohup": 0, "env": 0, "setarch": 1}
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


@dataclass(frozen=True, slots=True)
class KnownSolver:
    """What is known of a solver.

    Attributes:
        name: What captime calls it.
        family: The kind of problem it is made for.
        programs: Names of its executable.
        exit_codes: Exit codes of a run that has answered.
        answer: The pattern of a line with an answer; None if the exit code alone decides.
        seed: Words that pass the seed, with `{seed}` in them; none if it takes no seed.
        one_thread: Words that keep it to one core, where it would take more.
        time_limits: Options of its own time limit, each with the unit in which it counts.
        tried: The version that captime's tests run; None if the entry comes from documentation alone.
        note: What surprises, in a sentence.
    """

    name: str
    family: Family
    programs: tuple[str, ...]
    exit_codes: tuple[int, ...]
    answer: str | None = None
    seed: tuple[str, ...] = ()
    one_thread: tuple[str, ...] = ()
    time_limits: Mapping[str, TimeUnit] = field(default_factory=dict)
    tried: str | None = None
    note: str = ""

    def own_time_limit(self, command: Sequence[str]) -> str | None:
        """Return the word of a command that sets the solver's own time limit, if there is one.

        Such a run may end without an answer before its captime, and then counts as a run that never answers.

        >>> known_solvers()["kissat"].own_time_limit(["kissat", "--time=5", "a.cnf"])
        '--time=5'
        """
        for word in command[1:]:
            for option in self.time_limits:
                # An option that ends with = or : is glued to its value; any other is a word of its own.
                glued = option.endswith(("=", ":")) or " " in option
                if word == option or (glued and word.startswith(option)):
                    return word
        return None


@cache
def known_solvers() -> dict[str, KnownSolver]:
    """Return all known solvers by captime's name for them."""
    text = files("captime.programs").joinpath("known_solvers.toml").read_text(encoding="utf-8")
    return {name: KnownSolver(name, **_as_fields(entry)) for name, entry in tomllib.loads(text).items()}


def recognise(command: Sequence[str]) -> KnownSolver | None:
    """Return the solver that a command starts, by the name of its program; None if it is not a known one.

    >>> solver = recognise(["/opt/bin/kissat-4.0.1", "-q", "{instance}"])
    >>> solver.name, solver.answer, solver.exit_codes
    ('kissat', '^s (SATISFIABLE|UNSATISFIABLE)', (10, 20))
    """
    program = _program_of(command)
    if program is None:
        return None
    names = {each: solver for solver in known_solvers().values() for each in solver.programs}
    found = names.get(program)
    return found if found is not None else names.get(_VERSION.sub("", program))


def _program_of(command: Sequence[str]) -> str | None:
    """Return the plain name of the program, in lower case; launchers such as env and nice are passed over."""
    words = list(command)
    while words:
        name = re.split(r"[/\\]", words.pop(0))[-1].lower().removesuffix(".exe")
        if name not in _LAUNCHERS:
            return name
        del words[: _LAUNCHERS[name]]
        while words and (words[0].startswith("-") or _ASSIGNMENT.match(words[0])):
            # `nice -n 10`: the option's value is a word of its own.
            option = words.pop(0)
            if option in ("-n", "-u"):
                del words[:1]
    return None


def _as_fields(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a table, its lists as tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
