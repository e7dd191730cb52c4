"""OUP: always the configuration with the largest upper bound, many turns settled by one merge."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaigns import limit_for, wrong_stories
from captime import simulate
from captime.errors import ScenarioError
from captime.procedures import PROCEDURES, Problem
from captime.procedures.optimistic import Optimist, largest, merge, next_rival, two_largest
from captime.sources.synthetic import synthetic_table
from captime.utilities import parse_utility
from runtime_laws import LAWS
from turn_by_turn import Question, assert_same_story, questions, steady

OPTIONS: st.SearchStrategy[dict[str, object]] = st.sampled_from(
    [{"rule": rule, "variant": variant} for rule in ("new", "old") for variant in ("recommended", "as-published")]
)


@steady
@given(questions("oup", OPTIONS))
def test_many_turns_at_a_time_decide_like_one_by_one(question: Question) -> None:
    """Ties, rises, eliminations, budgets and the end of the stream included."""
    assert_same_story(question)


@pytest.mark.parametrize("procedure", ["oup", "coup-plus"])
def test_an_endless_stream_is_walked_like_one_by_one(procedure: str) -> None:
    """Draws with replacement, until epsilon is reached."""
    seconds = np.random.default_rng(8).lognormal(np.linspace(0.5, 3.0, 6)[:, None], 1.0, (6, 90))
    assert_same_story(Question(seconds, procedure, utility="exponential(10)", sampling="replace", epsilon=0.4))


@steady
@given(st.integers(0, 2**32 - 1))
def test_the_merge_is_the_order_of_single_turns(seed: int) -> None:
    """Taking the largest upper end again and again, the lower index first, walks the lanes as the merge says."""
    rng = np.random.default_rng(seed)
    n_configs, lanes, depth = 6, int(rng.integers(1, 7)), int(rng.integers(1, 6))
    config = rng.permutation(n_configs)[:lanes]
    standing = rng.integers(0, 6, n_configs) / 6
    upper = np.minimum.accumulate(rng.integers(0, 6, (lanes, depth)) / 6, axis=1)
    upper = np.minimum(upper, standing[config, None])
    length = rng.integers(0, depth + 1, lanes)
    merged = merge(standing, config, upper, length)
    now, step, walked = standing.copy(), np.zeros(lanes, dtype=np.int64), []
    while True:
        due = int(now.argmax())
        row = np.flatnonzero(config == due)
        if len(row) == 0 or step[row[0]] >= length[row[0]]:
            break
        walked.append((int(row[0]), int(step[row[0]]), now[due]))
        now[due] = upper[row[0], step[row[0]]]
        step[row[0]] += 1
    assert list(zip(merged.row.tolist(), merged.step.tolist(), merged.value.tolist(), strict=True)) == walked
    first, after = merged.holds(lanes)
    for turn, row in enumerate(merged.row.tolist()):
        later = [t for t in range(turn + 1, len(walked)) if walked[t][0] == row]
        assert after[turn] == (later[0] if later else len(walked))
    for lane in range(lanes):
        assert first[lane] == next((t for t, turn in enumerate(walked) if turn[0] == lane), len(walked))


def test_the_rival_is_the_next_in_line_who_is_not_the_leader() -> None:
    """The leader's own turns are passed over, however many there are."""
    who, value = np.array([4, 4, 2, 4, 1]), np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    assert next_rival(who, value, np.array([4, 4, 4, 4])).tolist() == [0.7, 0.7, 0.7, 0.5]
    assert next_rival(who, value, np.array([2, 2, 2, 2])).tolist() == [0.9, 0.8, 0.6, 0.6]


def test_ranks_prefer_the_lower_index() -> None:
    """Few or many of them."""
    values = np.array([0.1, 1.0, 1.0, 0.5, 1.0, 0.0, 0.5, 0.2])
    assert [largest(values, count).tolist() for count in (1, 2, 4, 8)] == [
        [1],
        [1, 2],
        [1, 2, 4, 3],
        [1, 2, 4, 3, 6, 7, 0, 5],
    ]
    assert two_largest(values) == (1, 2)


def built(rule: str = "new", **changes: object) -> Optimist:
    """OUP for three configurations under log-laplace(60, 1)."""
    problem = Problem(3, parse_utility("log-laplace(60, 1)"), 0.1)
    made = PROCEDURES["oup"](problem, rule=rule, **changes)
    assert isinstance(made, Optimist)
    return made


def test_the_new_rule_skips_captimes_that_teach_nothing() -> None:
    """While u(κ) >= 2/3 a captime doubles with every visit, so the first one that lasts is 64 s."""
    table = synthetic_table(3, 3, 60, limit=900.0)
    result = simulate(table, utility="log-laplace(60, 1)", procedure="oup", epsilon=0.0)
    raised = [e.captime for e in result.outcome.trace.incidents() if e.kind == "captime" and e.config == 0]
    assert raised[:6] == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    old = simulate(table, utility="log-laplace(60, 1)", procedure="oup", epsilon=0.0, options={"rule": "old"})
    assert min(e.round for e in old.outcome.trace.incidents() if e.kind == "captime") > 20


def test_slots_are_filled_by_hope() -> None:
    """With more workers than one, the configurations with the largest upper bounds get a run each."""
    procedure = built()
    assert procedure.ask(2).config.tolist() == [0, 1]
    assert procedure.ask(1).n.tolist() == [1]
    assert procedure.ask(1).level.tolist() == [1]
    assert built("old").ask(1).level.tolist() == [0]


def test_oup_is_wrong_no_more_often_than_allowed() -> None:
    """Every bound at every look (running bounds remember the worst) and every certificate, 15 fresh tables a law."""
    wrong = wrong_stories("oup", 150, 15, seed=5, delta=0.2)
    assert wrong <= limit_for(15 * len(LAWS), 0.2)


def test_the_best_is_not_eliminated_and_epsilon_never_rises() -> None:
    """A clear winner among twenty, found long before the others have many runs."""
    table = synthetic_table(5, 20, 8000, limit=900.0)
    result = simulate(table, utility="uniform(60)", procedure="oup", epsilon=0.1)
    truth = np.maximum(0.0, 1.0 - table.seconds / 60.0).mean(axis=1)
    assert result.outcome.stopped == "epsilon"
    assert truth.max() - truth[result.certificate.config] <= 0.1
    assert truth.argmax() in result.outcome.candidates
    assert bool((np.diff(result.outcome.trace.decisions().epsilon) <= 0).all())
    assert result.outcome.samples.min() < result.outcome.samples.max() / 2


def test_one_configuration_needs_no_run() -> None:
    """There is no other to compare it with."""
    result = simulate(synthetic_table(1, 1, 10, limit=9.0), utility="uniform(60)", procedure="oup")
    assert (result.outcome.stopped, result.cpu_seconds) == ("single", 0.0)


def test_wrong_words_are_refused() -> None:
    """A rule, a variant or a first captime that does not exist, with what does."""
    with pytest.raises(ScenarioError, match="oup has no rule 'newer'; there are new, old"):
        built("newer")
    with pytest.raises(ScenarioError, match="oup has no variant 'paper'"):
        built(variant="paper")
    with pytest.raises(ScenarioError, match="log2 of seconds"):
        PROCEDURES["oup"](Problem(3, parse_utility("uniform(60)"), 0.1, captime_first=2.0), variant="as-published")
