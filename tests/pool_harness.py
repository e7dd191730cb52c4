"""How often the statements of a growing pool are wrong, on spaces whose law of utilities is known.

Two ways of looking. Whole campaigns: the pool itself, with every decision compared with the truth. And
an omniscient adversary: of every process behind the statements the worst of all moments, for all draws at once, so that
no schedule can do more harm. Shares, bets and gammas are captime's own; only the truth they are compared with is not.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from captime.arrays import BoolArray, FloatArray
from captime.certificate import Orders
from captime.drive import drive
from captime.errors import InvariantViolated
from captime.evidence import Evidence
from captime.executors.retry import LossLimit
from captime.executors.virtual import VirtualExecutor
from captime.live import drive_parallel
from captime.procedures import Problem
from captime.procedures.pool import Pool
from captime.procedures.pool_shares import PoolShares
from captime.procedures.pool_terms import SHARES, Effort, PoolTerms
from captime.sources.replay import Replay
from captime.sources.table import RuntimeTable
from captime.utilities import parse_utility
from race_harness import NO_LIMITS, caught, log_evidence, log_paired_evidence
from runtime_laws import NEVER, in_order, table_of

SHARE = dict(SHARES)
UTILITY = parse_utility("step(10)")
KINDS = ("upper", "lower", "paired", "shown", "draws", "certificate")
"""Upper bound of the best so far, the leader's lower bound, its duel with the best so far, the upper end shown, gamma,
and the certificate itself, which is false only if one of the others is."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Space:
    """A space whose law of utilities is known: atoms, best first.

    Attributes:
        worth: The utilities there are, falling.
        chance: How likely a draw has each of them.
        shared: An instance is hard for all configurations or for none.
    """

    worth: tuple[float, ...]
    chance: tuple[float, ...]
    shared: bool = True

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Utilities of random draws."""
        return np.asarray(rng.choice(self.worth, size=n, p=self.chance))

    def best_but(self, gamma: float) -> float:
        """OPT^γ: the largest utility that at least a share γ of the space reaches."""
        reached = np.cumsum(self.chance)
        return self.worth[int(np.flatnonzero(reached >= gamma - _ROUNDING)[0])]

    def runtimes(self, rng: np.random.Generator, truth: FloatArray, n_instances: int) -> FloatArray:
        """One second or never, so that a configuration finishes with the probability that is its utility."""
        luck = rng.random((1 if self.shared else len(truth), n_instances))
        return np.where(luck < truth[:, None], 1.0, NEVER)


LUCKY_FEW = Space((0.95, 0.4), (0.3, 0.7))
"""Missing the luckiest share is all that can go wrong."""

STAIRS = Space(tuple(np.linspace(0.9, 0.1, 17).tolist()), (1 / 17,) * 17)
"""Utilities all over; an instance is as hard for every configuration."""

TWINS = Space((0.5,), (1.0,), shared=False)
"""All alike, each with its own luck: the one that looks best has only been lucky."""

CLOSE = Space(tuple(np.linspace(0.6, 0.4, 400).tolist()), (1 / 400,) * 400, shared=False)
"""No two alike, and nearly so: there are many that were the best for a while."""

STRANGERS = Space(tuple(np.linspace(0.7, 0.3, 17).tolist()), (1 / 17,) * 17, shared=False)
"""The same, closer together, and an instance is drawn afresh for every configuration."""


class WatchedPool(Pool):
    """A pool that compares what it believes with the truth after every decision, and never shows it to itself."""

    space: Space
    truth: FloatArray
    seconds: FloatArray
    wrong: dict[str, bool]

    def watch(self, space: Space, truth: FloatArray, seconds: FloatArray) -> None:
        """From now on, compare with this truth; model-proposed rows are written into `seconds` when asked for."""
        self.space, self.truth, self.seconds = space, truth, seconds
        self.wrong = dict.fromkeys(KINDS, False)

    def ask(self, slots: int) -> Orders:
        """What the pool asks. A model that knows every run so far proposes whatever would have done well in them."""
        run, known = self._frontier(), self._asked_for
        orders = super().ask(slots)
        if len(orders) == 0 and self.finished() is None and not self._busy.any():
            raise InvariantViolated(f"the pool wants nothing and is not done; it has {self._agenda.ordered}")
        for config in orders.config[orders.config >= known].tolist():
            if self.terms.origin(config) == "model":
                self.seconds[config, :run] = 1.0
        return orders

    def _certify(self) -> None:
        super()._certify()
        truth, leader, said = self.truth[: self.size], self.leader, self.certificate()
        best = self._bests()
        gap = truth[best] - truth[leader]
        draws = [config for config in range(self.size) if self.terms.origin(config) == "random"]
        missed = self.space.best_but(max(self.gammas.after(self.shares.draws), _ROUNDING))
        reach = max(self.space.best_but(max(said.gamma or 0.0, _ROUNDING)), float(truth[: said.n_configs].max()))
        others = best[best != leader]
        found = {
            "upper": (self.upper[best] < truth[best] - _ROUNDING).any(),
            "lower": self.lower[leader] > truth[leader] + _ROUNDING,
            "paired": (self._margin[others] < gap[best != leader] - _ROUNDING).any(),
            "shown": said.utility_high < truth[said.config] - _ROUNDING,
            "draws": truth[draws].max(initial=0.0) < missed - _ROUNDING,
            "certificate": said.epsilon < 1.0 and reach - truth[said.config] > said.epsilon + _ROUNDING,
        }
        for kind, here in found.items():
            self.wrong[kind] |= bool(here)

    def _bests(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Those that a wrong statement could be about: the best listed one, the best draws so far, all proposals."""
        found, record = [], -np.inf
        listed = self.truth[: self.terms.n_listed]
        if len(listed):
            found.append(int(listed.argmax()))
        for config in range(self.terms.n_listed, self.size):
            if self.terms.origin(config) == "model":
                found.append(config)
            elif self.truth[config] > record:
                record = self.truth[config]
                found.append(config)
        return np.array(found, dtype=np.int64)


