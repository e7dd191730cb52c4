"""`captime.compare`: which of these commands is worth most, or is the second one worse than the first?"""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from os import PathLike, fspath
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from warnings import warn

from captime.campaign.assembly import Assembly
from captime.campaign.identity import as_begun
from captime.campaign.result import CampaignResult
from captime.certificate import Certificate
from captime.comparison.commands import Candidate, Command, as_toml, candidates_of, functions_of, one_function
from captime.comparison.pairs import Decision, Difference, Gate, GateVerdict, Watch, WorthMore, until_decided
from captime.comparison.population import (
    PAIRS_NEED_DRAWS,
    Sampling,
    asked_about,
    proposed_utility,
    sampling_of,
    sees_each_once,
    trial_words,
    try_commands,
)
from captime.errors import ScenarioError
from captime.ledger import LedgerReader
from captime.report.campaign_view import campaign_view
from captime.runs import never
from captime.scenario import Scenario, scenario_of
from captime.scenario.errors import shown
from captime.utilities import Utility
from captime.utilities.formula import parse_duration
from captime.utilities.suggest import deadline_at
from captime.utilities.suggest import half_after as half_gone_after

Time = float | str
Instances = str | PathLike[str] | Iterable[Any] | Mapping[str, Any]
EPSILON = 0.05
"""Where nothing else is asked: the command recommended is within this of the best."""
# Stands in for the utility while trial runs find a scale; nothing is decided by it.
_ANY_UTILITY = "log-laplace(1, 1)"
# The engine's own goal where "at least 10 %" is asked, as a share of that; runs beyond it are ordered in pairs.
_GOAL_SHARE = 0.3
_NAMES_OF_FILES = ("files", "list", "csv", "answers")
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


