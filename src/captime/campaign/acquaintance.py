"""Whether instances are held out: which of them a campaign has met, told by what they hold."""

from collections.abc import Iterable
from pathlib import Path

from captime.ledger.rows import SampleRow
from captime.scenario import Scenario
from captime.streams import FiniteStream, GeneratedStream, Instance
from captime.streams.contents import digest_of_file


def met_before(samples: Iterable[SampleRow], campaign: Scenario, tested: FiniteStream) -> list[str]:
    """Names of the instances on which the campaign has run somebody.

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
