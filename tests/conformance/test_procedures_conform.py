"""The contract of the family of procedures, over the register: every registered procedure is tested."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from captime.arrays import FloatArray
from captime.certificate import Orders, no_orders
from captime.drive import drive
from captime.errors import ScenarioError
from captime.procedures import PROCEDURES, REGISTERS, Problem, Procedure
from captime.procedures.problem import build_procedure, option_types
from captime.sources.replay import Replay
from captime.utilities import parse_utility
from runtime_laws import NEVER, in_order, log_normal, mixed, table_of

UTILITY = parse_utility("log-laplace(60, 1)")
N_CONFIGS, N_INSTANCES, LIMIT = 4, 250, 900.0
# Options besides the defaults that change how a member behaves.
FORMS: dict[str, tuple[str, dict[str, object]]] = {name: (name, {}) for name in PROCEDURES} | {
    "up-paper": ("up", {"variant": "paper"}),
    "up-as-published": ("up", {"variant": "as-published"}),
    "up-two-events": ("up", {"events": 2}),
    "naive-recommended": ("naive", {"variant": "recommended"}),
    "naive-as-published": ("naive", {"variant": "as-published"}),
    "pool-few": ("pool", {"gamma": 0.8, "pilot": 2}),
}

# Whose pool grows: with the configurations there are, they may run out of them.
GROWING = ("coup", "pool", "pool-few")

each_form = pytest.mark.parametrize("form", FORMS)


@dataclass
class Bench:
    """A procedure and a replay that answers it, with every order written down."""

    procedure: Procedure
    replay: Replay
    orders: list[Orders] = field(default_factory=list)

    def lap(self) -> None:
        """Ask, answer, tell."""
        orders = self.procedure.ask(slots=1)
        # Everything ordered so far has been answered, so a procedure that wants nothing now would wait for ever.
        assert len(orders) > 0, "it is not content, nothing is under way, and it asks for nothing"
        self.orders.append(orders)
        self.procedure.tell(self.replay.tally, self.replay.answer(orders))

    def laps(self, most: int) -> None:
        """This many laps, or fewer if the procedure is content before."""
        for _ in range(most):
            if self.procedure.finished() is not None:
                return
            self.lap()


def bench(form: str, *, n_configs: int = N_CONFIGS, limit: float = LIMIT, epsilon: float = 0.45) -> Bench:
    """The procedure on a small table of runtimes over many orders of magnitude."""
    seconds = log_normal(mixed(N_CONFIGS)).draw(np.random.default_rng(5), N_INSTANCES)[:n_configs]
    table = table_of(seconds, limit)

    def known(config: int) -> FloatArray:
        return np.where(table.seconds[config] >= limit, NEVER, table.seconds[config])

    problem = Problem(
        n_configs=n_configs,
        utility=UTILITY,
        delta=0.2,
        epsilon=epsilon,
        captime_limit=limit,
        n_instances=N_INSTANCES,
        known_runtimes=known,
    )
    name, options = FORMS[form]
    procedure = build_procedure(name, REGISTERS, problem, options)
    return Bench(procedure, Replay(table, in_order(N_INSTANCES), procedure.plan, UTILITY, pays=procedure.pays))


def state(procedure: Procedure) -> tuple[object, ...]:
    """What a caller may rely on."""
    return procedure.certificate(), procedure.candidates.tolist(), procedure.rounds, procedure.finished()


@each_form
def test_before_anything_is_known_nothing_is_claimed(form: str) -> None:
    """Epsilon 1 says nothing, about an interval from 0 to 1; all are candidates."""
    procedure = bench(form).procedure
    certificate = procedure.certificate()
    assert (certificate.epsilon, certificate.utility_low, certificate.utility_high) == (1.0, 0.0, 1.0)
    # Some compare a pool that grows; all others compare all configurations.
    pool = certificate.n_configs
    assert pool == N_CONFIGS or (form in GROWING and pool < N_CONFIGS)
    assert procedure.candidates[:pool].all()
    assert procedure.rounds == 0
    assert procedure.finished() is None


@each_form
def test_a_single_configuration_is_the_best_of_its_kind(form: str) -> None:
    """No other can be better than the only one: epsilon 0 before any run. COUP wants more of them, and says so."""
    if form == "coup":
        with pytest.raises(ScenarioError, match="use oup"):
            bench(form, n_configs=1)
        return
    assert bench(form, n_configs=1).procedure.certificate().epsilon == 0.0


@each_form
def test_asking_changes_no_statement(form: str) -> None:
    """However often it is asked, and with whatever hint."""
    at = bench(form)
    for _ in range(3):
        before = state(at.procedure)
        for slots in (0, 1, 1000):
            at.procedure.ask(slots)
        assert state(at.procedure) == before
        at = bench(form)
        at.laps(5)


@each_form
def test_an_empty_order_changes_nothing(form: str) -> None:
    """Neither the tally nor the procedure moves when nothing was ordered."""
    at = bench(form)
    at.laps(3)
    before, seen = state(at.procedure), at.replay.tally.n.copy()
    at.procedure.tell(at.replay.tally, at.replay.answer(no_orders()))
    assert state(at.procedure) == before
    np.testing.assert_array_equal(at.replay.tally.n, seen)


@each_form
def test_being_told_nothing_new_changes_nothing(form: str) -> None:
    """The same tally told again, in the middle and at the end."""
    at = bench(form)
    members = np.arange(N_CONFIGS)
    for laps in (2, 10, N_INSTANCES):
        at.laps(laps)
        before = state(at.procedure)
        for changed in (members[:0], members):
            at.procedure.tell(at.replay.tally, changed)
            assert state(at.procedure) == before


@each_form
def test_orders_only_grow_and_stay_within_what_is_known(form: str) -> None:
    """Prefixes and levels never fall, no position and no captime beyond the table, no eliminated configuration."""
    at = bench(form, epsilon=0.45 if "naive" in form else 0.05)
    n, level = np.zeros(N_CONFIGS, dtype=np.int64), np.zeros(N_CONFIGS, dtype=np.int64)
    while at.procedure.finished() is None:
        candidates = at.procedure.candidates.copy()
        at.lap()
        orders = at.orders[-1]
        assert len(np.unique(orders.config)) == len(orders)
        assert candidates[orders.config].all()
        assert (orders.n >= n[orders.config]).all()
        assert (orders.level >= level[orders.config]).all()
        assert orders.n.max() <= N_INSTANCES
        assert at.procedure.plan.captime(orders.level, orders.n - 1).max() <= LIMIT
        n[orders.config], level[orders.config] = orders.n, orders.level
    assert len(at.procedure.ask(slots=1)) == 0


@each_form
def test_a_certificate_names_a_candidate_and_an_interval(form: str) -> None:
    """At every moment: epsilon in [0, 1], its own interval inside [0, 1] and the right way round."""
    at = bench(form, epsilon=0.45 if "naive" in form else 0.05)
    while at.procedure.finished() is None:
        at.lap()
        certificate = at.procedure.certificate()
        assert 0.0 <= certificate.epsilon <= 1.0
        assert 0.0 <= certificate.utility_low <= certificate.utility_high <= 1.0
        assert 0 <= certificate.config < N_CONFIGS
        assert at.procedure.candidates.any()


@each_form
def test_the_same_question_gets_the_same_answer(form: str) -> None:
    """No hidden randomness, no clock: two runs are one."""
    first, second = (drive(at.procedure, at.replay) for at in (bench(form), bench(form)))
    assert first.certificate == second.certificate
    assert (first.stopped, first.rounds) == (second.stopped, second.rounds)
    assert list(first.trace.rows()) == list(second.trace.rows())


@each_form
def test_the_end_has_a_reason_and_the_goal_is_kept(form: str) -> None:
    """`epsilon` is only said when the certificate is as good as was asked for."""
    at = bench(form)
    outcome = drive(at.procedure, at.replay)
    assert outcome.stopped in ("epsilon", "single", "instances", "configurations")
    if outcome.stopped == "epsilon":
        assert outcome.certificate.epsilon <= 0.45


@pytest.mark.parametrize("name", PROCEDURES)
def test_an_unknown_option_is_refused_with_the_known_ones(name: str) -> None:
    """The message says what the procedure takes."""
    problem = Problem(3, UTILITY, 0.1, epsilon=0.3)
    with pytest.raises(ScenarioError, match=f"procedure {name} has no option 'colour'; it takes ") as refusal:
        build_procedure(name, REGISTERS, problem, {"colour": "blue"})
    for option in option_types(PROCEDURES[name]):
        assert option in str(refusal.value)


def test_an_unknown_procedure_is_refused_with_the_known_ones() -> None:
    """All names, so that the right one can be copied."""
    with pytest.raises(ScenarioError, match="there is no procedure 'upp'") as refusal:
        build_procedure("upp", REGISTERS, Problem(3, UTILITY, 0.1), {})
    for name in PROCEDURES:
        assert name in str(refusal.value)


@pytest.mark.parametrize("name", [name for name, make in PROCEDURES.items() if "variant" in option_types(make)])
def test_an_unknown_variant_is_refused_with_the_known_ones(name: str) -> None:
    """As text from a command line and as a value from Python alike."""
    problem = Problem(3, UTILITY, 0.1, epsilon=0.3)
    makers: list[Callable[[], object]] = [
        lambda: build_procedure(name, REGISTERS, problem, {"variant": "fast"}),
        lambda: PROCEDURES[name](problem, variant="fast"),
    ]
    for make in makers:
        with pytest.raises(ScenarioError, match=r"fast.*as-published"):
            make()


@pytest.mark.parametrize("name", PROCEDURES)
def test_every_option_is_documented(name: str) -> None:
    """The signature is the schema, and the docstring explains it."""
    text = inspect.getdoc(PROCEDURES[name]) or ""
    for option in option_types(PROCEDURES[name]):
        assert f"{option}: " in text


@pytest.mark.parametrize("captime_first", [0.5, 2.0])
def test_as_published_up_refuses_a_first_captime_that_breaks_its_budget(captime_first: float) -> None:
    """log2 of seconds is the rung only from 1 s on, and the message says what to use instead."""
    problem = Problem(3, UTILITY, 0.1, captime_first=captime_first)
    with pytest.raises(ScenarioError, match=r"right only from 1 s on; use the recommended variant"):
        PROCEDURES["up"](problem, variant="as-published")


def test_as_published_up_refuses_another_number_of_inequalities() -> None:
    """The published code charges four."""
    with pytest.raises(ScenarioError, match="the published code charges 4"):
        PROCEDURES["up"](Problem(3, UTILITY, 0.1), variant="as-published", events=2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_configs": 0}, "no configuration to choose from"),
        ({"delta": 0.0}, "strictly between 0 and 1"),
        ({"delta": 1.0}, "strictly between 0 and 1"),
        ({"epsilon": -0.1}, "epsilon is -0.1"),
        ({"epsilon": 1.0}, r"epsilon is 1\.0"),
        ({"captime_first": 0.0}, "first captime"),
        ({"captime_first": NEVER}, "first captime"),
    ],
)
def test_an_impossible_question_is_refused(wrong: dict[str, float], message: str) -> None:
    """Before any procedure is built."""
    right: dict[str, float] = {"n_configs": 3, "delta": 0.1}
    with pytest.raises(ScenarioError, match=message):
        Problem(utility=UTILITY, **(right | wrong))  # type: ignore[arg-type] # the names decide, not the type checker
