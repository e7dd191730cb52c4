"""Programs known by name: what an answer of theirs looks like, how they exit, how they take a seed.

The facts are data, in known_solvers.toml beside this file. `recognise` looks a command up in it; the presets of
`captime init --solver` and `captime compare` start from what it finds. A solver that is not known is no error.
"""

import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any, Literal

from captime.errors import ScenarioError
from captime.programs.function import Arguments

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


# From commands as the user types them to the candidates of a scenario: names, words, and what counts as an answer.

Command = str | Sequence[str] | Callable[..., Any]
_LONGEST_NAME = 60
_NEEDS_NO_QUOTES = re.compile(r"[\w@%+=:,./{}-]+", re.ASCII)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SHELL = {"|", "||", "&&", ";", "&", "<", ">", ">>", "2>", "2>&1"}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One command of a comparison.

    Attributes:
        name: What it is called in every output.
        words: The command, one word per argument; none for a function.
        answer: The pattern of a line with an answer; None if the exit code alone decides.
        exit_codes: Exit codes of a run that has answered.
        solver: The known solver whose rules these are; "" if the rules are the user's or the usual ones.
        warning: What may surprise, in a sentence; "" for nothing.
    """

    name: str
    words: tuple[str, ...] = ()
    answer: str | None = None
    exit_codes: tuple[int, ...] = (0,)
    solver: str = ""
    warning: str = ""

    @property
    def counts(self) -> str:
        """What counts as an answer of this command, in words."""
        if not self.words:
            return "the function returns anything but False or None"
        codes = " or ".join(str(code) for code in self.exit_codes)
        plural = "s" if len(self.exit_codes) > 1 else ""
        pattern = "" if self.answer is None else f" and a line that matches {self.answer}"
        known = f" (known solver: {self.solver})" if self.solver else ""
        return f"exit code{plural} {codes}{pattern}{known}"

    @property
    def text(self) -> str:
        """The command as a user would type it; the name of a function."""
        return as_typed(self.words) if self.words else self.name

    def seen_from(self, folder: Path) -> "Candidate":
        """Return the same command with the files it names as absolute paths, as it is seen from a folder."""
        words = [
            os.path.abspath(folder / word) if _is_file(word, folder, first=place == 0) else word  # noqa: PTH100
            for place, word in enumerate(self.words)
        ]
        return replace(self, words=tuple(words))

    def entry(self) -> dict[str, Any]:
        """Return the configuration as it would stand in a scenario."""
        own: dict[str, Any] = {"command": list(self.words), "exit_codes": list(self.exit_codes)}
        return own if self.answer is None else {**own, "answer": self.answer}


def as_typed(words: Sequence[str]) -> str:
    """Return a command as one text that `shlex.split` takes apart again; braces need no quotes.

    >>> as_typed(["minisat", "-rnd-seed={seed}", "{instance}", "a b"])
    "minisat -rnd-seed={seed} {instance} 'a b'"
    """
    return " ".join(word if _NEEDS_NO_QUOTES.fullmatch(word) else shlex.quote(word) for word in words)


def as_toml(document: Mapping[str, Any], remark: str) -> str:
    """Return a scenario as TOML: the values of a comparison are texts, numbers, lists and tables of these."""
    # A text of JSON is one of TOML as well.
    plain = {name: value for name, value in document.items() if not isinstance(value, Mapping)}
    lines = [f"# {remark}", *(f"{_key(name)} = {_value(value)}" for name, value in plain.items())]
    for name, table in document.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{_key(name)}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())]
    return "\n".join([*lines, ""])


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(name)} = {_value(each)}' for name, each in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value)


def _is_file(word: str, folder: Path, *, first: bool) -> bool:
    """Return whether a word names a file as seen from a folder; a program without a slash is looked for elsewhere."""
    if first:
        return os.sep in word
    return "{" not in word and not word.startswith("-") and (folder / word).is_file()


def candidates_of(
    commands: Sequence[str | Sequence[str]],
    names: Sequence[str] = (),
    answer: str | None = None,
    exit_codes: Sequence[int] | None = None,
) -> list[Candidate]:
    """Return the candidates; wrong commands are refused with what to write instead.

    Args:
        commands: Each as one text, split as a shell would, or as words.
        names: What to call them; made from the commands if it is left out.
        answer: What a line with an answer looks like, for all of them; by solver if it is left out.
        exit_codes: Exit codes of a run that has answered, likewise.
    """
    if answer is not None:
        _check_pattern(answer)
    words = [_words(command, number) for number, command in enumerate(commands, start=1)]
    called = _names(words, names, len(commands))
    found = []
    for name, each in zip(called, words, strict=True):
        solver = recognise(each)
        ruled = answer is not None or exit_codes is not None
        known = None if ruled else solver
        limit = None if solver is None else solver.own_time_limit(each)
        found.append(
            Candidate(
                name,
                tuple(each),
                answer if known is None else known.answer,
                tuple(exit_codes or (0,)) if known is None else known.exit_codes,
                "" if known is None else known.name,
                ""
                if limit is None
                else f"{name} has a time limit of its own, {limit}; a run that it ends counts as never answered. Leave "
                "it out: captime stops runs itself",
            )
        )
    return found


def functions_of(functions: Sequence[Callable[..., Any]], names: Sequence[str] = ()) -> list[Candidate]:
    """Return candidates that are Python functions."""
    own = [str(getattr(each, "__name__", f"function {number}")) for number, each in enumerate(functions, start=1)]
    called = _named(names, len(functions)) if names else _unique(own)
    return [Candidate(name) for name in called]


def one_function(functions: Mapping[str, Callable[..., Any]]) -> tuple[Callable[..., Any], bool]:
    """Return a function that calls the one whose name its configuration has, and whether all of them take the seed."""
    arguments = {name: Arguments(each, name) for name, each in functions.items()}
    table = dict(functions)

    def call(config: str, instance: object, seed: int) -> object:
        from captime.programs import Configuration  # noqa: PLC0415 (this function is sent to another process)

        positional, named = arguments[config].of(Configuration(config, {}), instance, seed)
        return table[config](*positional, **named)

    call.__qualname__ = f"compare({', '.join(functions)})"
    return call, all(each.seeded for each in arguments.values())


def _words(command: str | Sequence[str], number: int) -> list[str]:
    """Return a command as words, with `{instance}` somewhere in it."""
    where = f"command {number}"
    if isinstance(command, str):
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ScenarioError(f"{where} is {command!r}: {str(error).lower()}; close the quotes") from None
    else:
        words = [str(word) for word in command]
    if not words:
        raise ScenarioError(f"{where} is empty; expected a program and its arguments, such as 'minisat {{instance}}'")
    shell = [word for word in words if word in _SHELL]
    if shell and words[0] not in ("sh", "bash"):
        raise ScenarioError(
            f"{where} has {shell[0]!r} in it, but captime starts programs without a shell; write it as a script, or as "
            """"sh -c 'solver < \\"$0\\"' {instance}" """.rstrip()
        )
    if not any("{instance}" in word for word in words):
        raise ScenarioError(
            f"{where} is {as_typed(words)!r}, without {{instance}}; write {{instance}} where the name of the file "
            f"belongs, such as {as_typed([*words, '{instance}'])!r}"
        )
    return words


def _names(commands: Sequence[Sequence[str]], given: Sequence[str], count: int) -> list[str]:
    """Return the names: those given, else those of the programs, else what tells the commands apart."""
    if given:
        return _named(given, count)
    programs = [PurePath(words[0]).name for words in commands]
    if len(set(programs)) == len(programs):
        return programs
    texts = [" ".join(word for word in words if word != "{instance}") for words in commands]
    return _unique([text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…" for text in texts])


def _named(given: Sequence[str], count: int) -> list[str]:
    if len(given) != count:
        raise ScenarioError(f"{len(given)} names are given for {count} commands; expected one for each, in their order")
    if len(set(given)) < count:
        raise ScenarioError(f"two commands have the same name among {', '.join(given)}; expected different ones")
    return list(given)


def _unique(names: Sequence[str]) -> list[str]:
    """Return names that differ: a number is appended to those that occur more than once."""
    if len(set(names)) == len(names):
        return list(names)
    return [name if names.count(name) == 1 else f"{name} [{place}]" for place, name in enumerate(names, start=1)]


def _check_pattern(answer: str) -> None:
    try:
        re.compile(answer)
    except re.error as error:
        raise ScenarioError(
            f"answer is {answer!r}, which is no regular expression ({error}); expected one such as '^s (SATISFIABLE|"
            "UNSATISFIABLE)'"
        ) from None