@dataclass(frozen=True)
class Campaigns:
    """How whole campaigns are run.

    Attributes:
        space: Where.
        delta: Allowed probability of a wrong certificate.
        epsilon: Goal.
        gamma: Goal.
        terms: Who comes when.
        kind: The pool, or a faulty one.
        listed: Utilities of the listed configurations.
        proposed: Utility of what the model proposes.
        n_instances: Length of the stream.
        effort: What CPU time is mainly spent on.
    """

    space: Space
    delta: float
    epsilon: float = 0.3
    gamma: float = 0.3
    terms: PoolTerms = field(default_factory=lambda: PoolTerms(limit=200))
    kind: type[WatchedPool] = WatchedPool
    listed: tuple[float, ...] = ()
    proposed: float = 0.2
    n_instances: int = 400
    effort: Effort = "balanced"

    def fail(self, repetitions: int, seed: int, limits: Mapping[str, int] = NO_LIMITS) -> dict[str, BoolArray]:
        """Which kinds of statements were wrong at any moment, per campaign.

        No further campaign is run once each of the kinds with a limit has failed more often than that.
        """
        rng = np.random.default_rng(seed)
        wrong: dict[str, list[bool]] = {kind: [] for kind in KINDS}
        for _ in range(repetitions):
            for kind, happened in self._campaign(rng).items():
                wrong[kind].append(happened)
            if caught(wrong, limits):
                break
        return {kind: np.array(story) for kind, story in wrong.items()}

    def _campaign(self, rng: np.random.Generator) -> dict[str, bool]:
        most = self.terms.limit or 200
        origin = [self.terms.origin(config) for config in range(most)]
        truth = self.space.draw(rng, most)
        truth[: len(self.listed)] = self.listed
        truth[[place for place, each in enumerate(origin) if each == "model"]] = self.proposed
        table = table_of(self._runtimes(rng, truth))
        problem = Problem(
            most,
            UTILITY,
            self.delta,
            epsilon=self.epsilon,
            n_instances=self.n_instances,
            seed=int(rng.integers(1 << 31)),
            pool=self.terms,
        )
        pool = self.kind(problem, gamma=self.gamma, growth=0.5, effort=self.effort)
        table.seconds.flags.writeable = True
        pool.watch(self.space, truth, table.seconds)
        self._drive(pool, table, rng)
        return pool.wrong

    def _runtimes(self, rng: np.random.Generator, truth: FloatArray) -> FloatArray:
        return self.space.runtimes(rng, truth, self.n_instances)

    def _drive(self, pool: WatchedPool, table: RuntimeTable, rng: np.random.Generator) -> None:
        drive(pool, Replay(table, in_order(self.n_instances), pool.plan, UTILITY))


