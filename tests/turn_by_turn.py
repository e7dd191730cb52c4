"""The same procedure told in two ways: many turns at a time, and one by one behind a door that hides the ability."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate, Orders
from captime.drive import Outcome, drive
from captime.plans import Plan
from captime.procedures import PROCEDURES, Problem, Procedure
from captime.sources.replay import Replay
from captime.sources.window import Accounting, stream_of
from captime.tally import Tally
from captime.trace import Incident
from captime.utilities import parse_utility
from runtime_laws import NEVER, table_of

steady = settings(derandomize=True, deadline=None, max_examples=40)

# On these runtimes uniform(64) and step(8) are exact sums of powers of two, so ties are real ties.
RUNTIMES = np.array([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 63.0, NEVER])


class OneByOne:
    """A procedure that can be told one decision at a time only."""

    def __init__(self, inner: Procedure) -> None:
        self.inner = inner
        self.intervals = getattr(inner, "intervals", None)

    @property
    def plan(self) -> Plan:
        """The inner one's."""
        return self.inner.plan

    @property
    def bound(self) -> str:
        """The inner one's."""
        return self.inner.bound

    @property
    def candidates(self) -> BoolArray:
        """The inner one's."""
        return self.inner.candidates

    @property
    def rounds(self) -> int:
        """The inner one's."""
        return self.inner.rounds

    @property
    def pays(self) -> bool:
        """The inner one's."""
        return self.inner.pays

    def ask(self, slots: int) -> Orders:
        """Passed on."""
        return self.inner.ask(slots)

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """Passed on."""
        self.inner.tell(tally, changed)

    def certificate(self) -> Certificate:
        """Passed on."""
        return self.inner.certificate()

    def finished(self) -> str | None:
        """Passed on."""
        return self.inner.finished()


@dataclass(frozen=True)
class Question:
    """A small simulation, ready to be run in both ways."""

    seconds: FloatArray
    procedure: str
    options: Mapping[str, object] = field(default_factory=dict)
    utility: str = "uniform(64)"
    limit: float = NEVER
    delta: float = 0.3
    epsilon: float = 0.0
    captime_first: float = 1.0
    sampling: str = "given"
    budget: float = np.inf
    accounting: Accounting = "restart"
    seed: int = 0

    def outcome(self, *, one_by_one: bool = False, laps: int | None = None) -> Outcome:
        """The whole story, or only this many laps of it."""
        return self.run(one_by_one=one_by_one, laps=laps)[0]

    def run(self, *, one_by_one: bool = False, laps: int | None = None) -> tuple[Outcome, Procedure]:
        """The story, and who told it."""
        table = table_of(self.seconds, self.limit)
        stream = stream_of(self.sampling, table.groups, self.seed)
        utility = parse_utility(self.utility)
        problem = Problem(
            n_configs=table.n_configs,
            utility=utility,
            delta=self.delta,
            epsilon=self.epsilon,
            captime_first=self.captime_first,
            captime_limit=self.limit,
            n_instances=stream.length,
        )
        made = PROCEDURES[self.procedure](problem, **self.options)
        replay = Replay(table, stream, made.plan, utility, accounting=self.accounting, pays=made.pays)
        left = iter(range(laps)) if laps is not None else None
        outcome = drive(
            OneByOne(made) if one_by_one else made,
            replay,
            budget=self.budget,
            interrupted=lambda: left is not None and next(left, None) is None,
        )
        return outcome, made


@st.composite
def questions(draw: st.DrawFn, procedure: str, options: st.SearchStrategy[dict[str, object]]) -> Question:
    """Small tables with many ties, long enough for captimes to rise and a configuration to be eliminated."""
    shape = (draw(st.integers(2, 9)), draw(st.sampled_from((1, 30, 100, 250))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # Each configuration has its own taste among the runtimes; some are equal to others.
    weights = rng.dirichlet(np.full(len(RUNTIMES), 0.4), size=shape[0])[rng.integers(shape[0], size=shape[0])]
    seconds = np.stack([rng.choice(RUNTIMES, size=shape[1], p=row) for row in weights])
    if draw(st.booleans()):
        seconds = seconds * rng.lognormal(0.0, 0.3, size=shape)
    published = draw(options)
    return Question(
        seconds=seconds,
        procedure=procedure,
        options=published,
        utility=draw(st.sampled_from(("uniform(64)", "step(8)", "log-laplace(4, 1)", "exponential(10)"))),
        limit=draw(st.sampled_from((NEVER, 50.0))),
        delta=draw(st.sampled_from((0.05, 0.5, 0.9))),
        epsilon=draw(st.sampled_from((0.0, 0.2, 0.5))),
        captime_first=1.0 if published.get("variant") == "as-published" else draw(st.sampled_from((0.3, 1.0, 8.0))),
        # Odd numbers: a budget met exactly is met or missed by how a sum was rounded.
        budget=draw(st.sampled_from((np.inf, 41.371, 913.217))),
        accounting=draw(st.sampled_from(("restart", "resume"))),
    )


def assert_same_story(question: Question) -> None:
    """Told in both ways, every decision, every incident and every cost is the same."""
    assert_same_outcome(question.outcome(), question.outcome(one_by_one=True))


def assert_same_outcome(one: Outcome, other: Outcome) -> None:
    """Everything that is counted or chosen is the same, everything that is added up is the same but for rounding."""
    assert (one.stopped, one.rounds, one.crossed) == (other.stopped, other.rounds, other.crossed)
    for counted in ("candidates", "runs", "samples", "captimes"):
        np.testing.assert_array_equal(getattr(one, counted), getattr(other, counted), err_msg=counted)
    for added in ("seconds", "capping"):
        np.testing.assert_allclose(getattr(one, added), getattr(other, added), rtol=1e-12, atol=1e-12, err_msg=added)
    assert one.rerun_seconds == pytest.approx(other.rerun_seconds, rel=1e-12)
    assert_same_certificate(one.certificate, other.certificate)
    ours, theirs = one.trace.decisions(), other.trace.decisions()
    for counted in ("round", "runs", "config", "candidates"):
        np.testing.assert_array_equal(getattr(ours, counted), getattr(theirs, counted), err_msg=counted)
    np.testing.assert_allclose(ours.epsilon, theirs.epsilon, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.seconds, theirs.seconds, rtol=1e-12, atol=1e-12)
    assert [_event(each) for each in one.trace.incidents()] == [_event(each) for each in other.trace.incidents()]


def _event(incident: Incident) -> tuple[str, int, int, float | None]:
    return incident.kind, incident.round, incident.config, incident.captime


def assert_same_certificate(one: Certificate, other: Certificate) -> None:
    """The same statement but for rounding."""
    assert (one.config, one.delta, one.n_configs) == (other.config, other.delta, other.n_configs)
    ours = (one.epsilon, one.utility_low, one.utility_high)
    assert ours == pytest.approx((other.epsilon, other.utility_low, other.utility_high), rel=0, abs=1e-12)
