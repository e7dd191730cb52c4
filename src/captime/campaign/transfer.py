"""What earlier campaigns on the same target may teach the model that proposes configurations, and what they must not.

Runs on record elsewhere are no evidence: they touch no bound, no rank, no gamma. They may teach a model, and a wrong
model costs time only, as long as it knows nothing of positions on which its proposals will be judged (docs/engine.md,
step 15). An instance that an earlier campaign has run may well be one that this stream still brings. So every instance
on record elsewhere has a *place*: the last position of this stream that could be the same, or none. And because a
campaign decides by all it has seen (what to propose, what to run again), a run has the last place of everything that
had been begun by the time it came back. A proposal that begins at s is made from runs whose place is before s.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from captime.arrays import FloatArray, IntArray
from captime.errors import LedgerDamaged, ScenarioDiffers, ScenarioError
from captime.ledger import LedgerReader
from captime.ledger.reading import which_mean
from captime.ledger.rows import ConfigRow, Noted, SampleRow
from captime.scenario.identity import as_recorded_now, difference, plain
from captime.scenario.spec import CampaignQuestion
from captime.spaces import Known, Settings, Space
from captime.streams.finite import TARGET, InstanceStream, Seeds

NOTE = "learned"
"""What a ledger calls the note about an earlier campaign."""
_NOWHERE, _NEVER = -1, np.iinfo(np.int64).max
SAME_TARGET = ("target", "clock")
"""What has to be the same in two scenarios, if the runs of one are to teach the model of the other."""


@dataclass(frozen=True, slots=True)
class EarlierCampaign:
    """What one earlier campaign can teach.

    Attributes:
        ledger: Its ledger.
        campaign: Its name.
        head: Hash of the last row that was read.
        settings: Of its configurations, those of this space only.
        config: By run, which of them.
        place: By run, the last position of this stream that could be the same as anything begun before; -1 for none.
            Increasing.
        low: By run, what it is worth at least.
        high: By run, at most.
        outside: Instances and digests that are not in this stream: they must not join it later.
    """

    ledger: str
    campaign: str
    head: str
    settings: tuple[Settings, ...]
    config: IntArray
    place: IntArray
    low: FloatArray
    high: FloatArray
    outside: tuple[tuple[str, str], ...]

    def until(self, start: int) -> list[Known]:
        """Return what may be known about a configuration that will be judged on positions from `start` on."""
        last = int(np.searchsorted(self.place, start))
        which, size = self.config[:last], len(self.settings)
        n = np.bincount(which, minlength=size)
        low, high = (np.bincount(which, ends[:last], size) / np.maximum(n, 1) for ends in (self.low, self.high))
        return [
            Known(settings, float(low[place]), float(high[place]), int(n[place]))
            for place, settings in enumerate(self.settings)
            if n[place]
        ]

    def facts(self) -> dict[str, object]:
        """As the ledger of this campaign notes it."""
        return {
            "ledger": self.ledger,
            "campaign": self.campaign,
            "head": self.head,
            "runs": len(self.place),
            "configurations": len(self.settings),
            "held_back": int((self.place > _NOWHERE).sum()),
            "outside": [list(each) for each in self.outside],
        }


class EarlierCampaigns:
    """All that earlier campaigns can teach.

    Args:
        courses: One for each.
    """

    def __init__(self, courses: Sequence[EarlierCampaign]) -> None:
        self.courses = tuple(courses)
        self._told: tuple[int, list[Known]] = (0, [])

    def until(self, start: int) -> list[Known]:
        """See a single one; asked again for the same position, it is not counted again."""
        if self._told[0] != start:
            self._told = (start, [known for course in self.courses for known in course.until(start)])
        return self._told[1]


def learn_from(paths: Iterable[Path], question: CampaignQuestion) -> EarlierCampaigns | None:
    """Read earlier ledgers; None if there are none.

    Args:
        paths: The ledgers.
        question: What is asked now.
    """
    courses = [_course(path, question) for path in paths]
    return EarlierCampaigns(courses) if courses else None


def _course(path: Path, question: CampaignQuestion) -> EarlierCampaign:
    proposer = question.proposer
    if proposer is None or not proposer.model:
        raise ScenarioError(
            f"{path} was to teach the model that proposes configurations, but this scenario has none: it needs a "
            "[space] without model = false. Runs on record elsewhere are never evidence"
        )
    with LedgerReader(path) as reader, reader.snapshot():
        if reader.missing:
            raise LedgerDamaged(reader.missing, "Bring back what is missing, or leave out --learn-from")
        _check_target(path, reader.scenario, question.identity)
        fitting = dict(_fitting(reader.configs, proposer.space))
        samples, columns = reader.sample_rows(), reader.outcomes()
        registered, notes = reader.samples()["sequence"], reader.events()
        campaign, head = reader.campaign_id, reader.head
    if has_learned(notes):
        raise ScenarioError(
            f"{path} had itself learnt from an earlier campaign, so what its proposals knew cannot be told; name the "
            "ledger that it learnt from"
        )
    numbers = {config: number for number, config in enumerate(fitting)}
    rows = first_attempts(columns, numbers)
    places = PositionMap(question.stream)
    single = np.array([places.of(sample) for sample in samples], dtype=np.int64)
    so_far = np.maximum.accumulate(np.append(_NOWHERE, single))
    place = so_far[np.searchsorted(registered, columns["sequence"][rows])]
    order = np.argsort(place, kind="stable")
    status, runtime = columns["status"][rows[order]], columns["runtime"][rows[order]]
    high = np.where(which_mean(status, lambda each: each.never), 0.0, np.asarray(question.utility(runtime)))
    return EarlierCampaign(
        ledger=path.name,
        campaign=campaign,
        head=head,
        settings=tuple(fitting.values()),
        config=np.array([numbers[config] for config in columns["config"][rows[order]].tolist()], dtype=np.int64),
        place=place[order],
        low=np.where(which_mean(status, lambda each: each.answered), high, 0.0),
        high=high,
        outside=tuple(
            sorted(
                (each.instance, each.digest)
                for each, one in zip(samples, single.tolist(), strict=True)
                if one == _NOWHERE
            )
        ),
    )


def first_attempts(columns: Mapping[str, NDArray[Any]], configs: Container[int]) -> IntArray:
    """Return which rows teach: of several attempts at a run the first that says something.

    Not the newest: whether a run was tried again tells about what came later.

    Args:
        columns: Outcomes on record, in the order in which they came.
        configs: Configurations of the rows.
    """
    first = dict[tuple[int, int], int]()
    counts = (which_mean(columns["status"], lambda each: each.counts) & ~columns["orphan"]).tolist()
    told = zip(columns["config"].tolist(), columns["position"].tolist(), counts, strict=True)
    for row, (config, position, counted) in enumerate(told):
        if config in configs and counted:
            first.setdefault((config, position), row)
    return np.array(list(first.values()), dtype=np.int64)


def _check_target(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    parts = ({name: plain(each.get(name)) for name in SAME_TARGET} for each in (as_recorded_now(before), now))
    differs = difference(*parts)
    if differs:
        listed = "".join(f"\n  {line}" for line in differs)
        raise ScenarioDiffers(
            f"{path}: these are runs of another target, and teach nothing about this one. It differs in:{listed}\n"
            "Name a ledger of the same target, or leave --learn-from out"
        )


def _fitting(configs: Iterable[ConfigRow], space: Space) -> Iterable[tuple[int, Settings]]:
    """Yield those configurations that are configurations of this space."""
    for row in configs:
        settings: Any = row.settings.get("settings")
        if "command" in row.settings or not isinstance(settings, dict):
            continue
        try:
            space.check(settings)
        except ScenarioError:
            continue
        yield row.index, settings


# ------------------------------------------------------------------ which position could be the same


class PositionMap:
    """Where a sample of another stream could come again in this one; in doubt it could.

    Args:
        stream: This one.
    """

    def __init__(self, stream: InstanceStream) -> None:
        described = stream.describe()
        self._stream = stream
        self._sampling = str(described.get("sampling", ""))
        self._seeds = Seeds(TARGET, int(str(described.get("seed", 0))))
        self._first = int(str(described.get("first", 0)))
        self._by_digest: dict[str, int] = {}
        self._by_name: dict[str, tuple[int, bool]] = {}
        listed = described.get("list")
        if stream.length is not None:
            met = [stream.at(position).instance for position in range(stream.length)]
            for position, instance in enumerate(met):
                self._enter(instance.name, instance.digest, position)
            # Variations of an instance, of which only one is met, say as much about it as it does itself.
            names = {instance.name for instance in met}
            for name, digest in listed if isinstance(listed, list) else ():
                if name not in names:
                    self._enter(name, digest, _NEVER)

    def _enter(self, name: str, digest: str, position: int) -> None:
        if digest:
            self._by_digest[digest] = max(position, self._by_digest.get(digest, _NOWHERE))
        before, unknown = self._by_name.get(short(name), (_NOWHERE, False))
        self._by_name[short(name)] = (max(position, before), unknown or not digest)

    def of(self, sample: SampleRow) -> int:
        """Return the last position that could be the same as this one; -1 if none could, a huge number if unknown."""
        return max(self._by_instance(sample), self._by_seed(sample))

    def _by_seed(self, sample: SampleRow) -> int:
        """Return the position with the same seed: there the luck is the same, also beyond the stream."""
        return sample.position if self._seeds.at(sample.position) == sample.seed else _NOWHERE

    def _by_instance(self, sample: SampleRow) -> int:
        if self._sampling == "replace":
            # "Best" means best on exactly these instances. What is known of them says nothing about which comes when.
            return _NOWHERE
        if self._stream.length is None:
            number = short(sample.instance)
            if self._sampling != "generator":
                return _NEVER
            return max(_NOWHERE, int(number) - self._first) if re.fullmatch("[0-9]{1,15}", number) else _NOWHERE
        if sample.digest in self._by_digest:
            return self._by_digest[sample.digest]
        position, unknown = self._by_name.get(short(sample.instance), (_NOWHERE, False))
        # Two contents that are known and differ are different, whatever they are called.
        return position if unknown or not sample.digest else _NOWHERE


def short(name: str) -> str:
    """Return a name without folders and ending.

    >>> short("instances/easy/17.cnf.gz")
    '17'
    """
    return name.rsplit("/", 1)[-1].split(".", 1)[0] or name


# ------------------------------------------------------------------ what is said about it


def has_learned(notes: Iterable[Noted]) -> bool:
    """Return whether the model of a campaign has learnt from an earlier one."""
    return any(note.kind == NOTE for note in notes)


def learned_words(notes: Iterable[Noted]) -> str:
    """Return what the certificate has to say about earlier campaigns; empty if nothing was learnt from any."""
    facts = {str(note.facts["campaign"]): note.facts for note in notes if note.kind == NOTE}
    if not facts:
        return ""
    runs = sum(int(str(each["runs"])) for each in facts.values())
    names = sorted({str(each["ledger"]) for each in facts.values()})
    return (
        f"The model that proposed configurations could learn from up to {runs:,} runs of {len(facts)} earlier "
        f"campaign{'s' if len(facts) > 1 else ''} ({', '.join(names)}), from each only once the stream had passed its "
        "instance, if it brings it at all. Nothing else learnt: those runs are no evidence, and no proposal was judged "
        "on an instance that it could know from them."
    )


def check_unlearned(notes: Iterable[Noted], added: Iterable[Sequence[str]], path: Path) -> None:
    """Refuse instances that the model of this ledger has learnt from: they would come as no surprise.

    Args:
        notes: Of the ledger.
        added: Names and digests of instances that are to join the stream.
        path: The ledger, for the message.
    """
    outside: list[Sequence[str]] = []
    for note in notes:
        listed = note.facts.get("outside") if note.kind == NOTE else None
        outside += listed if isinstance(listed, list) else []
    digests = {digest for _, digest in outside if digest}
    unknown = {short(name) for name, digest in outside if not digest}
    names = {short(name) for name, _ in outside}
    for name, digest in added:
        if digest in digests or short(name) in unknown or (not digest and short(name) in names):
            raise ScenarioDiffers(
                f"{path}: instance {name!r} was added, but the model of this campaign has learnt from runs on it "
                "(--learn-from), so its proposals may have been made for it. Take it out again, or begin a new ledger"
            )
