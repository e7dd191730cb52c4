"""Validate configurations on held-out instances: which instances those are, and what configurations are worth there."""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from captime.arrays import FloatArray
from captime.bounds import Mixture
from captime.campaign.changes import configuration_of
from captime.certificate import check_delta
from captime.errors import ScenarioError, TargetProgramError
from captime.ledger.rows import ConfigRow, SampleRow
from captime.scenario import Scenario
from captime.scenario.errors import SourceLocation
from captime.scenario.models import InstancesSection
from captime.scenario.spec import CampaignQuestion
from captime.sources import RuntimeTable
from captime.streams import FiniteStream, GeneratedStream, Instance
from captime.streams.files import digest_of_file
from captime.utilities import Utility

# Held-out instances: a scenario that runs on them, and which of them a campaign has met, told by what they hold.


def on_files(campaign: Scenario, pattern: str | list[str], where: str) -> Scenario:
    """Return the scenario with the files of a pattern in place of its instances, each once, in random order.

    Args:
        campaign: The scenario of the campaign.
        pattern: Patterns of file names.
        where: What messages call the place where the pattern was given, such as `--instances`.
    """
    if campaign.values is not None or campaign.wishes.instances.values is not None:
        option = " with --values '[…]'" if where.startswith("--") else ""
        raise ScenarioError(
            f"{where} names files, but the instances of this campaign are values, such as "
            f"{campaign.stream.at(0).instance.name}; the program would take a name for a value. Give values of the "
            f"same kind{option}"
        )
    return _with(campaign, {"files": pattern}, where)


def on_values(campaign: Scenario, values: Sequence[Any], where: str) -> Scenario:
    """Return the scenario with these values in place of its instances, each once, in random order."""
    if campaign.values is None and campaign.wishes.instances.values is None:
        raise ScenarioError(
            f"{where} gives values, but the instances of this campaign are files; name files with --instances"
        )
    if campaign.function is not None:
        return replace(_with(campaign, {}, where), values=values)
    return _with(campaign, {"values": list(values)}, where)


def on_generated(campaign: Scenario, used: int, where: str) -> Scenario:
    """Return the scenario with instances that its generator has not made for the campaign.

    Their numbers `{k}` follow the `used` ones that the campaign has met, and their seeds `{seed}` are drawn with
    another key: whichever of the two the generator listens to, it makes other instances.
    """
    instances = campaign.wishes.instances
    if instances.generator is None:
        raise ScenarioError(
            f"{where} asks for further instances of a generator, but the campaign has none; name files with "
            "--instances, or values with --values"
        )
    key = int.from_bytes(hashlib.sha256(f"held-out {campaign.seed}".encode()).digest()[:7], "big")
    further = instances.model_copy(update={"first": instances.first + used, "answers": None})
    return replace(campaign, wishes=campaign.wishes.model_copy(update={"instances": further, "seed": key}))


def only(campaign: Scenario, rows: Iterable[ConfigRow]) -> Scenario:
    """Return the scenario with these configurations alone, each once."""
    distinct = {row.index: row for row in rows}.values()
    candidates = tuple(configuration_of(row) for row in distinct)
    return replace(campaign, candidates=candidates, known=(), begun_with=None).about_draws()


def _with(campaign: Scenario, section: Mapping[str, Any], where: str) -> Scenario:
    """Return the scenario with another `[instances]`, in random order: a part of them is still a random part."""
    duplicates = {"allow_duplicates": True} if campaign.wishes.instances.allow_duplicates else {}
    instances = InstancesSection.model_validate({**section, "sampling": "shuffle", **duplicates})
    wishes = campaign.wishes.model_copy(update={"instances": instances})
    return replace(campaign, wishes=wishes, place=_AsGiven(campaign.place, where))


class _AsGiven(SourceLocation):
    """Names the option in complaints about instances: the scenario's own line is right."""

    def __init__(self, place: SourceLocation, where: str) -> None:
        super().__init__(place.name)
        self._place = place
        self._where = where

    def __call__(self, *field: str | int) -> str:
        return self._where if field[:1] == ("instances",) else self._place(*field)


def used_in_tuning(samples: Iterable[SampleRow], campaign: Scenario, tested: FiniteStream) -> list[str]:
    """Return the names of the instances on which the campaign has made runs.

    A file is known by its content, whatever it is called. Generated instances have no digest on record: the files that
    were kept are read for it. Of those that are gone nothing is left but the name that the generator's number gave
    them; a file of that name counts as met.

    Args:
        samples: The positions that the campaign has used.
        campaign: Its scenario, which knows where generated files are kept.
        tested: The instances in question.
    """
    contents: set[str] = set()
    names: set[str] = set()
    for sample in samples:
        if sample.digest:
            contents.add(sample.digest)
            continue
        made = _made(sample, campaign)
        if made is not None and made.is_file():
            contents.add(digest_of_file(made))
        else:
            names.add(sample.instance if made is None else made.name)
    return [each.name for each in _all(tested) if each.digest in contents or Path(each.name).name in names]


