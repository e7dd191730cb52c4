"""Lessons from earlier campaigns: which runs have which place, what the model is told, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from campaign_stand_ins import folder, ledger_in
from captime.campaign.transfer import PositionMap, check_unlearned, first_attempts, learn_from, learned_words, short
from captime.errors import ScenarioDiffers, ScenarioError
from captime.ledger import LedgerReader
from captime.ledger.reading import STATUSES
from captime.ledger.rows import Noted, SampleRow
from captime.runs import Status
from captime.scenario.configurations import space_as_begun
from captime.spaces import Proposer, read_space_section
from captime.streams import FiniteStream, GeneratedStream
from captime.streams.finite import Instance
from captime.utilities import parse_utility
from space_campaigns import Section, on_space, search

__all__ = ["folder"]

NEVER = np.iinfo(np.int64).max


def files(*names: str, sampling: str = "given", seed: int = 1, **more: object) -> FiniteStream:
    """A stream of files with these names; what they hold is called after them."""
    return FiniteStream([Instance(name, digest=f"#{name}") for name in names], sampling, seed, **more)  # type: ignore[arg-type]


def sample(instance: str, digest: str = "", position: int = 0) -> SampleRow:
    """As an earlier ledger has it, with a seed that no stream gives."""
    return SampleRow(position, instance, digest, 0)


def test_what_is_still_to_come_is_known_by_its_content() -> None:
    """Whatever it is called now; and two contents that differ are different whatever they are called."""
    places = PositionMap(files("in/a.cnf", "in/b.cnf", "in/c.cnf"))
    assert places.of(sample("elsewhere/x.cnf", "#in/c.cnf")) == 2
    assert places.of(sample("in/b.cnf", "#other")) == -1
    assert places.of(sample("d.cnf", "#d.cnf")) == -1


def test_where_a_content_is_not_known_the_name_decides() -> None:
    """Folders and endings do not count: rather too much is held back than too little."""
    places = PositionMap(files("in/a.cnf", "in/b.cnf", "other/a.cnf.gz"))
    assert places.of(sample("old/a.cnf")) == 2
    assert places.of(sample("old/b.txt")) == 1
    assert places.of(sample("old/c.cnf")) == -1
    unread = FiniteStream([Instance("a"), Instance("b")], "given", 1)
    assert PositionMap(unread).of(sample("b.cnf", "#b")) == 1


def test_the_last_of_several_places_counts() -> None:
    """An instance that comes twice is passed when it has come twice."""
    listed = (("a", "#1"), ("b", "#2"), ("c", "#1"))
    twice = FiniteStream([Instance(name, digest=digest) for name, digest in listed], "given", 1)
    assert PositionMap(twice).of(sample("a", "#1")) == 2


def test_variations_of_an_instance_are_never_passed() -> None:
    """Of a group one member is met; what is known of the others is known of it."""
    grouped = files("a1", "a2", "b1", "b2", groups=["a", "a", "b", "b"])
    met = {grouped.at(position).instance.name for position in range(2)}
    for name in ("a1", "a2", "b1", "b2"):
        place = PositionMap(grouped).of(sample(name, f"#{name}"))
        assert (place == NEVER) == (name not in met)


def test_a_generator_counts_by_numbers() -> None:
    """The same number may be the same instance, whatever the campaign's seed: a generator need not ask for one."""
    places = PositionMap(GeneratedStream(["make", "{k}"], Path("nowhere"), 5, first=10))
    assert places.of(sample("13")) == 3
    assert places.of(sample("9")) == -1
    assert places.of(sample("kept.cnf", "#kept")) == -1


