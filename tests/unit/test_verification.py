"""Captime verification: the prover's captimes are the shortest that work, and the skeptic is never fooled."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captime.arrays import FloatArray
from captime.drive import Outcome, drive
from captime.errors import ScenarioError
from captime.procedures import Problem
from captime.procedures.verification import Verification, prover_captime
from captime.sources.replay import Replay
from captime.utilities import Utility, parse_utility
from runtime_laws import NEVER, in_order, table_of

# The same examples on every machine, however slow it is.
steady = settings(derandomize=True, deadline=None, max_examples=150)

any_utility = st.sampled_from(
    [
        parse_utility(text)
        for text in (
            "log-laplace(10, 1)",
            "uniform(20)",
            "exponential(5)",
            "step(8)",
            "parc(16, 2)",
            "tabulated(0:1, 5:1, 10:0.5, 20:0.5, 60:0)",
        )
    ]
)
any_runtime = st.sampled_from([0.0, 1.0, 2.0, 5.0, 8.0, 16.0, 40.0, NEVER]) | st.floats(0.01, 100.0)
some_runtimes = st.lists(any_runtime, min_size=1, max_size=12).map(np.array)


@st.composite
def small_tables(draw: st.DrawFn) -> FloatArray:
    """A few configurations on a few instances."""
    n_configs, n_instances = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    rows = st.lists(any_runtime, min_size=n_instances, max_size=n_instances)
    return np.array(draw(st.lists(rows, min_size=n_configs, max_size=n_configs)))


def hidden(utility: Utility, runtimes: FloatArray, captime: FloatArray) -> FloatArray:
    """u(κ)·P(t > κ), one value per captime."""
    longer: FloatArray = (runtimes > captime[:, None]).mean(axis=1)
    return utility(captime) * longer


def verified(
    utility: Utility, seconds: FloatArray, epsilon: float, limit: float = NEVER
) -> tuple[Verification, Outcome]:
    """Prover and skeptic on a table."""
    table = table_of(seconds, limit)

    def known(config: int) -> FloatArray:
        return np.where(table.seconds[config] >= limit, NEVER, table.seconds[config])

    problem = Problem(
        n_configs=table.n_configs,
        utility=utility,
        delta=0.1,
        epsilon=epsilon,
        captime_limit=limit,
        n_instances=table.n_instances,
        known_runtimes=known,
    )
    procedure = Verification(problem)
    return procedure, drive(procedure, Replay(table, in_order(table.n_instances), procedure.plan, utility))


@steady
@given(any_utility, some_runtimes, st.floats(0.001, 1.2))
def test_the_provers_captime_is_the_shortest_that_works(utility: Utility, runtimes: FloatArray, allowed: float) -> None:
    """Against brute force: it hides no more than allowed, and every clearly shorter captime hides more."""
    captime = prover_captime(utility, runtimes, allowed)
    assert hidden(utility, runtimes, np.array([captime]))[0] <= allowed + 1e-9
    # Shorter captimes on a fine grid, at the runtimes and breakpoints, and just before all of these.
    marks = np.concatenate((runtimes[np.isfinite(runtimes)], utility.breakpoints, [captime]))
    grid = np.concatenate((np.linspace(0.0, captime, 400), marks, marks * (1.0 - 1e-9), np.geomspace(1e-6, 1e6, 400)))
    # An infimum of 0 stands as the smallest positive number, below which there is nothing to try.
    shorter = grid[grid < captime * (1.0 - 1e-10) - 1e-300]
    # Where u falls so slowly that rounding hides the difference, equality is as good as more.
    assert (hidden(utility, runtimes, shorter) > allowed - 1e-9).all()


@pytest.mark.parametrize(
    ("utility", "runtimes", "allowed", "expected"),
    [
        ("step(8)", [1.0, 2.0, 100.0, NEVER], 0.4, 8.0),  # only the fall at the deadline helps
        ("step(8)", [1.0, 2.0, 3.0, NEVER], 0.3, 3.0),  # the third run brings it to a quarter
        ("uniform(10)", [NEVER], 0.25, 7.5),  # u(κ) itself has to fall to a quarter
        ("uniform(10)", [NEVER, 1.0], 0.25, 5.0),  # or to one half, for half of the runs
        ("uniform(10)", [2.0, 2.0], 0.25, 2.0),  # nothing is hidden once all are done
        ("uniform(10)", [2.0, 9.0], 1.0, 0.0),  # nothing is asked for
    ],
)
def test_the_provers_captime_in_cases_worked_out_by_hand(
    utility: str, runtimes: list[float], allowed: float, expected: float
) -> None:
    """At the end of a stretch, inside one, and at a jump of the utility."""
    assert prover_captime(parse_utility(utility), np.array(runtimes), allowed) == pytest.approx(expected, abs=1e-9)


def test_a_run_that_takes_exactly_the_captime_is_done_by_it() -> None:
    """Completed is strict, so the captime stands just above an infimum that is itself a runtime."""
    captime = prover_captime(parse_utility("uniform(10)"), np.array([2.0, 2.0]), 0.1)
    assert captime > 2.0
    assert captime == pytest.approx(2.0, rel=1e-11)


@steady
@given(any_utility, small_tables(), st.floats(0.01, 0.9))
def test_the_check_always_succeeds_without_a_timeout(utility: Utility, seconds: FloatArray, epsilon: float) -> None:
    """[UAC] Lemma on verification: with the prover's captimes the skeptic accepts, and rightly so."""
    procedure, outcome = verified(utility, seconds, epsilon)
    assert procedure.accepted
    assert outcome.stopped == "epsilon"
    truth = utility(seconds).mean(axis=1)
    certificate = outcome.certificate
    assert certificate.delta == 0.0
    assert truth.max() - truth[certificate.config] <= min(epsilon, certificate.epsilon) + 1e-9
    assert certificate.utility_low - 1e-9 <= truth[certificate.config] <= certificate.utility_high + 1e-9


