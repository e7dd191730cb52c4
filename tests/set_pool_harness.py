"""How often the claims of a growing pool about exactly these instances are wrong, on spaces whose law is known.

Every configuration is a row of utilities on N instances, so its mean over the set is known exactly. Two ways of
looking: whole campaigns, in which every belief is compared with the truth after every decision; and an omniscient
reader, which takes of every duel the length that suits best.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.betting import sine_nodes
from captime.bounds.mixture import PairedBets
from captime.certificate import Orders, Population
from captime.drive import drive
from captime.errors import InvariantViolated
from captime.evidence import Evidence
from captime.executors.retry import LossLimit
from captime.executors.virtual import VirtualExecutor
from captime.live import drive_parallel
from captime.procedures import Problem
from captime.procedures.pool_shares import PoolShares
from captime.procedures.pool_terms import ON_SET_SHARES, PoolTerms
from captime.procedures.set_claims import NODES
from captime.procedures.set_pool import FixedSetPool
from captime.procedures.set_schedule import pilot_size
from captime.sources.replay import Replay
from captime.sources.table import RuntimeTable
from captime.utilities import Utility, parse_utility
from race_harness import NO_LIMITS, caught
from runtime_laws import NEVER, in_order, table_of

SHARE = dict(ON_SET_SHARES)
KINDS = ("paired", "lower", "shown", "draws", "certificate")
"""Duels of all leaders so far with the bests so far, both ends of the interval, gamma, and the certificate itself."""
_ROUNDING = 1e-9
_NODES = sine_nodes(NODES)


@dataclass(frozen=True)
class Space:
    """A space whose configurations solve a share of the set, by a known law.

    Attributes:
        worth: The means there are, falling; rounded to multiples of 1/N.
        chance: How likely a draw has each of them.
        shared: An instance is hard for all configurations or for none; otherwise each solves others.
    """

    worth: tuple[float, ...]
    chance: tuple[float, ...]
    shared: bool = False

    def draw(self, rng: np.random.Generator, count: int, size: int) -> FloatArray:
        """Return utilities of random draws on the positions of one random order: 0 or 1."""
        means = rng.choice(self.worth, size=count, p=self.chance)
        return self.rows(rng, means, size)

    def rows(self, rng: np.random.Generator, means: FloatArray, size: int) -> FloatArray:
        """Return rows with these means over the set."""
        solved = np.arange(size) < np.rint(np.asarray(means)[:, None] * size)
        if self.shared:
            return np.ascontiguousarray(solved[:, rng.permutation(size)].astype(np.float64))
        return rng.permuted(solved, axis=1).astype(np.float64)

    def best_but(self, gamma: float, size: int) -> float:
        """OPT^γ: the largest mean that at least a share γ of the space reaches."""
        reached = np.cumsum(self.chance)
        return float(np.rint(self.worth[int(np.flatnonzero(reached >= gamma - _ROUNDING)[0])] * size) / size)


ALIKE = Space((0.5,), (1.0,))
"""All hypotheses are exactly true: everything is as good as everything else, on other instances."""
LUCKY_FEW = Space((0.95, 0.4), (0.3, 0.7), shared=True)
"""Missing the luckiest share is all that can go wrong."""
STAIRS = Space(tuple(np.linspace(0.9, 0.1, 17).tolist()), (1 / 17,) * 17, shared=True)
"""Means all over; an instance is as hard for every configuration."""
CLOSE = Space(tuple(np.linspace(0.6, 0.4, 13).tolist()), (1 / 13,) * 13)
"""Nearly alike: there are many that were the best for a while."""
STRANGERS = Space(tuple(np.linspace(0.7, 0.3, 17).tolist()), (1 / 17,) * 17)
"""The same, closer together, on other instances each."""


class WatchedSetPool(FixedSetPool):
    """A pool that compares what it believes with the truth after every decision, and never shows it to itself."""

    space: Space
    rows: FloatArray
    seconds: FloatArray
    wrong: dict[str, bool]
    watching = False

    def watch(self, space: Space, rows: FloatArray, seconds: FloatArray) -> None:
        """Compare with these utilities from now on; proposals are written into them when they are asked for."""
        self.space, self.rows, self.seconds = space, rows, seconds
        self.wrong = dict.fromkeys(KINDS, False)
        self.watching = True

    def ask(self, slots: int) -> Orders:
        """Ask. A model that knows every run so far proposes what would have done well in them, or badly."""
        frontier, known = int(self._ordered.max()), self._asked_for
        orders = super().ask(slots)
        open_runs = self._tally is None or bool(self._tally.open.any())
        if len(orders) == 0 and self.finished() is None and not open_runs:
            raise InvariantViolated(f"the pool wants nothing and is not done; it has {self._ordered}")
        for config in orders.config[orders.config >= known].tolist():
            if self.terms.origin(config) == "model":
                flatters = config % 4 < 2
                self.rows[config, :frontier] = 1.0 if flatters else 0.0
                self.rows[config, frontier:] = 0.0 if flatters else 1.0
                self.seconds[config] = _seconds(self.rows[config], self.problem.utility)
        return orders

    def _certify(self) -> None:
        super()._certify()
        if not self.watching:
            return
        truth, leader, said = self.rows[: self.size].mean(axis=1), self.leader, self.certificate()
        bests = self._bests(truth)
        size = self.claims.population
        draws = [config for config in range(self.size) if self.terms.origin(config) == "random"]
        missed = self.space.best_but(max(self.gammas.after(self.shares.draws), _ROUNDING), size)
        reach = max(self.space.best_but(max(said.gamma or 0.0, _ROUNDING), size), float(truth[: said.n_configs].max()))
        found = {
            "paired": any(
                (held[bests] < truth[bests] - truth[former] - _ROUNDING)[bests != former].any()
                for former, held in self.claims._on_set.items()
            ),
            "lower": self._lower > truth[leader] + _ROUNDING,
            "shown": self._upper < truth[leader] - _ROUNDING,
            "draws": truth[draws].max(initial=0.0) < missed - _ROUNDING,
            "certificate": said.epsilon < 1.0 and reach - truth[said.config] > said.epsilon + _ROUNDING,
        }
        for kind, here in found.items():
            self.wrong[kind] |= bool(here)

    def _bests(self, truth: FloatArray) -> IntArray:
        """Return what a wrong statement could be about: the best listed one, the records of draws, all proposals."""
        return np.array([config for config in range(self.size) if self._could_be_best(config, truth)], dtype=np.int64)

    def _could_be_best(self, config: int, truth: FloatArray) -> bool:
        match self.terms.origin(config):
            case "listed":
                return config == int(truth[: self.terms.n_listed].argmax())
            case "model":
                return bool(self._ordered[config])
            case "random":
                before = [each for each in range(config) if self.terms.origin(each) == "random"]
                return bool(truth[config] > truth[before].max(initial=-1.0))


def _seconds(utilities: FloatArray, utility: Utility) -> FloatArray:
    """Return runtimes that are worth that much; 0 means that there is never an answer."""
    inside = np.clip(utilities, 1e-3, 1.0)
    return np.where(utilities > 0.0, utility.inverse(inside), NEVER)


@dataclass(frozen=True)
class Campaigns:
    """How whole campaigns are run.

    Attributes:
        space: Where.
        delta: Allowed probability of a wrong certificate.
        size: N.
        epsilon: Goal.
        gamma: Goal.
        terms: Which configurations come when.
        kind: The pool, or a faulty one.
        listed: Means of the listed configurations.
        workers: How many runs are under way at a time. With more than one, some are lost, and goals change.
        utility: What answers are worth.
    """

    space: Space
    delta: float = 0.2
    size: int = 20
    epsilon: float = 0.1
    gamma: float = 0.3
    terms: PoolTerms = field(default_factory=lambda: PoolTerms(limit=60))
    kind: type[WatchedSetPool] = WatchedSetPool
    listed: tuple[float, ...] = ()
    workers: int = 1
    utility: str = "uniform(60)"

    def fail(self, repetitions: int, seed: int, limits: Mapping[str, int] = NO_LIMITS) -> dict[str, BoolArray]:
        """Return which kinds of statements were wrong at any moment, per campaign.

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
        most, utility = self.terms.limit or 60, parse_utility(self.utility)
        rows = self.space.draw(rng, most, self.size)
        if self.listed:
            rows[: len(self.listed)] = self.space.rows(rng, np.array(self.listed), self.size)
        if self.utility != "uniform(60)":
            # Answers that are worth less than 1 but not nothing, so that captimes rise.
            rows *= rng.choice([1.0, 0.06, 0.02], size=rows.shape, p=[0.8, 0.1, 0.1])
        table = table_of(np.ascontiguousarray(_seconds(rows, utility)))
        problem = Problem(
            most,
            utility,
            self.delta,
            epsilon=self.epsilon,
            n_instances=self.size,
            pool=self.terms,
            population=Population.THESE,
        )
        pool = self.kind(problem, gamma=self.gamma)
        table.seconds.flags.writeable = True
        pool.watch(self.space, rows, table.seconds)
        self._drive(pool, table, rng)
        return pool.wrong

    def _drive(self, pool: WatchedSetPool, table: RuntimeTable, rng: np.random.Generator) -> None:
        order, utility = in_order(self.size), pool.problem.utility
        if self.workers == 1:
            drive(pool, Replay(table, order, pool.plan, utility))
            return

        def loses(_: object) -> float | None:
            return float(rng.exponential(20.0)) if rng.random() < 0.1 else None

        def look(*_: object) -> None:
            if rng.random() < 0.02:
                # A user who has seen how it stands asks for a little more, or for less.
                epsilon = max(0.05, pool.certificate().epsilon * float(rng.uniform(0.3, 1.0)))
                pool.retarget(epsilon, float(rng.choice([0.2, 0.3, 0.5])))

        slots = VirtualExecutor(table, order, self.workers, loses=loses)
        evidence = Evidence(table.n_configs, pool.plan, utility)
        drive_parallel(pool, LossLimit(slots, repeatable=True), evidence, observer=look)