def test_two_campaigns_with_one_seed_share_their_luck() -> None:
    """Also where instances come back: the same seed at the same position is the same draw."""
    endless = files("a", "b", "c", sampling="replace", seed=7)
    same = [SampleRow(position, "a", "#a", endless.at(position).seed) for position in range(5)]
    assert [PositionMap(endless).of(each) for each in same] == [0, 1, 2, 3, 4]
    other = files("a", "b", "c", sampling="replace", seed=8)
    assert {PositionMap(other).of(each) for each in same} == {-1}
    finite = files("x", "y", seed=7)
    assert PositionMap(finite).of(SampleRow(1, "a", "#a", finite.at(1).seed)) == 1
    assert PositionMap(finite).of(SampleRow(4, "a", "#a", endless.at(4).seed)) == 4  # the stream may become longer


def test_a_later_attempt_does_not_hide_the_first() -> None:
    """What a model is told up to a position must not depend on whether a run was tried again behind it."""
    lost, capped, completed = (STATUSES.index(each) for each in (Status.LOST, Status.CAPPED, Status.COMPLETED))
    told = [  # configuration, position, orphan, status
        (0, 0, False, capped),
        (0, 1, False, lost),
        (1, 0, True, completed),
        (0, 1, False, completed),
        (2, 0, False, completed),
        (1, 0, False, completed),
        (0, 0, False, completed),
    ]
    names = ("config", "position", "orphan", "status")
    columns = {name: np.array(each) for name, each in zip(names, zip(*told, strict=True), strict=True)}
    rows = first_attempts(columns, {0, 1}).tolist()
    assert rows == [0, 3, 5]
    for known in range(1, len(told)):
        before = {name: column[:known] for name, column in columns.items()}
        assert first_attempts(before, {0, 1}).tolist() == [row for row in rows if row < known]


def test_short_names() -> None:
    """Without folders and endings, but never nothing."""
    assert [short(name) for name in ("a/b/17.cnf.gz", "17", ".hidden", "a/")] == ["17", "17", ".hidden", "a/"]


# ---------------------------------------------------------------------------- from ledger to model


def test_a_model_is_told_only_what_has_been_passed(folder: Path) -> None:
    """Means of raw runtimes, scored with the utility of now; runs that were cut are intervals."""
    old = ledger_in(folder, "old.ledger")
    search(on_space(1), old)
    asked = replace(on_space(1), utility=parse_utility("step(30)"))
    earlier = learn_from([old], asked)
    assert earlier is not None
    course = earlier.courses[0]
    with LedgerReader(old) as reader:
        runs, configs = reader.outcomes(), reader.configs
        registered, positions = (reader.samples()[name] for name in ("sequence", "position"))
    # The stand-in's stream has one seed per position, whatever the campaign: everything has a place. What came back
    # after a later position was begun may have been run because of that.
    assert earlier.until(0) == []
    assert earlier.until(1) == []
    last = np.array([positions[registered < row].max() for row in runs["sequence"]])
    for start in (4, 17, 10**6):
        told = {tuple(known.settings.items()): known for known in earlier.until(start)}
        for config in configs:
            here = (runs["config"] == config.index) & (last < start) & (runs["runtime"] > 0.0)
            known = told.get(tuple(config.settings["settings"].items()))  # type: ignore[attr-defined] # a dict
            assert (known is None) == (not here.any())
            if known is not None:
                assert known.n == here.sum()
                assert known.high == pytest.approx(np.asarray(asked.utility(runs["runtime"][here])).mean())
                assert 0.0 <= known.low <= known.high
    assert course.facts()["runs"] == len(course.place)
    assert course.outside == ()


def test_the_certificate_says_from_whom_the_model_has_learnt(folder: Path) -> None:
    """Also later, from the ledger alone; evidence and draws are as they would have been."""
    old, new, plain = (ledger_in(folder, name) for name in ("old.ledger", "new", "plain"))
    search(on_space(1, seed=1), old)
    earlier = learn_from([old], on_space(1))
    result = search(on_space(1), new, earlier=earlier)
    assert "old.ledger" in result.learned
    assert "no evidence" in result.learned
    again = search(on_space(1), new)
    assert again.learned == result.learned
    assert again.certificate == result.certificate
    search(on_space(1), plain)
    with LedgerReader(new) as one, LedgerReader(plain) as other:
        notes = [note for note in one.events() if note.kind == "learned"]
        draws = [[each.settings for each in reader.configs if each.origin == "random"] for reader in (one, other)]
        assert one.configs[0] == other.configs[0]
        positions = [set(reader.outcomes()["position"][reader.outcomes()["config"] == 0]) for reader in (one, other)]
    assert len(notes) == 1
    shorter = min(map(len, draws))
    assert draws[0][:shorter] == draws[1][:shorter]
    assert min(positions[0]) == min(positions[1]) == 0


