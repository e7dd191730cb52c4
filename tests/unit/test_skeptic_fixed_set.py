"""The check of claims about exactly these instances: honest ledgers are confirmed, stronger claims are refused."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from captime.arrays import FloatArray
from captime.certificate import Certificate, Population
from captime.errors import LedgerDamaged
from captime.evidence import Evidence
from captime.executors.virtual import VirtualExecutor
from captime.ledger import ConfigRow, Ledger, LedgerReader, SampleRow
from captime.live import drive_parallel, walk_again
from captime.procedures import Problem
from captime.procedures.fixed_set import FixedSetRace
from captime.runs import RunRequest
from captime.skeptic import Audit, Trust, audit
from captime.sources.table import RuntimeTable
from captime.sources.window import FixedOrder
from captime.streams.finite import FiniteStream, Instance
from captime.utilities import parse_utility
from forgery import forge, scenario_changed
from written_ledgers import Scribe, runtimes

_SEED = 3
Forge = Callable[[Certificate], Certificate]


class _OnSet(Scribe):
    """A scribe that registers instances by the names of a shuffled stream, and may forge what it writes."""

    def __init__(self, ledger: Ledger, race: FixedSetRace, stream: FiniteStream, forge: Forge) -> None:
        super().__init__(ledger, race)
        self._stream = stream
        self._forge = forge

    def started(self, requests: Sequence[RunRequest]) -> None:
        """Register the positions of the stream, then the starts."""
        elements = {}
        for each in requests:
            here = self._stream.at(each.instance)
            elements[each.instance] = SampleRow(each.instance, here.instance.name, here.instance.digest, here.seed)
        self._ledger.started(requests, elements)

    def certify_forged(self, race: FixedSetRace, evidence: Evidence) -> None:
        """Write the last certificate, forged."""
        held = self._forge(race.certificate())
        self._ledger.certified(held, race.rounds, float(evidence.tally.seconds.sum()), 1.0, 1)


def _problem(seconds: FloatArray, epsilon: float, utility: str) -> Problem:
    return Problem(
        n_configs=len(seconds),
        utility=parse_utility(utility),
        delta=0.1,
        epsilon=epsilon,
        n_instances=seconds.shape[1],
        seed=_SEED,
        population=Population.THESE,
    )


def _written(
    path: Path,
    seconds: FloatArray,
    *,
    epsilon: float = 0.1,
    sampling: str = "shuffle",
    forge: Forge = lambda held: held,
    facts: Callable[[dict[str, Any]], dict[str, Any]] = lambda told: told,
    utility: str = "uniform(8)",
    workers: int = 3,
) -> Certificate:
    """Write a race on these runtimes (configurations x positions) into a ledger."""
    n_configs, size = seconds.shape
    stream = FiniteStream([Instance(f"i{index:03}", digest=f"{index:064x}") for index in range(size)], "shuffle", _SEED)
    table = RuntimeTable.build(
        "set",
        [f"c{index}" for index in range(n_configs)],
        [f"p{index}" for index in range(size)],
        seconds,
        timeout=np.inf,
    )
    problem = _problem(seconds, epsilon, utility)
    race = FixedSetRace(problem)
    honest = race.facts

    def told() -> dict[str, object] | None:
        said = honest()
        return None if said is None else facts(said)

    race.facts = told  # type: ignore[method-assign]
    names = [stream.at(position).instance.name for position in range(size)]
    scenario = {
        "utility": utility,
        "delta": 0.1,
        "procedure": "race",
        "options": {},
        "seed": _SEED,
        "goal": epsilon,
        "order": "arrival",
        "length": size,
        "listed": stream.listed_as(names),
        "configurations": {"list": [{"name": f"c{index}", "settings": {"x": index}} for index in range(n_configs)]},
        "instances": {**stream.describe(), "sampling": sampling},
    }
    configs = [ConfigRow(index, f"c{index}", {"settings": {"x": index}}) for index in range(n_configs)]
    with Ledger.create(path, scenario, configs) as ledger:
        ledger._writer.connection.execute("PRAGMA synchronous = OFF")
        scribe = _OnSet(ledger, race, stream, forge)
        executor = VirtualExecutor(table, FixedOrder(np.arange(size)), workers)
        evidence = Evidence(n_configs, race.plan, problem.utility)
        drive_parallel(race, executor, evidence, look_every=5.0, journal=scribe)
        scribe.certify_forged(race, evidence)
    return race.certificate()


def _audited(path: Path) -> Audit:
    return audit(path, (Trust.SCENARIO,))


@pytest.mark.parametrize("epsilon", [0.1, 0.0])
@pytest.mark.parametrize(("size", "utility"), [(3, "uniform(8)"), (40, "uniform(8)"), (40, "log-laplace(1, 1)")])
def test_honest_ledgers_are_confirmed(tmp_path: Path, epsilon: float, size: int, utility: str) -> None:
    """Both claims follow from the rows, in the middle of the set and when all of it was run."""
    for seed in range(2):
        path = tmp_path / f"{seed}.ledger"
        held = _written(path, runtimes(seed, 4, 0.5, size), epsilon=epsilon, utility=utility)
        found = _audited(path)
        assert found.verdict == "confirmed", found.why
        assert any(f"exactly these {size} instances" in line for line in found.account)
        assert found.certified is not None
        assert found.certified.certificate == held


@pytest.mark.parametrize("workers", [1, 8])
def test_a_ledger_is_resumed_by_the_same_decisions(tmp_path: Path, workers: int) -> None:
    """A new procedure that is told the same rows orders the same runs; what came in at the very end can only help."""
    path, seconds = tmp_path / "told.ledger", runtimes(2, 4, 0.3, 40)
    held = _written(path, seconds, workers=workers, utility="log-laplace(1, 1)")
    again = FixedSetRace(_problem(seconds, 0.1, "log-laplace(1, 1)"))
    evidence = Evidence(len(seconds), again.plan, again.problem.utility)
    with LedgerReader(path) as reader:
        for _ in walk_again(again, evidence, reader.replay()):
            pass
    assert again.certificate().config == held.config
    assert again.certificate().epsilon <= held.epsilon
    assert workers > 1 or again.certificate() == held


def _other(**changes: object) -> Forge:
    def forge(held: Certificate) -> Certificate:
        assert held.other is not None
        return replace(held, other=replace(held.other, **changes))  # type: ignore[arg-type]

    return forge


FORGERIES: dict[str, Forge] = {
    "smaller epsilon": lambda held: replace(held, epsilon=0.5 * held.epsilon),
    "another configuration": lambda held: replace(held, config=(held.config + 1) % held.n_configs),
    "higher lower end": lambda held: replace(held, utility_low=held.utility_low + 0.05),
    "lower upper end": lambda held: replace(held, utility_high=held.utility_high - 0.05),
    "more instances run": lambda held: replace(held, instances_run=40),
    "fewer instances": lambda held: replace(held, instances=30),
    "another delta": lambda held: replace(held, delta=0.05),
    "smaller other epsilon": _other(epsilon=0.01),
    "narrower other interval": _other(utility_low=0.5, utility_high=0.5),
    "other configuration": lambda held: _other(config=(held.config + 1) % held.n_configs)(held),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_stronger_claims_are_refused(tmp_path: Path, name: str) -> None:
    """A claim that the rows do not show is refused, also by the last row alone."""
    _written(tmp_path / "forged.ledger", runtimes(1, 4, 0.2, 40), forge=FORGERIES[name])
    with pytest.raises(LedgerDamaged):
        _audited(tmp_path / "forged.ledger")


def _earlier_start(told: dict[str, Any]) -> dict[str, Any]:
    return {**told, "set": {**told["set"], "start": 0}}


def _changing_ranking() -> Callable[[dict[str, Any]], dict[str, Any]]:
    calls = iter(range(10**9))

    def told(facts: dict[str, Any]) -> dict[str, Any]:
        ranking = facts["set"]["ranking"] if next(calls) < 4 else facts["set"]["ranking"][::-1]
        return {**facts, "set": {**facts["set"], "ranking": ranking}}

    return told


def test_terms_that_were_not_fixed_in_time_are_refused(tmp_path: Path) -> None:
    """Bets on the pilot, and a ranking that changes on the way."""
    _written(tmp_path / "start.ledger", runtimes(1, 4, 0.2, 40), facts=_earlier_start)
    with pytest.raises(LedgerDamaged, match="fixed the ranking for positions from 0 on"):
        _audited(tmp_path / "start.ledger")
    _written(tmp_path / "ranking.ledger", runtimes(1, 4, 0.2, 40), facts=_changing_ranking())
    with pytest.raises(LedgerDamaged, match="was changed on the way"):
        _audited(tmp_path / "ranking.ledger")


def _reversed_ranking(told: dict[str, Any]) -> dict[str, Any]:
    return {**told, **{name: {**told[name], "ranking": told[name]["ranking"][::-1]} for name in ("set", "drawn")}}


@pytest.mark.parametrize("workers", [1, 8])
def test_a_ranking_that_the_pilot_does_not_give_is_refused(tmp_path: Path, workers: int) -> None:
    """A forger who writes the ranking down in time, but another one than the pilot's runs give."""
    _written(tmp_path / "moved.ledger", runtimes(1, 4, 0.2, 40), facts=_reversed_ranking, workers=workers)
    with pytest.raises(LedgerDamaged, match="it was changed"):
        _audited(tmp_path / "moved.ledger")


def test_without_orders_a_claim_about_a_set_is_confirmed_on_trust_only(tmp_path: Path) -> None:
    """Ledgers in fixed order may lack their orders; then the positions of the ranking are taken on trust."""
    path = tmp_path / "unordered.ledger"
    _written(path, runtimes(1, 4, 0.2, 40), workers=1)
    forge(path, "DELETE FROM ask", scenario_changed(lambda told: told.update(order="fixed", window=1)))
    found = audit(path, (Trust.SCENARIO,))
    assert found.verdict == "not-verifiable"
    assert "orders are not on record" in found.why
    assert audit(path, (Trust.SCENARIO, Trust.ORDERS)).verdict == "confirmed"


def test_an_order_that_captime_did_not_draw_is_refused(tmp_path: Path) -> None:
    """Instances as listed carry no claim about exactly these."""
    _written(tmp_path / "given.ledger", runtimes(1, 4, 0.2, 40), sampling="given")
    with pytest.raises(LedgerDamaged, match=r"not uniformly random|another order"):
        _audited(tmp_path / "given.ledger")
