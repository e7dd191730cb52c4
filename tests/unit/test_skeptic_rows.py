"""The skeptic's second reading of streams and outcomes: the same as the engine's, and each contradiction is named."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from captime.errors import LedgerDamaged
from captime.ledger.rows import SampleRow
from captime.runs import STATUS_OF, Verdict
from captime.skeptic.outcomes import STATUSES, Context, OutcomeRules
from captime.skeptic.stream import Stream
from captime.streams import FiniteStream, GeneratedStream, Instance, InstanceStream

NAMES = [f"{letter}{number}" for letter in "ca" for number in (3, 11, 2, 7, 1)]
GROUPS = ["x", "y", "x", "z", "z", "x", "w", "v", "v", "u"]


def instances(names: Sequence[str] = NAMES) -> list[Instance]:
    """Instances that are their names."""
    return [Instance(name, digest=f"digest of {name}") for name in names]


def read_again(stream: InstanceStream, seed: int, *, listed: bool = True) -> Stream:
    """The skeptic's stream, from what a scenario says about the engine's."""
    told = stream.describe()
    names = [str(entry[0]) for entry in told.get("list", ())]  # type: ignore[attr-defined] # a list of pairs
    order = stream.listed_as(names) if listed and isinstance(stream, FiniteStream) else None
    return Stream(told, seed, stream.length, order)


def check_all(mine: Stream, engine: InstanceStream, count: int, first: int = 0) -> None:
    """Every position of the engine's stream passes; with another seed or instance, none does."""
    for position in range(first, count):
        element = engine.at(position)
        sample = SampleRow(position, element.instance.name, element.instance.digest, element.seed)
        mine.check(1, sample)
        with pytest.raises(LedgerDamaged, match="the scenario's seed gives"):
            mine.check(1, SampleRow(position, sample.instance, sample.digest, sample.seed % 7 + 1))
        with pytest.raises(LedgerDamaged, match="the scenario and its seed give"):
            mine.check(1, SampleRow(position, "another", sample.digest, sample.seed))


@pytest.mark.parametrize("groups", [None, GROUPS])
@pytest.mark.parametrize("sampling", ["shuffle", "given", "replace"])
def test_finite_streams_are_the_same_by_both_readings(sampling: str, groups: list[str] | None) -> None:
    """Each once in random order, as listed, with replacement; with variations of each other or without."""
    for seed in range(20):
        engine = FiniteStream(instances(), sampling, seed, groups=groups)
        mine = read_again(engine, seed)
        check_all(mine, engine, engine.length or 30)
        assert mine.recomputed
        if engine.length is not None:
            with pytest.raises(LedgerDamaged, match=f"the stream has {engine.length}"):
                mine.check(9, SampleRow(engine.length, "c3"))


@pytest.mark.parametrize("names", [NAMES, sorted(NAMES)])
def test_a_stream_that_grew_is_the_same_by_both_readings(names: list[str]) -> None:
    """What was added follows, in an order of its own."""
    for seed in range(20):
        engine = FiniteStream(instances(names[:4]), "shuffle", seed)
        mine = read_again(engine, seed)
        known = [str(entry[0]) for entry in engine.describe()["list"]]  # type: ignore[attr-defined] # a list of pairs
        longer = FiniteStream(instances(names), "shuffle", seed, known=known)
        added = longer.describe()["list"][4:]  # type: ignore[index] # a list of pairs
        facts = {"list": added, "length": 10, "listed": longer.listed_as([entry[0] for entry in added])}
        mine.grow(facts, 5)
        check_all(mine, longer, 10)
        assert mine.recomputed
        turned = {"list": [added[1], added[0], *added[2:]], "length": 10, "listed": "by-name"}
        with pytest.raises(LedgerDamaged, match="from position 4 on stand in another order than the seed gives"):
            read_again(engine, seed).grow(turned, 5)
        with pytest.raises(LedgerDamaged, match="row 5 makes the stream 11 positions long"):
            read_again(engine, seed).grow({**facts, "length": 11}, 5)


def test_groups_that_grew_are_the_same_by_both_readings() -> None:
    """Variations of what was there are listed and not met; without groups on record, the order is taken as told."""
    for seed in range(20):
        listed: list[tuple[str, str]] = []
        known: list[str] = []
        mine: Stream | None = None
        for added in (["b1", "a1", "b2", "a2", "c1"], ["e1", "d1", "a3", "d2"], ["c2"], ["g1", "f1", "e2"]):
            listed += [(name, name[0]) for name in added]
            engine = FiniteStream(
                instances([name for name, _ in listed]), groups=[group for _, group in listed], seed=seed, known=known
            )
            told: Any = engine.describe()
            new, groups = told["list"][len(known) :], told["groups"][len(known) :]
            facts = {"list": new, "length": engine.length, "listed": engine.listed_as([name for name, _ in new])}
            if mine is None:
                mine = begun = read_again(engine, seed)
            else:
                mine.grow({**facts, "groups": groups}, 5)
                assert mine.recomputed
            check_all(mine, engine, engine.length or 0)
            known = [name for name, _ in told["list"]]
        begun.grow({"list": [["z", ""]], "length": (engine.length or 0) + 1}, 5)
        assert not begun.recomputed