def _made(sample: SampleRow, campaign: Scenario) -> Path | None:
    """Where the file of a generated instance is kept; None if the scenario makes none of that name."""
    stream = campaign.stream
    if not isinstance(stream, GeneratedStream):
        return None
    instance = stream.at(sample.position).instance
    return None if instance.path is None or instance.name != sample.instance else Path(instance.path)


def _all(stream: FiniteStream) -> list[Instance]:
    return [stream.at(position).instance for position in range(stream.length or 0)]


# On other instances: what configurations are worth there, by how much one beats another, and what was only luck.
#
# Every configuration is run on every held-out instance up to one captime. Means, and differences on the same
# instances, come with intervals that hold together with the probability asked for.

_WORTH_LITTLE = 0.01


@dataclass(frozen=True, slots=True)
class Worth:
    """What is known of a mean: what was seen, and what follows from it.

    Attributes:
        seen_low: Mean of the low ends: runs that were cut count as worth nothing.
        seen_high: Mean of the high ends: they count as if they had answered just then.
        low: Lower bound.
        high: Upper bound.
    """

    seen_low: float
    seen_high: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Validation:
    """What came out on the held-out instances.

    Attributes:
        n_instances: How many there were.
        delta: Allowed probability that any of the intervals is wrong.
        worth: Of every configuration, by name.
        better: By how much the first configuration beats each of the others, on the same instances, by name.
    """

    n_instances: int
    delta: float
    worth: Mapping[str, Worth]
    better: Mapping[str, Worth]


def validation_of(
    table: RuntimeTable, utility: Utility, delta: float, unfinished: FloatArray | None = None
) -> Validation:
    """Compare the configurations of a table that was measured on held-out instances; the first one with all others.

    Args:
        table: The runs.
        utility: What answers are worth.
        delta: Allowed probability that any interval is wrong.
        unfinished: Of the shape of the table: seconds after which runs that were given up were last seen unfinished;
            not a number for all other runs. Left out: none was given up.
    """
    check_delta(delta)
    low, high = score_ends(table, utility, unfinished)
    others = table.configs[1:]
    # Two ends for each mean and for each difference, all of them at once.
    log_inverse = math.log(2 * (len(table.configs) + len(others)) / delta)
    worth = {
        name: _worth(low[row], high[row], log_inverse, lambda value: value) for row, name in enumerate(table.configs)
    }
    better = {
        # Differences lie between -1 and 1; the bound is about numbers between 0 and 1.
        name: _worth(
            (1.0 + low[0] - high[row]) / 2.0,
            (1.0 + high[0] - low[row]) / 2.0,
            log_inverse,
            lambda value: 2.0 * value - 1.0,
        )
        for row, name in enumerate(others, start=1)
    }
    return Validation(low.shape[1], delta, worth, better)


def usual_captime(question: CampaignQuestion) -> float:
    """Return where an answer is worth next to nothing; a longer captime tells nothing about a mean."""
    return min(question.ceiling, float(question.utility.inverse(np.array(_WORTH_LITTLE))))


def refuse_if_silent(table: RuntimeTable, question: CampaignQuestion) -> None:
    """Refuse to call it a success if no run has answered: most likely these are no instances of that kind."""
    if (table.seconds < table.limit).any():
        return
    cut = int(np.count_nonzero(np.isfinite(table.seconds)))
    element = question.stream.at(0)
    raise TargetProgramError(
        f"none of the {table.seconds.size:,} runs has answered ({cut:,} were cut or given up, "
        f"{table.seconds.size - cut:,} failed), so nothing is known about the configurations here. Are these "
        "instances of the kind that the campaign was run on? "
        f"{question.program.how_started(0, element.instance, element.seed)}"
    )


def score_ends(
    table: RuntimeTable, utility: Utility, unfinished: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return utilities as intervals: an answer is worth what it is, a failure nothing, a cut run up to u(captime).

    A run that was given up after s seconds is worth anything from 0 to u(s).
    """
    cut = table.seconds >= table.limit
    cut &= np.isfinite(table.seconds)
    worth = utility(table.seconds)
    low = np.where(cut, 0.0, worth)
    high = np.where(cut, utility(np.array(table.limit)), worth)
    if unfinished is not None:
        given_up = ~np.isnan(unfinished)
        low[given_up] = 0.0
        high[given_up] = utility(unfinished[given_up])
    return low, high


def _worth(low: FloatArray, high: FloatArray, log_inverse: float, scale: Callable[[float], float]) -> Worth:
    lower, upper = Mixture()(low, high, log_inverse)
    return Worth(scale(float(low.mean())), scale(float(high.mean())), scale(lower), scale(upper))
