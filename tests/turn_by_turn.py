"""The same procedure told in two ways: many turns at a time, and one by one behind a door that hides the ability."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate
from captime.drive import Outcome, drive
from captime.plans import Plan
from captime.procedures import PROCEDURES, Problem, Procedure
from captime.sources.accounting import Accounting
from captime.sources.replay import Replay
from captime.sources.sampling import stream_of
from captime.tally import Tally
from captime.targets import Targets
from captime.utilities import parse_utility
from runtime_laws import NEVER, table_of

steady = settings(derandomize=True, deadline=None, max_examples=40)

# On these runtimes uniform(64) and step(8) are exact sums of powers of two, so ties are real ties.
RUNTIMES = np.array([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 63.0, NEVER])


class OneByOne:
    """A procedure that nobody can tell more than one decision at a time."""

    pays = True

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

    def ask(self, slots: int) -> Targets:
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

    def run(self, *, one_by_one: bool = False) -> tuple[Outcome, Procedure]:
        """The whole story, and who told it."""
        table = table_of(self.seconds, self.limit)
        stream = stream_of(self.sampling, table.groups, 0)
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
        replay = Replay(table, stream, made.plan, utility, accounting=self.accounting)
        return drive(OneByOne(made) if one_by_one else made, replay, budget=self.budget), made


@st.composite
def questions(draw: st.DrawFn, procedure: str, options: st.SearchStrategy[dict[str, object]]) -> Question:
    """Small tables with many ties, long enough for captimes to rise and somebody to be eliminated."""
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
    fast, slow = question.run()[0], question.run(one_by_one=True)[0]
    assert (fast.stopped, fast.rounds, fast.candidates.tolist()) == (
        slow.stopped,
        slow.rounds,
        slow.candidates.tolist(),
    )
    for name in ("samples", "runs", "captimes"):
        assert getattr(fast, name).tolist() == getattr(slow, name).tolist(), name
    mine, other = fast.trace.decisions(), slow.trace.decisions()
    for name in ("round", "runs", "config", "candidates"):
        assert getattr(mine, name).tolist() == getattr(other, name).tolist(), name
    np.testing.assert_allclose(mine.epsilon, other.epsilon, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(mine.seconds, other.seconds, rtol=1e-12, atol=1e-12)
    assert fast.certificate.config == slow.certificate.config
    events = [[(e.kind, e.round, e.config, e.captime) for e in told.trace.incidents()] for told in (fast, slow)]
    assert events[0] == events[1]