def test_an_order_that_is_not_on_record_is_tried_by_name() -> None:
    """Ledgers of earlier releases: files found by a pattern stand in the order of their names; of others it is said."""
    by_name = FiniteStream(instances(sorted(NAMES)), "shuffle", 3)
    assert by_name.listed_as([entry[0] for entry in by_name.describe()["list"]]) == "by-name"  # type: ignore[attr-defined] # pairs
    assert read_again(by_name, 3, listed=False).recomputed
    by_number = FiniteStream(instances([str(number) for number in range(30)]), "shuffle", 3)
    assert read_again(by_number, 3, listed=False).recomputed
    assert not read_again(FiniteStream(instances(), "shuffle", 3), 3, listed=False).recomputed
    with pytest.raises(LedgerDamaged, match="is no order of as many"):
        Stream(by_name.describe(), 3, 10, [0] * 10)


def test_generated_streams_are_the_same_by_both_readings(tmp_path: Path) -> None:
    """Numbers in place of names, and no content before they are made."""
    engine = GeneratedStream(["make", "{seed}", "{output}"], tmp_path, 4, first=100)
    check_all(read_again(engine, 4), engine, 20)
    check_all(read_again(engine, 4), engine, 4105, 4090)


# ---------------------------------------------------------------------- outcomes

SCENARIO: dict[str, Any] = {
    "clock": "cpu",
    "instances": {"list": [["i", ""], ["free", ""]], "answers": {"i": b"42".hex()}},
    "target": {
        "repeatable": True,
        "answer": "^s (.*)",
        "exit_codes": [0, 10],
        "function": None,
        "wrapper": None,
        "verifier": None,
        "time": "measured",
        "tolerance": 1e-6,
        "output_limit": 100,
        "disk_limit": None,
    },
}
ANSWERED: dict[str, Any] = {
    "status": "completed",
    "verdict": "answered",
    "runtime": 1.5,
    "cost": 1.6,
    "cpu_ns": 1_600_000_000,
    "wall_ns": 2_000_000_000,
    "exit_code": 10,
    "signal": None,
    "answer": b"42.0",
    "reported": None,
    "leftovers": 0,
    "output_bytes": 50,
}
CRASH = {"status": "failed", "verdict": "crash", "exit_code": 1, "answer": None}
UNKNOWN = {"status": "failed", "verdict": "unknown"}
WRONG = {"status": "failed", "verdict": "wrong"}
CAPPED = {"status": "capped", "verdict": "capped", "runtime": 4.0, "cost": 4.0, "cpu_ns": 4_000_000_000}
OUTPUT = {"status": "failed", "verdict": "output"}
LOST = {"status": "lost", "verdict": "lost", "cost": 0.0, "cpu_ns": None, "wall_ns": None, "exit_code": None}


def complaint(
    outcome: dict[str, Any],
    target: dict[str, Any] | None = None,
    *,
    config: dict[str, Any] | None = None,
    instance: str = "i",
    seen: float = 0.0,
    **scenario: Any,
) -> str:
    """What is wrong with an outcome, compared with an answered run of 1.5 s; nothing if nothing is."""
    told = {**SCENARIO, **scenario, "target": {**SCENARIO["target"], **(target or {})}}
    context = Context(4.0, {"name": "c", **(config or {})}, instance, seen)
    try:
        OutcomeRules(told).check(7, {**ANSWERED, **outcome}, context)
    except LedgerDamaged as refused:
        return str(refused)
    return ""