@dataclass(frozen=True)
class AtOnce(Campaigns):
    """The same with several runs at a time: the fast are heard of first, some are lost, and goals change on the way.

    Attributes:
        workers: How many at a time.
        repeatable: Whether a run that was lost is made again as it was; if not, it is given up for good.
    """

    workers: int = 6
    repeatable: bool = True

    def _runtimes(self, rng: np.random.Generator, truth: FloatArray) -> FloatArray:
        seconds = super()._runtimes(rng, truth)
        return np.where(seconds < NEVER, rng.uniform(0.5, 9.5, seconds.shape), seconds)

    def _drive(self, pool: WatchedPool, table: RuntimeTable, rng: np.random.Generator) -> None:
        def loses(_: object) -> float | None:
            return float(rng.exponential(20.0)) if rng.random() < 0.2 else None

        def look(*_: object) -> None:
            if rng.random() < 0.02:
                # A user who has seen how it stands asks for a little more, or for less.
                epsilon = max(0.05, pool.certificate().epsilon * float(rng.uniform(0.3, 1.0)))
                pool.retarget(epsilon, float(rng.choice([0.1, 0.2, 0.3, 0.5])))

        slots = VirtualExecutor(table, in_order(self.n_instances), self.workers, loses=loses)
        evidence = Evidence(table.n_configs, pool.plan, UTILITY, repeatable=self.repeatable)
        drive_parallel(pool, LossLimit(slots, repeatable=self.repeatable), evidence, observer=look)


# ---------------------------------------------------------------------------- the omniscient adversary


@dataclass(frozen=True)
class Omniscient:
    """All processes behind the statements about random draws, over all moments.

    Attributes:
        space: Where.
        delta: Shared out as the pool does.
        draws: How many draws come.
        expected: How many were expected.
        positions: Length of the stream.
        pilot: Positions of the ranking.
        kinds: What to look at.
    """

    space: Space
    delta: float
    draws: int = 24
    expected: int = 24
    positions: int = 120
    pilot: int = 4

    kinds: tuple[str, ...] = ("upper", "lower", "paired")

    def fail(
        self,
        repetitions: int,
        seed: int,
        *,
        best_levels: Callable[[PoolShares], FloatArray] | None = None,
        leader_levels: Callable[[PoolShares, FloatArray], FloatArray] | None = None,
    ) -> dict[str, BoolArray]:
        """Which kinds of statements have a moment at which they are wrong, per repetition.

        Args:
            repetitions: How many.
            seed: Fixes them.
            best_levels: ln(1/share) of every draw as the best; left out, the pool's own.
            leader_levels: The same as a leader, from the shares and the low ends; left out, the pool's own.
        """
        rng = np.random.default_rng(seed)
        wrong = {kind: np.zeros(repetitions, dtype=np.bool_) for kind in self.kinds}
        for repetition in range(repetitions):
            truth = self.space.draw(rng, self.draws)
            score = (self.space.runtimes(rng, truth, self.positions) < NEVER).astype(np.float64)
            shares = PoolShares(PoolTerms(), self.expected)
            for config in range(self.draws):
                shares.arrive()
                shares.rank(config, float(score[config, : self.pilot].sum()))
            best = np.array(shares.log_best) if best_levels is None else best_levels(shares)
            leader = np.array(shares.log_leader) if leader_levels is None else leader_levels(shares, score)
            for kind, happened in self._judge(truth, score, best, leader).items():
                wrong[kind][repetition] = happened
        return wrong

    def _judge(self, truth: FloatArray, score: FloatArray, best: FloatArray, leader: FloatArray) -> dict[str, bool]:
        level = {kind: -np.log(SHARE[kind] * self.delta) for kind in self.kinds}
        earlier = np.concatenate(([-np.inf], np.maximum.accumulate(truth)[:-1]))
        raced = score[:, self.pilot :]
        wrong = dict.fromkeys(self.kinds, False)
        for config in np.flatnonzero(truth > earlier).tolist():
            if "upper" in level:
                evidence = log_evidence(1.0 - score[config][None], 1.0 - truth[config])
                wrong["upper"] |= _reaches(evidence, level["upper"] + best[config])
            worse = np.flatnonzero(truth <= truth[config]) if "paired" in level else truth[:0]
            for rival in worse[worse != config].astype(np.int64).tolist():
                evidence = log_paired_evidence((raced[config] - raced[rival])[None], truth[config] - truth[rival])
                wrong["paired"] |= _reaches(evidence, level["paired"] + best[config] + leader[rival])
        for config, mean in enumerate(truth.tolist() if "lower" in level else []):
            wrong["lower"] |= _reaches(log_evidence(raced[config][None], mean), level["lower"] + leader[config])
        return wrong


def _reaches(evidence: FloatArray, level: float) -> bool:
    return bool(evidence.max() >= level)
