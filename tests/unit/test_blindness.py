"""What may be known when: who runs a position, and where bounds begin, is decided from earlier positions alone.

Each of these tests kills a one-line mutant of the engine that every other test let live; see tests/mutants.
"""

import math

import numpy as np
import pytest

from captime.arrays import FloatArray, IntArray
from captime.evidence import Evidence
from captime.executors import VirtualExecutor
from captime.live import drive_parallel
from captime.procedures import Problem
from captime.procedures.agenda import WarmStart
from captime.procedures.board import ALL_OPEN, Board
from captime.procedures.claims import Duels, margins
from captime.procedures.fixed_captimes import FixedCaptimes
from captime.procedures.pool import Pool
from captime.procedures.pool_terms import PoolTerms
from captime.procedures.race import Race
from captime.procedures.race_claims import Latecomers
from captime.skeptic.late import Late, shares_of
from captime.sources.replay import Replay
from captime.tally import blank_tally
from captime.utilities import parse_utility
from runtime_laws import NEVER, in_order, table_of

UTILITY = parse_utility("uniform(60)")
N_CONFIGS, N_INSTANCES = 100, 4000


def good_ones() -> FloatArray:
    """All are worth about 0.93, so that the scout's champion is tried for long and not shown to be worth 0.9."""
    rng = np.random.default_rng(8)
    return np.asarray(rng.uniform(1.0, 8.0, (N_CONFIGS, N_INSTANCES)))