@steady
@given(any_utility, small_tables(), st.floats(0.01, 0.9))
def test_the_best_configuration_would_pass_the_check_too(utility: Utility, seconds: FloatArray, epsilon: float) -> None:
    """Its lower bound is within epsilon of every upper bound, worked out here from the definition."""
    procedure, _ = verified(utility, seconds, epsilon)
    captime = procedure.captimes[:, None]
    done = seconds < captime
    lower = (utility(seconds) * done).mean(axis=1)
    upper = lower + utility(procedure.captimes) * (1.0 - done.mean(axis=1))
    best = int(utility(seconds).mean(axis=1).argmax())
    assert lower[best] >= upper.max() - epsilon - 1e-9


@steady
@given(any_utility, small_tables(), st.floats(0.01, 0.9), st.sampled_from([1.5, 4.0, 16.0]), st.data())
def test_behind_a_timeout_nothing_false_is_accepted(
    utility: Utility, seconds: FloatArray, epsilon: float, limit: float, data: st.DataObject
) -> None:
    """Whatever the runs that reached the timeout would have taken, an accepted claim is true."""
    procedure, outcome = verified(utility, seconds, epsilon, limit)
    assert (procedure.captimes <= limit).all()
    recorded = table_of(seconds, limit).seconds
    longer = data.draw(st.lists(st.floats(limit, 1e6) | st.just(NEVER), min_size=seconds.size, max_size=seconds.size))
    truth = utility(np.where(recorded >= limit, np.reshape(longer, seconds.shape), recorded)).mean(axis=1)
    certificate = outcome.certificate
    assert truth.max() - truth[certificate.config] <= certificate.epsilon + 1e-9
    assert outcome.stopped == ("epsilon" if procedure.accepted else "instances")
    if procedure.accepted:
        assert certificate.epsilon <= epsilon + 1e-9


def test_a_timeout_that_hides_too_much_fails_the_check() -> None:
    """Half of the other's runs ended at the timeout, at which they were still worth nine tenths."""
    seconds = np.array([[0.5, 0.5], [0.5, NEVER], [NEVER, NEVER]])
    procedure, outcome = verified(parse_utility("uniform(100)"), seconds[1:], 0.1, 10.0)
    assert procedure.accepted is False
    assert outcome.stopped == "instances"
    assert outcome.certificate.epsilon > 0.1
    # With a configuration that is always done at once, no other can be much better, timeout or not.
    assert verified(parse_utility("uniform(100)"), seconds, 0.1, 10.0)[0].accepted


def test_verification_says_what_it_needs() -> None:
    """The truth, a table that ends, and an epsilon."""
    utility = parse_utility("uniform(10)")
    with pytest.raises(ScenarioError, match="true runtime distributions"):
        Verification(Problem(2, utility, 0.1, epsilon=0.1, n_instances=5))
    with pytest.raises(ScenarioError, match="true runtime distributions"):
        Verification(Problem(2, utility, 0.1, epsilon=0.1, known_runtimes=lambda _: np.ones(3)))
    with pytest.raises(ScenarioError, match="epsilon above 0"):
        Verification(Problem(2, utility, 0.1, n_instances=3, known_runtimes=lambda _: np.ones(3)))
