"""What a comparison is about, and on which time scale: the instances, and a scale from trial runs that do not count."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from captime.campaign.abort_rules import Repeatability, pairs_for, trial_captime, try_twice
from captime.campaign.assembly import executor_of
from captime.campaign.identity import population_on_record
from captime.campaign.measurement import survey_of
from captime.campaign.run import executors_here, run_campaign
from captime.certificate import Population
from captime.errors import ScenarioError
from captime.ledger import LedgerReader
from captime.report.known_runs import ANSWERED, FAILED, known_runs
from captime.scenario import Scenario
from captime.supervision.scratch import own_tag
from captime.utilities.formula import duration_text
from captime.utilities.suggest import half_after

# What a comparison is about: exactly these instances, each run once, or draws from them.

_SAID_BY_SECTIONS = ("sampling", "population", "generator", "seeds")


class Sampling(StrEnum):
    """How a comparison takes its instances."""

    ONCE = "once"
    """Each once, in random order; the claim is about exactly these."""
    REPLACE = "replace"
    """Drawn with replacement, as often as it takes; the claim is about exactly these."""
    SHUFFLE = "shuffle"
    """Each once, in random order; the claim is about all that these are a fair sample of."""
    OWN = "own"
    """As the `[instances]` section says that the caller wrote."""


def sampling_of(said: str | None, section: Mapping[str, Any], ledger: Path, *, pairs: bool) -> Sampling | None:
    """Return how instances are taken; None if that depends on whether the commands repeat themselves.

    Args:
        said: What the caller said.
        section: The `[instances]` section.
        ledger: Where the runs are recorded; one that is resumed keeps its way.
        pairs: Whether a question about pairs of draws is asked.
    """
    if any(name in section for name in _SAID_BY_SECTIONS):
        return Sampling.OWN
    if said is not None:
        if said not in (Sampling.REPLACE, Sampling.SHUFFLE):
            raise ScenarioError(f"sampling is {said!r}; expected 'replace' or 'shuffle', or nothing")
        return Sampling(said)
    if ledger.exists():
        with LedgerReader(ledger) as reader:
            return _on_record(reader.scenario)
    return Sampling.REPLACE if pairs else None


def _on_record(scenario: Mapping[str, object]) -> Sampling:
    if population_on_record(scenario) is Population.THESE:
        return Sampling.ONCE
    instances = scenario.get("instances")
    said = instances.get("sampling") if isinstance(instances, Mapping) else None
    return Sampling.SHUFFLE if said == Sampling.SHUFFLE else Sampling.REPLACE


def sees_each_once(sampling: Sampling | None, section: Mapping[str, Any]) -> bool:
    """Return whether instances have to stay unseen before the runs that count: each is one draw of many more."""
    if sampling is not Sampling.OWN:
        return sampling is Sampling.SHUFFLE
    about_more = section.get("population") != Population.THESE and section.get("seeds", 1) == 1
    return "generator" not in section and about_more and section.get("sampling") != Sampling.REPLACE


def asked_about(document: Mapping[str, Any], sampling: Sampling) -> dict[str, Any]:
    """Return the scenario of a comparison with the instances taken in this way."""
    section, target = dict(document["instances"]), dict(document["target"])
    match sampling:
        case Sampling.ONCE:
            section |= {"sampling": "shuffle", "population": Population.THESE.value}
            target["repeatable"] = True
        case Sampling.REPLACE:
            section["sampling"] = "replace"
        case Sampling.SHUFFLE:
            section |= {"sampling": "shuffle", "population": Population.DRAWN.value}
        case Sampling.OWN:
            told = section.get("sampling") == Sampling.REPLACE or section.get("seeds", 1) != 1
            section = section if told else {"population": Population.DRAWN.value, **section}
    return {**document, "instances": section, "target": target}


def try_commands(scenario: Scenario, ledger: Path, interrupted: Callable[[], bool]) -> Repeatability:
    """Run commands twice on a few instances; these runs do not count.

    The instances are drawn with a seed that the comparison never uses, so what is seen here says nothing about the
    order of the runs that count. There are few pairs where the whole matrix is small.

    Args:
        scenario: What is to be compared, with draws with replacement.
        ledger: Of the comparison.
        interrupted: Whether the user wants an end.
    """
    spec = replace(scenario, wishes=scenario.wishes.model_copy(update={"seed": None})).build()
    question = spec.question
    n_configs = len(spec.configurations)
    n_pairs = pairs_for(spec.question.stream.n_instances or 1, n_configs)
    captime = trial_captime(question.utility, question.ceiling)
    with executor_of(spec, ledger, None, None, interrupted) as make:
        here = make or executors_here(spec.settings)
        trial = here(question.program, own_tag("trial"))
        try:
            return try_twice(trial, captime, n_pairs, n_configs=n_configs)
        finally:
            trial.close()


def trial_words(found: Repeatability) -> str:
    """Return what the trial showed and what follows, in a sentence."""
    if found.holds:
        return (
            "each command runs every file at most once, because repeated trial runs took the same time; the claim is "
            "about exactly these files. The trial runs do not count"
        )
    first, second = next(iter(found.pairs))
    return (
        f"files are drawn with replacement, because {found.differ} of {len(found.pairs)} pairs of trial runs took "
        f"different times, such as {first:.3g} s and {second:.3g} s; the claim is about exactly these files"
    )


PAIRS_NEED_DRAWS = (
    "files are drawn with replacement, because not-worse-by and at-least are decided from pairs of draws; the claim is "
    "about exactly these files"
)
"""Said where a question about two commands is asked."""


# A time scale where the user names none: from a few trial runs that do not count.

# Captimes that are tried, and on how many instances: many short runs first, few long ones only if they are needed.
_TRIALS = ((1.0, 12), (8.0, 8), (64.0, 4))
_LEAST = 0.001
# At most this share of the budget is spent before the runs that count.
_SHARE_OF_BUDGET = 0.2
# Trial runs are made on at most one in this many of the instances there are, and on at least two instances.
_ONE_IN, _FEWEST = 4, 2


@dataclass(frozen=True, slots=True)
class Proposal:
    """A utility that follows from trial runs.

    Attributes:
        utility: Its text.
        words: What was seen and what follows, in a sentence.
    """

    utility: str
    words: str


def proposed_utility(
    scenario: Scenario, budget: float = math.inf, interrupted: Callable[[], bool] = lambda: False
) -> Proposal:
    """Return a utility of which half is gone at the usual time of these commands on these instances.

    A few instances are drawn with a seed that the comparison never uses, so that the scale does not depend on what the
    comparison will draw. The runs are made in a ledger that is thrown away.

    Args:
        scenario: What is to be compared, with any utility.
        budget: Wall-clock seconds of the whole comparison.
        interrupted: Whether the user wants an end.
    """
    times: list[float] = []
    captime = longest = math.inf
    there_are = scenario.stream.n_instances
    for usual_captime, usual_instances in _TRIALS:
        most = usual_instances if there_are is None else max(_FEWEST, there_are // _ONE_IN)
        instances = min(usual_instances, most)
        longest = _SHARE_OF_BUDGET * budget * scenario.jobs / (instances * len(scenario.configurations))
        captime = min(usual_captime, longest)
        times = _trial(scenario, captime, instances, interrupted)
        if sum(map(math.isfinite, times)) > len(times) / 2 or captime >= longest or interrupted():
            break
    answered = [seconds for seconds in times if math.isfinite(seconds)]
    usual = float(np.median(times)) if times else math.inf
    if math.isfinite(usual):
        seen = f"half of {len(times)} trial runs answered within {duration_text(usual)}"
    else:
        usual = 4.0 * captime
        seen = f"only {len(answered)} of {len(times)} trial runs answered within {duration_text(captime)}"
    scale = rounded_scale(usual)
    words = (
        f"no utility is given, and {seen}; so an answer is assumed to be worth half as much after "
        f"{duration_text(scale)}. The trial runs do not count. Use --half-after or --deadline to choose another"
    )
    return Proposal(str(half_after(scale)), words)


def rounded_scale(seconds: float) -> float:
    """Return a number of seconds that people would choose: 1, 2 or 5 times a power of ten, at least a millisecond.

    >>> [rounded_scale(seconds) for seconds in (0.0, 0.013, 0.4, 6.9, 33.0)]
    [0.001, 0.01, 0.5, 5.0, 50.0]
    """
    if seconds <= _LEAST:
        return _LEAST
    power = 10.0 ** math.floor(math.log10(seconds))
    nice = min((1.0, 2.0, 5.0, 10.0), key=lambda each: abs(math.log(each * power / seconds)))
    return float(f"{nice * power:.6g}")


def _trial(scenario: Scenario, captime: float, instances: int, interrupted: Callable[[], bool]) -> list[float]:
    """Return the times of the trial runs; infinite for those that were capped, failures left out."""
    spec = replace(scenario, wishes=scenario.wishes.model_copy(update={"seed": None})).build()
    asked = survey_of(spec.question, captime, instances)
    with TemporaryDirectory(prefix="captime-") as folder:
        path = Path(folder) / "trial.ledger"
        manner = replace(spec.settings, conflicts=False, check_repeatability=False)
        run_campaign(asked, path, manner, interrupted=interrupted)
        with LedgerReader(path) as reader:
            runs = known_runs(reader.outcomes())
    runs = runs.where(np.flatnonzero(runs.kind != FAILED))
    return [float(each) for each in np.where(runs.kind == ANSWERED, runs.seconds, math.inf)]
