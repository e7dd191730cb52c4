"""From `[instances]` to the stream that all configurations share."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from captime.errors import ScenarioError
from captime.programs.identity import find_command
from captime.programs.template import Template, passed_unchanged
from captime.scenario.complaints import Place
from captime.scenario.models import Instances
from captime.streams import FiniteStream, GeneratedStream
from captime.streams.files import (
    from_csv,
    from_list,
    from_patterns,
    from_values,
    look_at,
    read_answers,
    with_answers,
)
from captime.streams.generated import PLACEHOLDERS

_SECTION = "instances"
_WAYS = ("files", "list", "csv", "values", "generator")
_OF_GENERATORS = ("first", "suffix", "folder", "timeout")
_OF_FILES = ("sampling", "allow_duplicates")


def stream_of(
    wishes: Instances,
    place: Place,
    folder: Path,
    *,
    seed: int,
    environment: Mapping[str, str],
    generated: Path,
    given: Sequence[Any] | None = None,
    known: Sequence[str] = (),
) -> FiniteStream | GeneratedStream:
    """The stream that a scenario describes.

    Args:
        wishes: The section.
        place: The file, for messages.
        folder: Relative names are seen from here.
        seed: The scenario's.
        environment: In which a generator runs.
        generated: Where generated files are kept if the section does not say.
        given: Python objects in place of what the section says, for library calls.
        known: Names of the instances of a stream begun earlier, in its order; new ones follow them.
    """
    ways = [way for way in _WAYS if getattr(wishes, way) is not None]
    if given is None and len(ways) != 1:
        found = f"says {' and '.join(ways)}" if ways else "does not say where instances come from"
        raise ScenarioError(f"{place(_SECTION)} {found}; expected exactly one of {', '.join(_WAYS)}")
    answers = {} if wishes.answers is None else read_answers(folder / wishes.answers, place(_SECTION, "answers"))
    if ways == ["generator"]:
        _refuse(wishes, _OF_FILES, place, "a generator")
        where = place(_SECTION, "generator")
        return _generated(wishes, where, folder, seed=seed, environment=environment, kept=generated, answers=answers)
    _refuse(wishes, _OF_GENERATORS, place, "listed instances")
    groups = None
    if given is not None or wishes.values is not None:
        values = wishes.values if given is None else list(given)
        instances = from_values(values or [], place(_SECTION, "values"), allow_duplicates=wishes.allow_duplicates)
    else:
        where = place(_SECTION, ways[0])
        listed = _listed(wishes, folder, where)
        instances, groups = look_at(listed, folder, where, allow_duplicates=wishes.allow_duplicates)
    for each in instances:
        passed_unchanged(each.path or each.name, f"instance {each.name!r}", place(_SECTION))
    if answers:
        instances = with_answers(instances, answers, place(_SECTION, "answers"))
    return FiniteStream(instances, wishes.sampling, seed, groups=groups, known=known)


def _listed(wishes: Instances, folder: Path, where: str) -> list[Any]:
    if wishes.files is not None:
        return from_patterns([wishes.files] if isinstance(wishes.files, str) else wishes.files, folder, where)
    if wishes.list is not None:
        return from_list(folder / wishes.list, where)
    return from_csv(folder / str(wishes.csv), where)


def _refuse(wishes: Instances, fields: Sequence[str], place: Place, whose: str) -> None:
    """A field that has no meaning here was probably meant to have one."""
    for field in fields:
        if field in wishes.model_fields_set:
            raise ScenarioError(f"{place(_SECTION, field)} means nothing for {whose}; leave it out")


def _generated(
    wishes: Instances,
    where: str,
    folder: Path,
    *,
    seed: int,
    environment: Mapping[str, str],
    kept: Path,
    answers: Mapping[str, bytes],
) -> GeneratedStream:
    command = wishes.generator or []
    template = Template(command, where)
    template.check(PLACEHOLDERS)
    if not {"k", "seed"} & template.names:
        raise ScenarioError(
            f"{where} makes the same instance every time; write {{k}}, the number of the instance, or {{seed}}, a "
            "random seed, where the generator takes its seed"
        )
    found = find_command(command, folder, environment, where)
    return GeneratedStream(
        command,
        kept if wishes.folder is None else folder / wishes.folder,
        seed,
        first=wishes.first,
        suffix=wishes.suffix,
        timeout=wishes.timeout,
        argv=found.words,
        identity=found.digests,
        answers=answers,
    )
