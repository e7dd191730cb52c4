"""A program that is a Python function: called in a process of its own for every run, supervised like any program."""

import hashlib
import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from captime.errors import ScenarioError
from captime.programs.judge import TOLERANCE, AnswerRules, SelfReport, TellsTime, judge
from captime.programs.protocol import Conditions, Configuration, InstanceGuards, did_you_mean
from captime.programs.returned import account_of
from captime.runs import RunOutcome, RunRequest
from captime.streams.files import digest_of_file, fingerprint_of
from captime.streams.finite import Instance, InstanceStream
from captime.supervision.messages import NOT_RETURNED, Fingerprint, FunctionCall, Launch, Report

# What a function is called with: the parameters it names, or settings, instance and seed in this order.

OFFERED = ("settings", "instance", "seed", "config")
"""What a function may ask for by name, besides single settings."""

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Arguments:
    """How a function wants to be called.

    A function that has a parameter called `instance` is called by names: each parameter is one of `settings`,
    `instance`, `seed`, `config` (the configuration's name) or a setting. Any other function is called with settings (a
    dict), instance and seed.

    Args:
        function: The function.
        name: How to call it in messages.

    Attributes:
        seeded: Whether it is given the seed.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._name = name
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            parameters = {}.values()
        self._named = {each.name: each.default is not each.empty for each in parameters if each.kind in _NAMED}
        self._open = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
        self._by_name = "instance" in self._named
        if not self._by_name and parameters:
            self._check_three(function)
        self.seeded = not self._by_name or "seed" in self._named

    def _check_three(self, function: Callable[..., Any]) -> None:
        try:
            inspect.signature(function).bind({}, None, 0)
        except TypeError:
            raise ScenarioError(
                f"function {self._name} takes ({', '.join(self._named)}); expected three parameters for settings, "
                "instance and seed, or parameters called 'instance', 'seed' and like the settings"
            ) from None

    def check(self, configuration: Configuration) -> None:
        """Refuse a configuration whose settings do not fit the function's parameters."""
        if not self._by_name:
            return
        where, settings = f"configuration {configuration.name!r}", configuration.settings
        for parameter, optional in self._named.items():
            if parameter not in OFFERED and parameter not in settings and not optional:
                raise ScenarioError(
                    f"{where}: function {self._name} needs {parameter!r}, but the configuration has no such setting; "
                    "add it, or give the parameter a default"
                )
        if self._open or "settings" in self._named:
            return
        for name in settings:
            if name not in self._named:
                meant = did_you_mean(name, self._named) or ";"
                here = " ('config' is the configuration's name)" if "config" in self._named else ""
                raise ScenarioError(
                    f"{where}: setting {name!r} is no parameter of function {self._name}{meant} rename it, or let the "
                    f"function take 'settings', a dict of all{here}"
                )

    def of(self, configuration: Configuration, instance: Any, seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments of one call."""
        settings = dict(configuration.settings if configuration.given is None else configuration.given)
        if not self._by_name:
            return (settings, instance, seed), {}
        offered = {"settings": settings, "instance": instance, "seed": seed, "config": configuration.name}
        named = {name: offered[name] for name in offered if name in self._named}
        single = {name: value for name, value in settings.items() if name in self._named or self._open}
        return (), single | named


_WIDTH = 200


class FunctionProgram:
    """A function of settings, instance and seed. Whatever it raises is a crash.

    Args:
        stream: The instances.
        configurations: The candidates, by index.
        function: The function itself, or `module:function`.
        folder: Where the module is looked for first.
        conditions: Limits and surroundings.
        time: Which time counts: as measured by us, or as reported by the function.
        tolerance: By which share a number may differ from the known answer.
        repeatable: Whether the same seed gives the same run; None to see whether the function takes the seed at all.
    """

    def __init__(
        self,
        stream: InstanceStream,
        configurations: Sequence[Configuration],
        function: Callable[..., Any] | str,
        *,
        folder: Path,
        conditions: Conditions,
        time: TellsTime = "measured",
        tolerance: float = TOLERANCE,
        repeatable: bool | None = None,
    ) -> None:
        self._stream = stream
        self._folder = folder
        self._conditions = conditions
        self._guards = InstanceGuards()
        self._reference = function if isinstance(function, str) else ""
        self._function = _imported(function, folder) if isinstance(function, str) else function
        self.name = self._reference or getattr(function, "__qualname__", repr(function))
        self._pickled = b"" if self._reference else _pickled(self._function, self.name)
        self._arguments = Arguments(self._function, self.name)
        self._source = _source_file(self._function)
        self._fingerprints: tuple[Fingerprint, ...] = ()
        if self._source is not None:
            self._fingerprints = (fingerprint_of(self._source, digest_of_file(self._source)),)
        # The function's own module, and for a function given as an object everything that could be imported here.
        here = [os.fspath(folder)] if self._reference else [os.path.abspath(each) for each in sys.path]  # noqa: PTH100 (entries of any kind)
        self._search_path = tuple(dict.fromkeys(here))
        self._configurations: list[Configuration] = []
        self._rules = AnswerRules(time=time, clock=conditions.clock, tolerance=tolerance)
        self.seeded = self._arguments.seeded
        self.repeatable = self.seeded if repeatable is None else repeatable
        self.extend(configurations)

    def once(self) -> "FunctionProgram":
        """See the protocol."""
        same = copy(self)
        same._configurations, same.repeatable = list(self._configurations), False  # noqa: SLF001 (of this class)
        return same

    def extend(self, configurations: Sequence[Configuration]) -> None:
        """More candidates, for pools that grow."""
        for each in configurations:
            self._arguments.check(each)
            self._configurations.append(each)

    def launch(self, request: RunRequest, number: int, tag: str) -> Launch:
        """See the protocol."""
        element = self._stream.at(request.instance)
        arguments = cloudpickle.dumps(self._bound(request.config, element.instance, element.seed))
        return self._conditions.launch(
            number,
            tag,
            request.captime,
            what=FunctionCall(self._pickled, self._reference, arguments, self._search_path),
            preparation=element.instance.preparation,
            guarded=(*self._fingerprints, *self._guards.of(element.instance)),
        )

    def judge(self, request: RunRequest, report: Report) -> RunOutcome:
        """See the protocol."""
        told = _told(report) if report.ended == "exit" else None
        known = self._stream.at(request.instance).instance.answer
        return judge(request, report, self._rules, repeatable=self.repeatable, known=known, told=told)

    def describe(self) -> dict[str, object]:
        """See the protocol."""
        return {"kind": "function", "function": self.name, "programs": self.programs()}

    def programs(self) -> dict[str, str]:
        """Digest of the function's source file; of its code, if it was never in a file."""
        further = self._conditions.digests
        if self._source is not None:
            return {self.name: digest_of_file(self._source), **further}
        code = getattr(self._function, "__code__", None)
        told = repr((code.co_code, code.co_consts, code.co_names)) if code is not None else self.name
        return {self.name: hashlib.sha256(told.encode()).hexdigest(), **further}

    def command_line(self, config: int, instance: str, seed: int) -> list[str]:
        """See the protocol. A line of Python, where there is no command."""
        return [self._call(config, Instance(instance, instance), seed)]

    def how_started(self, config: int, instance: Instance, seed: int) -> str:
        """See the protocol."""
        return f"The call was: {self._call(config, instance, seed)}"

    def _call(self, config: int, instance: Instance, seed: int) -> str:
        args, kwargs = self._bound(config, instance, seed)
        told = [*map(_shown, args), *(f"{name}={_shown(value)}" for name, value in kwargs.items())]
        return f"{self.name}({', '.join(told)})"

    def _bound(self, config: int, instance: Instance, seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        value = instance.value if instance.path is None else instance.path
        return self._arguments.of(self._configurations[config], value, seed)


def _told(report: Report) -> SelfReport:
    if report.returned is not None:
        return account_of(report.returned)
    last = report.stderr_tail.decode("utf-8", "replace").strip().splitlines()[-1:]
    if last and last[0].startswith(NOT_RETURNED):
        return SelfReport("crashed", problem=last[0])
    if last and b"Traceback (most recent call last)" in report.stderr_tail:
        return SelfReport("crashed", problem=f"the function raised {last[0]}")
    return SelfReport("crashed", problem=f"the function ended its process with exit code {report.exit_code}")


def _shown(value: object) -> str:
    """Return a value as Python would write it, never longer than a line."""
    text = repr(value)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


def _pickled(function: Callable[..., Any], name: str) -> bytes:
    try:
        return bytes(cloudpickle.dumps(function))
    except Exception as error:
        raise ScenarioError(
            f"function {name} cannot be sent to the process of a run: {_sentence(error)}; let it make what it needs "
            "(open files, locks, connections) itself, or name it as module:function in target.function"
        ) from error


def _imported(reference: str, folder: Path) -> Callable[..., Any]:
    """Return the function behind `module:function`, looked for in the scenario's folder first."""
    module_name, colon, name = reference.partition(":")
    if not colon or not module_name or not name:
        raise ScenarioError(
            f"target.function is {reference!r}; expected module:function, such as 'solver:solve' for the function "
            "solve in solver.py beside the scenario"
        )
    if module_name.endswith(".py") or "/" in module_name:
        meant = f"{Path(module_name).name.removesuffix('.py')}:{name}"
        raise ScenarioError(
            f"target.function is {reference!r}, which names a file; expected the name of its module: write {meant!r}, "
            "and keep the file beside the scenario"
        )
    with _first_on_path(folder):
        try:
            found: Any = importlib.import_module(module_name)
        except (Exception, SystemExit) as error:
            raise ScenarioError(f"target.function is {reference!r}, but {_why_not(module_name, error)}") from error
    module = found
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ScenarioError(
            f"target.function is {reference!r}, but {_misses(module, module_name, name, folder)}; check its name"
        )
    function: Callable[..., Any] = found
    return function


def _why_not(module_name: str, error: BaseException) -> str:
    """Return why a module cannot be imported, with the line of the user's file that is to blame."""
    if isinstance(error, ModuleNotFoundError) and error.name == module_name.partition(".")[0]:
        return (
            f"importing {module_name} failed: there is no such module; is {module_name}.py beside the scenario, or is "
            "it not installed where captime is?"
        )
    where = ""
    if isinstance(error, SyntaxError):
        where = f" in {error.filename}, line {error.lineno}"
    else:
        frames = [each for each in traceback.extract_tb(error.__traceback__) if "importlib" not in each.filename]
        if frames and frames[-1].filename != __file__:
            where = f" in {frames[-1].filename}, line {frames[-1].lineno}"
    advice = (
        "is everything installed that it imports?"
        if isinstance(error, ImportError)
        else f"`python -c 'import {module_name}'` shows the same; mend the module"
    )
    return f"importing {module_name} failed{where}: {_sentence(error)}; {advice}"


def _misses(module: ModuleType, module_name: str, name: str, folder: Path) -> str:
    """Return what a module lacks; a file of the user may be hidden behind an installed module of the same name."""
    found, meant = getattr(module, "__file__", None) or "a part of Python", folder / f"{module_name}.py"
    if meant.is_file() and not (Path(found).is_file() and meant.samefile(found)):
        return f"{module_name} is another module here ({found}), not {meant.name} beside the scenario; rename the file"
    known = [each for each, value in vars(module).items() if callable(value)]
    return f"{module_name} has no function {name!r}{did_you_mean(name, known).removesuffix('?')}"


def _sentence(error: BaseException) -> str:
    """Return the kind of an exception and the first line of its message."""
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    first = said.strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    sys.path.insert(0, os.fspath(folder))
    try:
        yield
    finally:
        sys.path.remove(os.fspath(folder))


def _source_file(function: Callable[..., Any]) -> Path | None:
    try:
        found = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:
        return None
    return Path(found) if found is not None and Path(found).is_file() else None
