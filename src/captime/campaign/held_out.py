"""Held-out instances: a scenario that runs on them, and which of them a campaign has met, told by what they hold."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from captime.campaign.space_members import configuration_of
from captime.errors import ScenarioError
from captime.ledger.rows import ConfigRow, SampleRow
from captime.scenario import Scenario
from captime.scenario.errors import SourceLocation
from captime.scenario.models import InstancesSection
from captime.streams import FiniteStream, GeneratedStream, Instance
from captime.streams.files import digest_of_file


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