FINE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "answered": ({}, {}),
    "answered where no answer is known": ({"answer": b"7"}, {"instance": "free"}),
    "answered by a command of its own": ({"exit_code": 3}, {"config": {"exit_codes": [3]}}),
    "answered by a wrapper": ({"exit_code": 77}, {"target": {"wrapper": "aclib", "exit_codes": None}}),
    "answered by its own clock": ({"runtime": 0.3, "reported": 0.3}, {"target": {"time": "reported"}}),
    "answered on a machine whose seconds are converted": ({"runtime": 3.0}, {"machines": {"rule": "normalised"}}),
    "answered by the wall clock": ({"runtime": 2.0, "cost": 2.0}, {"clock": "wall"}),
    "answered, and left much running": ({"cost": 60.0, "cpu_ns": 60_000_000_000, "leftovers": 3}, {}),
    "capped": (CAPPED, {}),
    "capped by its own clock": (
        {**CAPPED, "cost": 1.0, "cpu_ns": 10**9, "reported": 4.5},
        {"target": {"time": "reported"}},
    ),
    "cut by our clock": ({**CAPPED, "status": "abandoned", "runtime": 0.0}, {"target": {"time": "reported"}}),
    "cancelled": ({"status": "capped", "verdict": "cancelled"}, {}),
    "cancelled for good": ({"status": "abandoned", "verdict": "cancelled"}, {"target": {"repeatable": False}}),
    "slept": ({"status": "abandoned", "verdict": "wall"}, {}),
    "gave up by its own clock": (
        {"status": "abandoned", "verdict": "wall", "runtime": 3.0, "reported": 3.0},
        {"target": {"time": "reported", "wrapper": "aclib"}},
    ),
    "crashed": (CRASH, {}),
    "killed": ({**CRASH, "exit_code": None, "signal": 11}, {}),
    "crashed by its own account": ({**CRASH, "exit_code": 0}, {"target": {"function": "f"}}),
    "silent": ({**UNKNOWN, "answer": None}, {}),
    "another limit of its own": ({**UNKNOWN, "exit_code": 0}, {"target": {"exit_codes": [10]}}),
    "a verifier that does not know": (UNKNOWN, {"target": {"verifier": ["v"]}}),
    "wrong": ({**WRONG, "answer": b"43"}, {}),
    "wrong, says the verifier": (WRONG, {"target": {"verifier": ["v"]}}),
    "wrong on an instance that was added": ({**WRONG, "answer": b"43"}, {"instance": "added"}),
    "too much output": ({**OUTPUT, "output_bytes": 101}, {}),
    "too much in its folder": (OUTPUT, {"target": {"disk_limit": 10}}),
    "out of memory": ({"status": "failed", "verdict": "memout"}, {}),
    "lost": (LOST, {}),
    "lost for good": ({**LOST, "status": "abandoned"}, {"target": {"repeatable": False}}),
    "lost too often": ({"status": "abandoned", "verdict": "blocked", "runtime": 0.0}, {}),
    "lost, and measured": ({"status": "lost", "verdict": "lost", "runtime": 0.0}, {}),
}
FALSE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a right answer, abandoned": ({"status": "abandoned"}, {}, "counts as abandoned, but its verdict is 'answered'"),
    "lost for good, but repeatable": ({**LOST, "status": "abandoned"}, {}, "counts as abandoned"),
    "cut by our clock, which counts": ({**CAPPED, "status": "abandoned", "runtime": 0.0}, {}, "counts as abandoned"),
    "killed and answered": ({"signal": 9}, {}, "ended by signal 9"),
    "no accepted exit code": ({"exit_code": 3}, {}, "its exit code is 3; accepted are 0, 10"),
    "the wrong answer": ({"answer": b"43"}, {}, "its answer is not the known one"),
    "no answer at all": ({"answer": None}, {"instance": "free"}, "but has no answer"),
    "a wrong answer that is not known to be one": (
        WRONG,
        {"instance": "free"},
        "knows neither a right one nor a verifier",
    ),
    "a wrong answer that is right": (WRONG, {}, "does not contradict the known one"),
    "a crash in good order": ({**CRASH, "exit_code": 10}, {}, "its exit code 10 is none"),
    "unknown for nothing": (UNKNOWN, {}, "nothing that was asked of one is missing"),
    "little output": (OUTPUT, {}, "its 50 bytes are allowed"),
    "at the captime": ({"runtime": 4.0, "cost": 5.0, "cpu_ns": 5 * 10**9}, {}, "its captime is 4.0 s"),
    "longer than measured": ({"runtime": 1.7}, {}, "took 1.7 s, but the cpu clock says 1.6 s"),
    "answered before it was seen unfinished": ({}, {"seen": 1.55}, "was seen unfinished after 1.55 s"),
    "much CPU time for nothing": ({"cost": 3.0, "cpu_ns": 3 * 10**9}, {}, "but used 3.0 s of the cpu clock"),
    "the other clock": ({}, {"clock": "wall"}, "cost 1.6 s, but the wall clock says 2.0 s"),
    "not its own time": ({"reported": 0.3}, {"target": {"time": "reported"}}, "the program reported 0.3 s"),
    "capped too soon": ({**CAPPED, "cost": 3.0, "cpu_ns": 3 * 10**9}, {}, "only 3.0 s were measured"),
    "a crash that took longer": ({**CRASH, "runtime": 2.0}, {}, "took 2.0 s"),
    "lost, but paid": ({**LOST, "cost": 1.0}, {}, "nothing was measured"),
}


@pytest.mark.parametrize("what", FINE)
def test_outcomes_that_agree_with_themselves_pass(what: str) -> None:
    """Every kind of end that `judge` knows."""
    outcome, more = FINE[what]
    assert complaint(outcome, **more) == ""


@pytest.mark.parametrize("what", FALSE)
def test_outcomes_that_contradict_themselves_are_named(what: str) -> None:
    """One thing is wrong with each."""
    outcome, more, words = FALSE[what]
    assert complaint(outcome, **more).startswith("row 7, an outcome of configuration 'c', ")
    assert words in complaint(outcome, **more)


def test_the_skeptic_knows_every_verdict() -> None:
    """A new one is announced here, before ledgers with it are refused."""
    assert set(STATUSES) == {verdict.value for verdict in Verdict}
    assert all(STATUS_OF[verdict].value == STATUSES[verdict.value][0] for verdict in Verdict)
