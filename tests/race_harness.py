"""How often the race's statements are wrong: by an adversary who picks the best moment of all, and by whole races.

Whatever the race shows rests on three kinds of statements: the upper bound of the one best configuration, the lower
bound of the leader, and the duel of a leader with the best. The proof speaks of all lengths of the prefix at once,
so the first half of this file hands an omniscient adversary *all* of them: a statement counts as wrong if there is any
length at which it is. No schedule, leader or stopping rule can do more harm. The second half runs the race itself.

The bounds, captimes, levels and the warm start are captime's own; only the truth they are compared with is not.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import binom

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.mixture import BinnedMixture, PairedMixture
from captime.certificate import Orders
from captime.drive import drive
from captime.errors import InvariantViolated
from captime.plans import RandomCaptimes, Schedule
from captime.procedures import Problem
from captime.procedures.agenda import WarmStart
from captime.procedures.board import Board
from captime.procedures.claims import Duels
from captime.procedures.problem import FIFTH_SCHEDULE
from captime.procedures.race import Race
from captime.procedures.race_claims import SHARES
from captime.sources.replay import Replay
from captime.utilities import Utility
from race_worlds import RaceWorld
from runtime_laws import in_order, table_of

DELTA = 0.2
BOOST = 1.25
SHARE = dict(SHARES)
KINDS = ("upper", "lower", "paired", "shown")
"""Upper bound of the best, any leader's lower bound, any leader's duel with the best, upper end of what is shown."""

RACE_KINDS = (*KINDS, "scout", "certificate")
"""Whole races also have a scout with a lower bound of its own, and say something false only if one of these fails."""

# The race's own bets, and the bins of its scores.
_BOARD = Board(1, 1.0 / BOOST)
NODES: FloatArray = _BOARD._bets.nodes
FRACTIONS: FloatArray = Duels(1, np.array([0.1]))._mixture.fractions
# Values that are not few are rounded to this many, to the safe side, before they are counted.
_FEW = 48
# Means at the ends of [0, 1] cannot be missed: the data are constant.
_ROUNDING = 1e-9
# Cells of a temporary table.
_CELLS = 4_000_000


def limit_for(repetitions: int, level: float) -> int:
    """More failures than this have probability at most 1e-4 if each has probability `level`."""
    return int(binom.isf(1e-4, repetitions, level))


def caught(wrong: Mapping[str, Sequence[bool]], limits: Mapping[str, int]) -> bool:
    """Whether each of these kinds has failed more often than its limit: further repetitions cannot change that."""
    return bool(limits) and all(sum(wrong[kind]) > most for kind, most in limits.items())


NO_LIMITS: Mapping[str, int] = {}
"""All repetitions are made, for their rates."""


# ---------------------------------------------------------------------------- scores


def plan_for(
    utility: Utility,
    *,
    boost: float = BOOST,
    longest: float = math.inf,
    seed: int = 0,
    kind: type[RandomCaptimes] = RandomCaptimes,
) -> RandomCaptimes:
    """Random captimes, or a faulty kind of them; nothing is cut short unless `longest` is given."""
    return kind(utility, seed, Schedule(boost), Schedule(min(longest, utility.zero_at)))


def scores(plan: RandomCaptimes, seconds: FloatArray, repetitions: int) -> tuple[FloatArray, FloatArray]:
    """Low and high ends of runs, shape (…, repetitions · positions) in, (…, repetitions, positions) out.

    Every repetition has stream positions of its own, and so draws of its own.
    """
    position = np.arange(seconds.shape[-1])
    _, low, high = plan.settled(seconds, plan.utility(seconds), np.zeros(1, dtype=np.int64), position)
    shape = (*seconds.shape[:-1], repetitions, -1)
    return np.broadcast_to(low, seconds.shape).reshape(shape), np.broadcast_to(high, seconds.shape).reshape(shape)


# ---------------------------------------------------------------------------- evidence at every cut


def _grid_for(values: FloatArray, low: float) -> FloatArray:
    """The values themselves if they are few, else equidistant ones from `low` to 1."""
    few = np.unique(values)
    return few if len(few) <= _FEW else np.linspace(low, 1.0, _FEW + 1)


def _running_counts(bins: IntArray, size: int, used: BoolArray | None) -> IntArray:
    """How often each bin was met after each position, shape (repetitions, positions, bins)."""
    met = np.zeros((*bins.shape, size), dtype=np.int64)
    np.put_along_axis(met, bins[..., None], 1, axis=2)
    if used is not None:
        met *= used[..., None]
    return met.cumsum(axis=1)


def log_evidence(
    samples: FloatArray, mean: float, nodes: FloatArray = NODES, used: BoolArray | None = None
) -> FloatArray:
    """The logarithm of the wealth against "the mean is at most `mean`", after each position: (repetitions, positions).

    Args:
        samples: Scores or their low ends, shape (repetitions, positions).
        mean: The claim.
        nodes: Shares that are bet.
        used: Positions that count; left out, all.
    """
    if not _ROUNDING < mean < 1.0 - _ROUNDING:
        return np.full(samples.shape, -math.inf)
    mixture = BinnedMixture(_grid_for(samples, 0.0), np.array([mean]), nodes)
    size = len(mixture.grid)
    parts = []
    rows = max(1, _CELLS // (samples.shape[1] * size))
    for start in range(0, len(samples), rows):
        part = slice(start, start + rows)
        counts = _running_counts(mixture.bin_down(samples[part]), size, None if used is None else used[part])
        parts.append(mixture.lower_table.log_wealth(counts.reshape(-1, size)).reshape(samples[part].shape))
    return np.concatenate(parts)


def log_paired_evidence(worst: FloatArray, gap: float, fractions: FloatArray = FRACTIONS) -> FloatArray:
    """The logarithm of the wealth against "the challenger is better by at least `gap`", after each position.

    Args:
        worst: Challenger's high ends less leader's low ends, shape (repetitions, positions).
        gap: By how much it is better in truth.
        fractions: Fractions that are bet.
    """
    if gap > 1.0 - _ROUNDING:
        return np.full(worst.shape, -math.inf)
    duel = PairedMixture(_grid_for(worst, -1.0), np.array([gap]), fractions)
    size = len(duel.differences)
    parts = []
    rows = max(1, _CELLS // (worst.shape[1] * size))
    for start in range(0, len(worst), rows):
        counts = _running_counts(duel.bin_up(worst[start : start + rows]), size, None)
        parts.append(duel.log_wealth(counts.reshape(-1, size)).reshape(-1, worst.shape[1]))
    return np.concatenate(parts)


Level = FloatArray | float


def _reached(evidence: FloatArray, level: Level) -> BoolArray:
    """In which repetitions the evidence against the truth was enough at some cut."""
    return np.asarray(evidence.max(axis=1) >= -np.log(level))


def lower_wrong(samples: FloatArray, mean: float, level: Level = DELTA, used: BoolArray | None = None) -> BoolArray:
    """Whether the lower bound at that level exceeds the mean at some cut, per repetition."""
    return _reached(log_evidence(samples, mean, used=used), level)


def upper_wrong(samples: FloatArray, mean: float, level: Level = DELTA, used: BoolArray | None = None) -> BoolArray:
    """Whether the upper bound at that level is below the mean at some cut, per repetition."""
    return _reached(log_evidence(1.0 - samples, 1.0 - mean, used=used), level)


def paired_wrong(worst: FloatArray, gap: float, level: Level = DELTA) -> BoolArray:
    """Whether the duel shows less than the true gap at some cut, per repetition."""
    return _reached(log_paired_evidence(worst, gap), level)


# ---------------------------------------------------------------------------- all statements of a race at once


@dataclass(frozen=True)
class Prior:
    """What the warm starts of many repetitions came to.

    Attributes:
        start: First position of the race.
        pilot: Positions each configuration ran before, shape (configurations, repetitions).
        log_rank: ln(1/π), shape (configurations, repetitions).
        race: A race that has begun, for its levels.
    """

    start: int
    pilot: IntArray
    log_rank: FloatArray
    race: Race

    def levels(self, share: float) -> FloatArray:
        """The failure probability of each configuration's statements if they get that share of delta."""
        return np.asarray(share * self.race.problem.delta * np.exp(-self.log_rank))