def _silent(words: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came out of a comparison.

    Attributes:
        campaign: The runs, the certificate and the ledger, as of `captime.configure`.
        candidates: The commands, in the order given.
        decision: What is certified about the two commands where `not_worse_by` or `at_least` was asked; else None.
        proposal: How the utility was found, in a sentence; "" if it was given.
    """

    campaign: CampaignResult
    candidates: tuple[Candidate, ...]
    decision: Decision | None = None
    proposal: str = field(default="", repr=False)

    @property
    def certificate(self) -> Certificate:
        """The engine's statement; `config` counts commands from 0."""
        return self.campaign.certificate

    @property
    def config_name(self) -> str:
        """Name of the recommended command."""
        return self.campaign.config_name

    @property
    def verdict(self) -> GateVerdict | Difference | None:
        """What is certified about the two commands; None if only the best one was asked for."""
        return None if self.decision is None else self.decision.verdict

    @property
    def decided(self) -> bool:
        """Whether the question was answered before time or instances ran out."""
        if self.decision is not None:
            return self.decision.decided
        return self.campaign.outcome.stopped in ("epsilon", "single")

    @property
    def ledger(self) -> Path:
        """The file that has every run in it; `captime report`, `verify`, `status` and `validate` read it."""
        return self.campaign.record

    def __str__(self) -> str:
        """Return the sentence and the table."""
        from captime.comparison.words import as_text  # noqa: PLC0415 (words are made of comparisons)

        return as_text(self)

    def _repr_markdown_(self) -> str:
        """Return what notebooks show."""
        from captime.comparison.words import as_markdown  # noqa: PLC0415 (likewise)

        return as_markdown(self)


def compare(
    commands: Sequence[Command],
    instances: Instances,
    *,
    names: Sequence[str] = (),
    utility: Utility | str | None = None,
    half_after: Time | None = None,
    deadline: Time | None = None,
    not_worse_by: float | None = None,
    at_least: float | str | None = None,
    delta: float = 0.1,
    epsilon: float = EPSILON,
    budget: Time | None = None,
    answer: str | None = None,
    exit_codes: Sequence[int] | None = None,
    sampling: str | None = None,
    allow_duplicates: bool = False,
    clock: str = "cpu",
    jobs: int | None = None,
    seed: int | None = None,
    ledger: str | PathLike[str] | None = None,
    progress: bool = True,
    title: str = "captime.compare",
    say: Callable[[str], None] | None = None,
    interrupted: Callable[[], bool] = never,
    folder: str | PathLike[str] = ".",
) -> Comparison:
    """Run two or more commands or functions on the same instances until it is decided which is worth most.

    Args:
        commands: Each as one text such as `"kissat -q {instance}"`, as a list of words, or a Python function that takes
            `instance` and perhaps `seed`; all of one kind.
        instances: A pattern of file names; a list of files, or of values for functions; or the `[instances]` section of
            a scenario.
        names: What to call the commands.
        utility: What an answer is worth, such as `log-laplace(10, 1)`; in words it is one of the next two. Where none
            of the three is given, a few trial runs that do not count propose a scale.
        half_after: An answer is half as good after this time, in seconds or as `10s`.
        deadline: An answer is needed by then, and earlier is no better.
        not_worse_by: Ask whether the second command is worse than the first. It may be worth this much less.
        at_least: Ask whether one of two commands is worth this much more than the other, as `"10%"` or 0.1.
        delta: Allowed probability of a wrong statement.
        epsilon: Where nothing of this kind is asked: stop once the best command is known up to this.
        budget: Wall-clock time, in seconds or as `10min`.
        answer: What a line with an answer looks like; by solver if it is left out.
        exit_codes: Exit codes of a run that has answered, likewise.
        sampling: Left out, the claim is about exactly these instances, each run once, where the commands take the same
            time again and neither `not_worse_by` nor `at_least` is asked; else as `replace`. `replace`: about exactly
            these instances, drawn with replacement as often as it takes. `shuffle`: every instance once; about all
            instances that these are a fair sample of.
        allow_duplicates: Whether two instances may hold the same.
        clock: `cpu` or `wall`.
        jobs: How many runs are made at once; as many as there are cores by default.
        seed: Key of everything that is drawn at random; drawn afresh if it is left out.
        ledger: Where every run is recorded, and from which the same call resumes.
        progress: Show it.
        title: Stands above the progress.
        say: Is told what counts as an answer and which utility was proposed; warnings of Python if it is left out.
        interrupted: Asked between decisions; True stops with what is certified so far.
        folder: Relative names are seen from here.

    Returns:
        The certificate, the verdict and everything that led to them.
    """
    candidates, target, function = _prepared(commands, names, answer, exit_codes, clock)
    decision = _decision(not_worse_by, at_least, delta, len(candidates))
    path = new_ledger([each.name for each in candidates]) if ledger is None else Path(ledger)
    seconds = None if budget is None else _seconds(budget, "budget")
    chosen = _utility(utility, half_after, deadline) or _on_record(path)
    values, section = _instances(instances, values=function is not None)
    if allow_duplicates:
        section["allow_duplicates"] = True
    way = sampling_of(sampling, section, path, pairs=decision is not None)
    if chosen is None and sees_each_once(way, section):
        raise ScenarioError(
            "every instance is to be one draw of many more, and no utility is given; trial runs would use up instances "
            "that have to stay unseen. Give a utility, such as half_after=10 (--half-after 10s)"
        )
    entries: dict[str, Any] = {each.name: {} for each in candidates}
    if function is None:
        # The scenario stands beside the ledger, where relative names would mean something else.
        entries = {each.name: each.seen_from(Path(folder)).entry() for each in candidates}
        section = _seen_from(Path(folder), section)
    document: dict[str, Any] = {
        "utility": chosen or _ANY_UTILITY,
        "delta": delta,
        **({} if seed is None else {"seed": seed}),
        "jobs": "auto" if jobs is None else jobs,
        "target": target,
        "configurations": entries,
        "instances": section,
        "stop": {"epsilon": _goal(decision, epsilon), **({} if seconds is None else {"wall": seconds})},
    }

    def asked_with(wishes: Mapping[str, Any]) -> Scenario:
        where = folder if function else path.absolute().parent
        return scenario_of(wishes, where, function=function, values=values, stem=path.stem, name="compare")

    tell = say or _silent
    _tell_answers(candidates, tell)
    proposal = ""
    drawn = asked_about(document, way or Sampling.REPLACE)
    if chosen is None:
        found = proposed_utility(asked_with(drawn), seconds or math.inf, interrupted)
        chosen, proposal = found.utility, found.words
        tell(proposal)
    document["utility"] = drawn["utility"] = chosen
    if way is None:
        way = _tried(asked_with(drawn), path, tell, interrupted)
    elif decision is not None and sampling is None and way is Sampling.REPLACE:
        tell(PAIRS_NEED_DRAWS)
    document = asked_about(document, way)
    asked = asked_with(document)
    source = "" if function else _kept(asked, document, path)
    campaign, decision = _run(
        asked, path, decision, source=source, progress=progress, title=title, interrupted=interrupted
    )
    if campaign.trouble is not None and say is None:
        warn(str(campaign.trouble), RuntimeWarning, stacklevel=2)
    return Comparison(campaign, tuple(candidates), decision, proposal)


def _tell_answers(candidates: Iterable[Candidate], tell: Callable[[str], None]) -> None:
    for each in candidates:
        tell(f"{each.name}: counts as an answer: {each.counts}")
        if each.warning:
            tell(each.warning)


def _tried(asked: Scenario, path: Path, tell: Callable[[str], None], interrupted: Callable[[], bool]) -> Sampling:
    """Return how instances are taken, by whether the commands repeat themselves."""
    tried = try_commands(asked, path, interrupted)
    tell(trial_words(tried))
    return Sampling.ONCE if tried.holds else Sampling.REPLACE


def _run(
    asked: Scenario,
    path: Path,
    decision: Decision | None,
    *,
    source: str,
    progress: bool,
    title: str,
    interrupted: Callable[[], bool],
) -> tuple[CampaignResult, Decision | None]:
    """Make the runs until the question is decided."""
    asked = as_begun(asked, path)
    spec = asked.build()
    question = replace(spec.question, source=source)
    watch = None if decision is None else Watch(decision, path, question.utility, interrupted)
    if watch is not None:
        question = until_decided(question, watch)
    view = campaign_view(
        question.names,
        question.epsilon,
        title,
        ledger=path,
        measured_on=question.clock,
        more=tuple if watch is None else watch.lines,
        hint="Ctrl-C stops with what is certified so far",
    )
    campaign = Assembly.of(spec, path, question)
    with (
        campaign.slots(interrupted if watch is None else watch) as at_work,
        view if progress else nullcontext() as seen,
    ):
        result = at_work.run(seen)
    result = replace(result, scenario=asked)
    return result, None if watch is None else watch.at_the_end(result.record)


def _kept(asked: Scenario, document: Mapping[str, Any], path: Path) -> str:
    """Write the scenario beside the ledger, for `validate` and `run`, and return its name.

    A file of that name that is there already is the user's, or that of the campaign which is resumed.
    """
    asked.check()
    file = path.absolute().with_suffix(".toml")
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_text(as_toml(document, "Written by captime compare."), encoding="utf-8")
    return str(file)


def _seen_from(folder: Path, section: Mapping[str, Any]) -> dict[str, Any]:
    """Return the instances with absolute names of files."""
    found = dict(section)
    for name in _NAMES_OF_FILES:
        value = found.get(name)
        if isinstance(value, str):
            found[name] = os.path.abspath(folder / value)  # noqa: PTH100 (links are kept as named)
        elif value is not None:
            found[name] = [os.path.abspath(folder / each) for each in value]  # noqa: PTH100 (likewise)
    return found


def _prepared(
    commands: Sequence[Command],
    names: Sequence[str],
    answer: str | None,
    exit_codes: Sequence[int] | None,
    clock: str,
) -> tuple[list[Candidate], dict[str, Any], Callable[..., Any] | None]:
    """Return the candidates, the target section, and the function that stands for all functions."""
    if isinstance(commands, str) or not isinstance(commands, Sequence) or len(commands) < 2:
        raise ScenarioError(
            f"compare was given {shown(commands)}; expected two or more commands, such as 'kissat -q {{instance}}' and "
            "'cadical -q {instance}'"
        )
    functions = [each for each in commands if callable(each)]
    if functions and len(functions) < len(commands):
        raise ScenarioError("compare was given commands and functions; expected all of one kind")
    if not functions:
        texts = [each for each in commands if not callable(each)]
        return candidates_of(texts, names, answer, exit_codes), {"clock": clock}, None
    if answer is not None or exit_codes is not None:
        raise ScenarioError("answer and exit_codes mean nothing for functions; a function answers by what it returns")
    candidates = functions_of(functions, names)
    called = dict(zip((each.name for each in candidates), functions, strict=True))
    function, seeded = one_function(called)
    return candidates, {"clock": clock, "repeatable": seeded}, function


def _decision(not_worse_by: float | None, at_least: float | str | None, delta: float, count: int) -> Decision | None:
    """Return the question about two commands, if there is one."""
    if not_worse_by is None and at_least is None:
        return None
    if not_worse_by is not None and at_least is not None:
        raise ScenarioError("not-worse-by and at-least are two questions; ask one of them at a time")
    name = "at-least" if not_worse_by is None else "not-worse-by"
    if count != 2:
        raise ScenarioError(
            f"{name} is a question about two commands, but {count} are given; leave commands out, or ask "
            "without it for the best of all"
        )
    if not 0.0 < delta < 1.0:
        raise ScenarioError(f"delta is {delta!r}; expected a probability above 0 and below 1, such as 0.1")
    return WorthMore(_share(at_least or 0.0), delta) if not_worse_by is None else Gate(float(not_worse_by), delta)


def _share(given: float | str) -> float:
    """Return a share such as 0.1 from "10%" or from 0.1."""
    if not isinstance(given, str):
        return float(given)
    found = _PERCENT.fullmatch(given)
    if found is None:
        raise ScenarioError(f"at-least is {given!r}; expected a percentage, such as 10%")
    return float(found[1]) / 100.0


def _goal(decision: Decision | None, epsilon: float) -> float:
    """Return the engine's own goal."""
    if isinstance(decision, Gate):
        return decision.margin
    return epsilon if decision is None else min(epsilon, _GOAL_SHARE * decision.share)


def _utility(utility: Utility | str | None, half_after: Time | None, deadline: Time | None) -> str | None:
    """Return the text of the utility; None if there is none."""
    ways = {"utility": utility, "half-after": half_after, "deadline": deadline}
    given = [name for name, value in ways.items() if value is not None]
    if len(given) > 1:
        raise ScenarioError(f"{' and '.join(given)} are given; expected one of them: each says what an answer is worth")
    if half_after is not None:
        return str(half_gone_after(_seconds(half_after, "half-after")))
    if deadline is not None:
        return str(deadline_at(_seconds(deadline, "deadline")))
    return None if utility is None else str(utility)


def _on_record(path: Path) -> str | None:
    """Return the utility of a ledger that is resumed."""
    if not path.exists():
        return None
    with LedgerReader(path) as reader:
        return str(reader.scenario.get("utility")) if "utility" in reader.scenario else None


def _instances(given: Instances, *, values: bool) -> tuple[list[Any] | None, dict[str, Any]]:
    """Return the instances given as objects, and what would stand under `[instances]`."""
    if isinstance(given, Mapping):
        return None, dict(given)
    if isinstance(given, str | PathLike):
        return None, {"files": fspath(given)}
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise ScenarioError(f"instances is {shown(given)}; expected a pattern of file names, a list, or a dict")
    listed = list(given)
    if values:
        return listed, {}
    for each in listed:
        if not isinstance(each, str | PathLike):
            raise ScenarioError(f"instances has {shown(each)} in it; expected names of files for commands")
    return None, {"files": [fspath(each) for each in listed]}


def _seconds(given: Time, name: str) -> float:
    seconds = parse_duration(given, name) if isinstance(given, str) else float(given)
    if not (math.isfinite(seconds) and seconds > 0):
        raise ScenarioError(f"{name} is {given!r}; expected a positive time, such as 10s")
    return seconds


def new_ledger(names: Sequence[str]) -> Path:
    """Return a place for a ledger that no user has named: a file of its own for each comparison."""
    state = os.environ.get("XDG_STATE_HOME", "")
    home = Path(state) if state else Path("~/.local/state").expanduser()
    folder = home / "captime"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(gettempdir()) / "captime"
    slug = re.sub(r"[^\w.]+", "-", "-".join(names))[:40].strip("-.")
    stem = f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{slug}"
    for suffix in ("", *(f"-{number}" for number in range(1, 1000))):
        path = folder / f"{stem}{suffix}.ledger"
        if not path.exists():
            return path
    raise ScenarioError(f"there is no free name for a ledger in {str(folder)!r}; name one with --ledger FILE")