class Watched(Race):
    """A race that notes when its warm start is judged, and with how many slots."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.judged: list[tuple[int, int, bool]] = []
        judge, lengthen = self._warm.judge, self._warm.lengthen

        def noted(means: FloatArray, slots: int = 1) -> IntArray | None:
            whole = bool((self._known[self._warm.alive] >= self._warm.positions).all())
            self.judged.append((self._warm.positions, slots, whole))
            return judge(means, slots)

        def longer(runs: int) -> bool:
            assert self._warm.positions >= self._scouted, "a rung was lengthened where a scout has been"
            return lengthen(runs)

        self._warm.judge, self._warm.lengthen = noted, longer  # type: ignore[method-assign]


def raced(workers: int) -> Watched:
    """A race up to its start, behind a scout that has gone further than the warm start does."""
    race = Watched(Problem(N_CONFIGS, UTILITY, 0.1, epsilon=0.1, n_instances=N_INSTANCES, short_captimes=False))
    seconds = good_ones()
    executor = VirtualExecutor(table_of(seconds, NEVER), in_order(N_INSTANCES), workers)
    evidence = Evidence(N_CONFIGS, race.plan, UTILITY)
    drive_parallel(race, executor, evidence, interrupted=lambda: race._start is not None)
    assert race._start is not None
    assert race._tried is not None
    return race


@pytest.mark.parametrize("workers", [1, 4])
def test_the_race_begins_behind_the_scout(workers: int) -> None:
    """Lower bounds and duels use no position that any configuration had been told to run when the ranking was made."""
    race = raced(workers)
    assert race._scouted > race._warm.positions, "the scout should have gone further than the warm start"
    assert race._start == race._pilot_end.max() >= race._scouted
    assert not race.lower.any(), "what the scout's share showed is not what later lower bounds are paid for"


@pytest.mark.parametrize("workers", [1, 4])
def test_where_scouts_have_been_the_warm_start_is_blind(workers: int) -> None:
    """There a rung is judged whole and as if there were one slot: what is under way, and how much, tells of results."""
    race = raced(workers)
    early = [(slots, whole) for positions, slots, whole in race.judged if positions < race._scouted]
    assert early
    assert set(early) == {(1, True)}


def test_scouts_are_ranked_on_the_positions_of_the_rung() -> None:
    """Configuration 0 has run eight positions, as a scout; the rung has four."""
    warm = WarmStart(2, 4, 1, None)
    score = np.array([[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]])
    tally = blank_tally(2, lambda config, first, last: (score[config, first:last], score[config, first:last]))
    tally.n[:] = [8, 4]
    tally.utility_low[:] = tally.utility_high[:] = [4.0, 2.0]
    np.testing.assert_allclose(warm.means(tally), [0.0, 0.5])
    assert warm.ranking(warm.means(tally)).tolist() == [1, 0]


@pytest.mark.parametrize("earliest", [0, 90])
def test_an_added_configuration_of_a_pool_begins_where_it_may(earliest: int) -> None:
    """Behind everything that was run, and behind what else had been seen when it was added."""
    rng = np.random.default_rng(3)
    seconds = rng.uniform(1.0, 40.0, (12, 400))
    pool = Pool(Problem(10, UTILITY, 0.1, epsilon=0.2, n_instances=400, pool=PoolTerms(2, limit=10)), gamma=0.5)
    replay = Replay(table_of(seconds, NEVER), in_order(400), pool.plan, UTILITY)
    for _ in range(6):
        order = pool.ask(1)
        pool.tell(replay.tally, replay.answer(order))
    reached = int(replay.tally.n.max())
    assert reached < 90
    new = pool.newcomers(1, earliest)
    first = None
    while first is None:
        order = pool.ask(1)
        assert order.first is not None
        if new in order.config:
            first = int(order.first[order.config == new][0])
        reached = max(reached, int(replay.tally.n.max()))
        pool.tell(replay.tally, replay.answer(order))
    assert first >= max(earliest, reached)


def test_fixed_captimes_forget_bins_of_a_shorter_captime() -> None:
    """When a captime rises all scores change; what was counted under the shorter one must not be counted again."""
    utility = parse_utility("log-laplace(60, 1)")
    rng = np.random.default_rng(5)
    seconds = rng.lognormal(4.0, 1.2, (2, 600))
    made = FixedCaptimes(Problem(2, utility, 0.1, epsilon=0.01, n_instances=600))
    replay = Replay(table_of(seconds, NEVER), in_order(600), made.plan, utility)
    raised = 0
    while made.finished() is None and raised < 2:
        before = made._level.copy()
        made.tell(replay.tally, replay.answer(made.ask(1)))
        raised += int((made._level > before).sum())
        for config in range(2):
            n = int(made._n[config])
            low, high = replay.samples(config, 0, n)
            down, up = made._bins[:, config]
            assert (down.sum(), up.sum()) == (n, n)
            np.testing.assert_array_equal(down, np.bincount(made._mixture.bin_down(low), minlength=len(down)))
            np.testing.assert_array_equal(up, np.bincount(made._mixture.bin_up(high), minlength=len(up)))
    assert raised == 2


@pytest.mark.parametrize("earliest", [0, 300])
def test_an_added_configuration_of_a_race_begins_where_it_may(earliest: int) -> None:
    """Behind everything that was ordered, and behind what else had been seen when it was added."""
    rng = np.random.default_rng(3)
    seconds = rng.uniform(1.0, 40.0, (3, 2000))
    race = Race(Problem(3, UTILITY, 0.1, epsilon=0.05, n_instances=2000))
    replay = Replay(table_of(seconds, NEVER), in_order(2000), race.plan, UTILITY)
    while race._start is None or int(replay.tally.n.max()) < race._start + 20:
        race.tell(replay.tally, replay.answer(race.ask(1)))
    reached = int(replay.tally.n.max())
    assert race._start < reached < 300
    new = race.newcomers(1, earliest)
    assert dict(race._joined) == {new: max(reached, earliest)}


def test_latecomers_pay_as_the_check_says() -> None:
    """The k-th has the weight 1 / (k(k + 1)); over all that ever come these sum to at most 1."""
    late = Latecomers(5, 0.1)
    weights = np.exp(-late.price(np.arange(5, 200)))
    np.testing.assert_allclose(weights, [float(Late(5, shares_of(5, 1)).weight(config)) for config in range(5, 200)])
    assert weights.sum() <= 1.0


# ---------------------------------------------------------------------- pools


def scored(low: FloatArray, high: FloatArray, later: int = 0) -> Board:
    """A board of two with these scores, the second one beginning `later`, with a pilot of four positions."""
    board = Board(2, 0.8, pilot=4, open_shares=ALL_OPEN)
    board.settle(0, low, low)
    if later:
        board.begin_at(1, later)
    board.settle(1, np.zeros(len(high)), high)
    return board


def margin(board: Board, leader: int = 0) -> float:
    """By how much the other one may be ahead of the leader."""
    duels = Duels(2, margins(0.1))
    duels.restart(board, leader)
    return float(duels.margins(board, leader, np.array([1 - leader]), 3.0)[0])


def test_a_pool_keeps_its_pilot_out_of_lower_bounds_and_duels() -> None:
    """Ranks are made from the pilot; a duel begins where the later of the two does, and takes the worst of both."""
    n, one, level = 200, np.array([0]), np.array([3.0])
    boards = [
        # The challenger's scores are open: from 0 to 1.
        scored(np.concatenate((np.full(4, first), np.full(n, 0.9))), np.append(np.full(4, 1.0 - first), np.ones(n)))
        for first in (0.0, 1.0)
    ]
    assert boards[0].lower(one, level)[0] == boards[1].lower(one, level)[0] > 0.5
    assert margin(boards[0]) == margin(boards[1]) < 1.0
    closed = scored(np.full(4 + n, 0.9), np.zeros(4 + n))
    assert margin(closed) < margin(boards[0]), "an open score must not count as a lost one"
    # A leader that begins later: what the challenger did before says nothing about the two.
    late, duels = scored(np.zeros(50), np.full(10, 0.9), later=40), Duels(2, margins(0.1))
    assert duels.with_news(late, 1).tolist() == [0]
    duels.margins(late, 1, np.array([0]), level)
    assert (int(duels._counts[0].sum()), int(duels._common[0])) == (10, 50)


def test_a_pool_asks_for_its_bounds_at_the_shares_of_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the best, every arrival has its own share of delta: for its upper bound, and for its duel with the leader."""
    upper, weigh = Board.upper, Duels.margins
    asked: list[tuple[str, int, float, int]] = []

    def hear_upper(self: Board, config: IntArray, log_inverse: FloatArray) -> FloatArray:
        asked.extend(("upper", *each, -1) for each in zip(config.tolist(), log_inverse.tolist(), strict=True))
        return upper(self, config, log_inverse)

    def hear_duels(
        self: Duels, board: Board, leader: int, challengers: IntArray, log_inverse: FloatArray
    ) -> FloatArray:
        asked.extend(("duel", *each, leader) for each in zip(challengers.tolist(), log_inverse.tolist(), strict=True))
        return weigh(self, board, leader, challengers, log_inverse)

    monkeypatch.setattr(Board, "upper", hear_upper)
    monkeypatch.setattr(Duels, "margins", hear_duels)
    rng = np.random.default_rng(4)
    seconds = rng.uniform(1.0, 40.0, (10, 300))
    pool = Pool(Problem(10, UTILITY, 0.1, epsilon=0.2, n_instances=300), gamma=0.5)
    replay = Replay(table_of(seconds, NEVER), in_order(300), pool.plan, UTILITY)
    checked = {"upper": 0, "duel": 0}
    for _ in range(60):
        if pool.finished() is not None:
            break
        order = pool.ask(1)
        asked.clear()
        leads = list(pool.shares.log_leader)
        pool.tell(replay.tally, replay.answer(order))
        for kind, config, level, leader in asked:
            best = pool.shares.log_best[config]
            shown = pool.shares.log_shown[config] - math.log(0.05 * 0.1)
            if kind == "upper":
                assert level == pytest.approx(best - math.log(0.22 * 0.1)) or level == pytest.approx(shown)
            else:
                weight = {leads[leader] if leader < len(leads) else math.inf, pool.shares.log_leader[leader]}
                assert any(level == pytest.approx(best + each - math.log(0.23 * 0.1)) for each in weight)
            checked[kind] += best > 0.1
    assert min(checked.values()) > 0