def warm_starts(world: RaceWorld, low: FloatArray, delta: float) -> Prior:
    """Successive halving on the first positions of every repetition, and the prior the race makes of it."""
    n_configs, repetitions, positions = low.shape
    problem = Problem(n_configs, world.utility, delta, n_instances=positions, schedule=FIFTH_SCHEDULE)
    race = Race(problem, boost=BOOST)
    pilot = np.zeros((n_configs, repetitions), dtype=np.int64)
    log_rank = np.zeros((n_configs, repetitions))
    sums = np.concatenate((np.zeros((n_configs, repetitions, 1)), low[..., : positions // 8].cumsum(axis=2)), axis=2)
    start = 0
    for k in range(repetitions):
        warm = WarmStart(n_configs, 4, 2, positions)
        ranking = None
        while ranking is None:
            pilot[warm.alive, k] = warm.positions
            reached = np.take_along_axis(sums[:, k], pilot[:, k, None], axis=1)[:, 0]
            ranking = warm.judge(reached / pilot[:, k])
        start = race._warm.positions = warm.positions
        race._begin(ranking)
        log_rank[:, k] = race.levels.log_rank
    return Prior(start, pilot, log_rank, race)


def omniscient_failures(
    world: RaceWorld, repetitions: int, positions: int, seed: int, *, boost: float = BOOST, longest: float = math.inf
) -> dict[str, BoolArray]:
    """Which kinds of statements have a cut at which they are wrong, per repetition; `any` for any of them.

    The adversary needs no schedule: for each process the worst of all cuts is taken.

    Args:
        world: Where.
        repetitions: How many independent streams.
        positions: How long they are.
        seed: Of instances and captimes.
        boost: B.
        longest: Runs are stopped after this many seconds.
    """
    seconds = world.draw(np.random.default_rng(seed), repetitions * positions)
    low, high = scores(plan_for(world.utility, boost=boost, longest=longest, seed=seed), seconds, repetitions)
    prior = warm_starts(world, low, DELTA)
    begin, best = prior.start, int(world.truth.argmax())
    place = np.arange(positions)
    # Positions that successive halving skipped stay skipped.
    used = (place >= begin) | (place < prior.pilot[..., None])
    wrong = {kind: np.zeros(repetitions, dtype=np.bool_) for kind in KINDS}
    wrong["upper"] |= upper_wrong(high[best], world.truth[best], SHARE["upper"] * DELTA, used[best])
    by_share = {kind: prior.levels(SHARE[kind]) for kind in ("lower", "paired")}
    # What is shown counts the warm start too, so its level may not depend on the ranking.
    shown_level = SHARE["shown"] * DELTA / world.n_configs
    for config, mean in enumerate(world.truth.tolist()):
        wrong["shown"] |= upper_wrong(high[config], mean, shown_level, used[config])
        wrong["lower"] |= lower_wrong(low[config][:, begin:], mean, by_share["lower"][config])
        if config != best:
            worst = high[best][:, begin:] - low[config][:, begin:]
            wrong["paired"] |= paired_wrong(worst, world.truth[best] - mean, by_share["paired"][config])
    wrong["any"] = np.logical_or.reduce([wrong[kind] for kind in KINDS])
    return wrong


def allowed(kind: str) -> float:
    """How often that kind may be wrong; `any` and `certificate` as often as all of them together."""
    return DELTA * SHARE.get(kind, 1.0)


# ---------------------------------------------------------------------------- whole races


class WatchedRace(Race):
    """A race that compares what it believes with the truth after every decision, and never shows it to itself."""

    truth: FloatArray

    def watch(self, truth: FloatArray) -> None:
        """From now on, compare with this truth."""
        self.truth = truth
        self.wrong = dict.fromkeys(RACE_KINDS, False)

    def ask(self, slots: int) -> Orders:
        """What the race asks; a race that wants nothing and is not done would never end."""
        orders = super().ask(slots)
        if len(orders) == 0 and self.finished() is None:
            raise InvariantViolated(f"the race wants nothing and is not done; it has {self._agenda.ordered}")
        return orders

    def _certify(self) -> None:
        super()._certify()
        truth, best, leader = self.truth, int(self.truth.argmax()), self.leader
        gap = float(truth[best] - truth[leader])
        said = self.certificate()
        # Before the race begins only the scout has a lower bound.
        lower_kind, other_kind = ("scout", "lower") if self._start is None else ("lower", "scout")
        found = {
            "upper": self.upper[best] < truth[best] - _ROUNDING,
            lower_kind: self.lower[leader] > truth[leader] + _ROUNDING,
            other_kind: False,
            "paired": leader != best and self._margin[best] < gap - _ROUNDING,
            "shown": said.utility_high < truth[said.config] - _ROUNDING,
            "certificate": truth[best] - truth[said.config] > said.epsilon + _ROUNDING,
        }
        for kind, here in found.items():
            self.wrong[kind] |= bool(here)


@dataclass(frozen=True)
class Racing:
    """How whole races are run.

    Attributes:
        n_instances: Length of the stream.
        options: Options of the race.
        kind: The race, or a faulty one.
        epsilon: Goal; left out, the world's own.
        limit: Timeout of the table.
        schedule: By which rules runs are ordered and delta is shared out.
    """

    n_instances: int
    options: Mapping[str, float | bool | str] = field(default_factory=dict)
    kind: type[WatchedRace] = WatchedRace
    epsilon: float | None = None
    limit: float = math.inf
    schedule: int = FIFTH_SCHEDULE


def race_failures(
    world: RaceWorld, racing: Racing, repetitions: int, seed: int, enough: float = math.inf
) -> dict[str, BoolArray]:
    """Which kinds of statements were wrong at any moment of a whole race, per race; `any` for any of them.

    No further race is run once more than `enough` races had something wrong in them.
    """
    rng = np.random.default_rng(seed)
    epsilon = world.goal if racing.epsilon is None else racing.epsilon
    problem = Problem(
        world.n_configs,
        world.utility,
        DELTA,
        epsilon=epsilon,
        captime_limit=racing.limit,
        n_instances=racing.n_instances,
        schedule=racing.schedule,
    )
    model = racing.kind(problem, **racing.options)  # type: ignore[arg-type]  # mixed options, checked by the race
    # Tables of logarithms never change, so all races share them.
    shared = {id(part): part for part in (model._board._bets, model._duels._mixture)}
    wrong: dict[str, list[bool]] = {kind: [] for kind in RACE_KINDS}
    for _ in range(repetitions):
        race = copy.deepcopy(model, shared.copy())
        race.plan.seed = int(rng.integers(1 << 31))
        race.watch(world.truth)
        table = table_of(world.draw(rng, racing.n_instances), racing.limit)
        drive(race, Replay(table, in_order(racing.n_instances), race.plan, world.utility))
        for kind, story in wrong.items():
            story.append(race.wrong[kind])
        if sum(map(any, zip(*wrong.values(), strict=True))) > enough:
            break
    counted = {kind: np.array(story) for kind, story in wrong.items()}
    counted["any"] = np.logical_or.reduce(list(counted.values()))
    return counted


def report(name: str, wrong: Mapping[str, BoolArray]) -> str:
    """One line: how often each kind was wrong, and how often it may be."""
    rates = "  ".join(f"{kind} {here.mean():.3f} (≤ {allowed(kind):.3f})" for kind, here in wrong.items())
    return f"{name}: {rates}"