Levels = Callable[[PoolShares, FloatArray], FloatArray]
"""ln(1/share) of every draw, from the shares and the utilities by position."""


@dataclass(frozen=True)
class Omniscient:
    """All duels of random draws with records among them, at the length that suits best.

    Attributes:
        space: Where.
        delta: Shared out as the pool does.
        size: N.
        draws: How many draws come, and were expected.
    """

    space: Space
    delta: float = 0.9
    size: int = 20
    draws: int = 24

    def fail(
        self, repetitions: int, seed: int, *, best: Levels | None = None, leader: Levels | None = None
    ) -> BoolArray:
        """Return in which repetitions some duel refutes a lead that is real.

        Args:
            repetitions: How many.
            seed: Fixes them.
            best: ln(1/share) as the best; left out, the pool's own.
            leader: ln(1/share) as a leader; left out, the pool's own.
        """
        rng = np.random.default_rng(seed)
        pilot = pilot_size(self.size)
        wrong = np.zeros(repetitions, dtype=np.bool_)
        for repetition in range(repetitions):
            rows = self.space.draw(rng, self.draws, self.size)
            shares = PoolShares(PoolTerms(), self.draws)
            for config in range(self.draws):
                shares.arrive()
                shares.rank(config, float(rows[config, :pilot].sum()))
            bests = np.array(shares.log_best) if best is None else best(shares, rows)
            leaders = np.array(shares.log_leader) if leader is None else leader(shares, rows)
            truth = rows.mean(axis=1)
            records = np.flatnonzero(truth > np.concatenate(([-1.0], np.maximum.accumulate(truth)[:-1])))
            pairs = [(a, i) for i in records.tolist() for a in range(self.draws) if a != i and truth[a] <= truth[i]]
            ahead, first, second = rows, *np.array(pairs, dtype=np.int64).reshape(-1, 2).T
            differences = ahead[second] - ahead[first]
            counts = np.broadcast_to(np.arange(self.size) >= pilot, differences.shape)
            levels = leaders[first] + bests[second] - np.log(SHARE["paired"] * self.delta)
            bets = PairedBets.on_set(differences, self.size, counts, levels, _NODES)
            wrong[repetition] = bets.refutes(truth[second] - truth[first] - _ROUNDING).any()
        return wrong