def test_a_ledger_that_has_learnt_itself_does_not_teach(folder: Path) -> None:
    """Its proposals may know what an older one has seen, and that is not on record."""
    oldest, old = ledger_in(folder, "oldest"), ledger_in(folder, "old")
    search(on_space(1), oldest)
    search(on_space(1), old, earlier=learn_from([oldest], on_space(1)))
    with pytest.raises(ScenarioError, match="itself learnt"):
        learn_from([old], on_space(1))


def test_another_target_teaches_nothing(folder: Path) -> None:
    """And a scenario without a model cannot be taught."""
    old = ledger_in(folder, "old")
    search(on_space(1), old)
    now = on_space(1)
    other = replace(now, identity={**now.identity, "target": {"command": ["another"]}})
    with pytest.raises(ScenarioDiffers, match="another target"):
        learn_from([old], other)
    for question in (replace(now, proposer=None), replace(now, proposer=Proposer(Section().space(), 0, model=False))):
        with pytest.raises(ScenarioError, match="model"):
            learn_from([old], question)
    assert learn_from([], now) is None


def test_configurations_of_another_space_are_passed_over(folder: Path) -> None:
    """What does not fit teaches nothing, and does no harm."""
    old = ledger_in(folder, "old")
    search(on_space(1), old)
    now = on_space(1)
    section = {"y": {"type": "int", "low": 1, "high": 9, "default": 2}}
    other = replace(now, proposer=Proposer(read_space_section(section, "here", Path()), 3))
    earlier = learn_from([old], other)
    assert earlier is not None
    assert earlier.until(10**6) == []


def test_instances_that_were_learnt_from_cannot_join_the_stream() -> None:
    """By content, or by name where no content is known."""
    notes = [Noted(3, "learned", {"outside": [["in/a.cnf", "#1"], ["17", ""]]}), Noted(4, "stopped", {})]
    path = Path("some.ledger")
    check_unlearned(notes, [["a.cnf", "#2"], ["b.cnf", "#3"]], path)
    check_unlearned(notes[1:], [["x", "#1"]], path)
    for added in (["x", "#1"], ["17.cnf", "#9"], ["a.cnf", ""]):
        with pytest.raises(ScenarioDiffers, match="learnt"):
            check_unlearned(notes, [added], path)


def test_words_about_earlier_campaigns() -> None:
    """Each campaign once, and nothing where nothing was learnt."""
    assert learned_words([]) == ""
    facts = {"campaign": "x", "runs": 1200, "ledger": "old.ledger", "head": "h"}
    notes = [Noted(1, "learned", facts), Noted(2, "learned", {**facts, "campaign": "y", "ledger": "older.ledger"})]
    assert "1,200 runs of 1 earlier campaign (old.ledger)" in learned_words(notes[:1])
    assert "only once the stream had passed its instance" in learned_words(notes[:1])
    assert "2,400 runs of 2 earlier campaigns (old.ledger, older.ledger)" in learned_words(notes)


def test_a_pool_as_begun_has_the_favourites_it_had() -> None:
    """Those that were added later are no part of it; nothing changes where nothing was added."""
    full = Proposer(Section(3).space(), 3)
    begun = space_as_begun(full, 2)
    assert begun.n_listed == 2
    assert [begun.propose(index) for index in range(2)] == [full.propose(index) for index in range(2)]
    assert begun.propose(2) == full.propose(4)
    assert space_as_begun(full, None) is space_as_begun(full, 4) is full
