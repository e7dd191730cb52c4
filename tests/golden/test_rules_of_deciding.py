"""What race and pool decide on a seeded table and on a fixed set, at 1, 8 and 64 virtual slots: what was recorded.

These traces guard the rules of deciding. A change that makes one of them differ makes old ledgers impossible to resume,
so it needs the next number (`captime.certificate.RULES`) and a new recording, made by running this file:
`python tests/golden/test_rules_of_deciding.py`, with `tests` on the path. Nothing else is a reason to record anew.
"""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from captime.certificate import RULES, Population
from captime.evidence import Evidence
from captime.executors import VirtualExecutor
from captime.live import drive_parallel
from captime.procedures import Problem
from captime.procedures.fixed_set import FixedSetRace
from captime.procedures.pool import Pool
from captime.procedures.pool_terms import PoolTerms
from captime.procedures.protocol import Procedure
from captime.procedures.race import Race
from captime.procedures.set_pool import FixedSetPool
from captime.runs import RunRequest
from captime.sources.synthetic import synthetic_table
from captime.sources.window import stream_of
from captime.utilities import parse_utility

RECORDED = Path(__file__).parent / "rules_of_deciding.json"
UTILITY = parse_utility("log-laplace(20, 1)")
ON_A_SET = ("race on a set", "pool on a set", "race on a set, schedule 4", "pool on a set, schedule 4")
OF_MANY = {"race of many, schedule 4": 4, "race of many, schedule 6": 6, "race of many, schedule 7": 7}
SEARCHES = {"search, schedule 5": 5, "search, schedule 6": 6}
SCHEDULES = {"race": 1, "race, schedule 2": 2, "race, schedule 6": 6, "race, schedule 7": 7, **OF_MANY}
KINDS, SLOTS = (*SCHEDULES, "pool", *SEARCHES, *ON_A_SET), (1, 8, 64)
"""Campaigns keep the schedule they were begun with, so decisions of each one are guarded."""
SHOWN = 24
"""How many runs are recorded one by one, to show where two stories part; all of them are in the digest."""


def procedure_of(kind: str, limit: float) -> Procedure:
    """A race of 12 or 48 listed configurations, or a pool of up to 40; on a stream, or on a set of 60 instances."""
    if kind in ON_A_SET:
        pool, schedule = kind.startswith("pool"), 4 if kind.endswith("schedule 4") else 3
        problem = Problem(40 if pool else 12, UTILITY, 0.1, 0.12, captime_limit=limit, n_instances=60, seed=11)
        problem = replace(problem, population=Population.THESE, schedule=schedule)
        if pool:
            terms = PoolTerms(n_listed=2, model=True, limit=40)
            return FixedSetPool(replace(problem, pool=terms), gamma=0.3)
        return FixedSetRace(problem)
    if kind in SCHEDULES:
        problem = Problem(12, UTILITY, 0.1, 0.12, captime_limit=limit, n_instances=1500, seed=11)
        if kind in OF_MANY:
            problem = replace(problem, n_configs=48, epsilon=0.25, short_captimes=True)
        return Race(replace(problem, schedule=SCHEDULES[kind]))
    if kind in SEARCHES:
        terms = PoolTerms(n_listed=2, model=True, draws_first=2, proposals=8, limit=40)
        problem = Problem(40, UTILITY, 0.1, 0.4, captime_limit=limit, n_instances=1500, seed=11, pool=terms)
        return Pool(replace(problem, schedule=SEARCHES[kind]), gamma=0.5, effort="search")
    terms = PoolTerms(n_listed=2, limit=40)
    return Pool(Problem(40, UTILITY, 0.1, 0.3, captime_limit=limit, n_instances=1500, seed=11, pool=terms), gamma=0.3)


def decided(kind: str, slots: int) -> dict[str, Any]:
    """The runs that were asked for, in order, and the certificates that were held on the way."""
    listed = kind in SCHEDULES or kind.startswith("race on a set")
    n_configs = 48 if kind in OF_MANY else 12 if listed else 40
    table = synthetic_table(5, n_configs, 60 if kind in ON_A_SET else 1500, limit=300.0)
    procedure = procedure_of(kind, table.limit)
    executor = VirtualExecutor(table, stream_of("given", table.groups, 0), slots)
    runs: list[list[int]] = []
    certificates: list[list[float]] = []
    submit = executor.submit

    def watch(requests: list[RunRequest]) -> None:
        # On a set and with short captimes, a run may be made again with a longer captime.
        longer = kind in (*ON_A_SET, *OF_MANY, *SEARCHES)
        runs.extend(
            [request.config, request.instance, *([round(1e6 * request.captime)] if longer else [])]
            for request in requests
        )
        submit(requests)

    def look(made: Procedure, *_: object) -> None:
        held = made.certificate()
        said = [held.config, round(held.epsilon, 9), held.n_configs, int(made.candidates.sum())]
        if not certificates or certificates[-1][1:] != said:
            certificates.append([len(runs), *said])

    executor.submit = watch  # type: ignore[method-assign,assignment] # everything that is started is written down
    evidence = Evidence(table.n_configs, procedure.plan, UTILITY)
    outcome = drive_parallel(procedure, executor, evidence, observer=look)
    return {
        "stopped": outcome.stopped,
        "runs": len(runs),
        "runs_digest": hashlib.sha256(json.dumps(runs).encode()).hexdigest(),
        "first_runs": runs[:SHOWN],
        "certificates": certificates,
    }


def test_the_recording_is_of_these_rules() -> None:
    """New rules come with a new recording."""
    assert json.loads(RECORDED.read_text(encoding="utf-8"))["rules"] == RULES


@pytest.mark.parametrize("slots", SLOTS)
@pytest.mark.parametrize("kind", KINDS)
def test_decisions_are_those_on_record(kind: str, slots: int) -> None:
    """The same runs in the same order, and the same certificates: leader, epsilon, configurations, candidates."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))[kind][str(slots)]
    found = decided(kind, slots)
    assert found["first_runs"] == recorded["first_runs"]
    for here, there in zip(found["certificates"], recorded["certificates"], strict=False):
        assert here == pytest.approx(there, abs=2e-9)
    assert (found["stopped"], found["runs"]) == (recorded["stopped"], recorded["runs"])
    assert found["runs_digest"] == recorded["runs_digest"]
    assert len(found["certificates"]) == len(recorded["certificates"])


if __name__ == "__main__":
    made: dict[str, Any] = {"rules": RULES}
    made |= {kind: {str(slots): decided(kind, slots) for slots in SLOTS} for kind in KINDS}
    RECORDED.write_text(json.dumps(made, separators=(",", ":")) + "\n", encoding="utf-8")
