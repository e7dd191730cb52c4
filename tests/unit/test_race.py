import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from captime.arrays import FloatArray, IntArray
from captime.bounds.mixture import BinnedMixture, sine_nodes
from captime.certificate import Certificate
from captime.errors import ScenarioError
from captime.procedures import REGISTERS, Problem
from captime.procedures.agenda import WarmStart
from captime.procedures.board import Board
from captime.procedures.claims import Duels, margins
from captime.procedures.problem import FIFTH_SCHEDULE, build_procedure
from captime.procedures.race import Race
from captime.procedures.race_claims import SHARES
from captime.sources.replay import Replay
from captime.utilities import parse_utility
from runtime_laws import in_order, table_of

LIMIT = 300.0
DELTA = 0.1
UTILITY = parse_utility("uniform(60)")
SHARE = dict(SHARES)
PAGE = (Path(__file__).parents[2] / "docs" / "engine.md").read_text(encoding="utf-8")


@dataclass
class Run:
    """A race on a small table, told lap by lap."""

    race: Race
    replay: Replay
    story: list[Certificate] = field(default_factory=list)

    def lap(self, slots: int = 1) -> bool:
        """Once around; False if there was nothing to do."""
        order = self.race.ask(slots)
        if len(order) == 0:
            return False
        self.race.tell(self.replay.tally, self.replay.answer(order))
        self.story.append(self.race.certificate())
        return True

    def until_the_start(self) -> None:
        """The warm start and nothing more."""
        while self.race._start is None:
            assert self.lap()

    def to_the_end(self) -> None:
        """Until the race wants nothing more; a race that only waits would wait for ever."""
        while self.race.finished() is None:
            assert self.lap(), "it is not finished and asks for nothing"

    @property
    def start(self) -> int:
        """The first position of the race itself."""
        assert self.race._start is not None
        return self.race._start


def problem_of(seconds: FloatArray, epsilon: float = 0.1, seed: int = 0) -> Problem:
    """The question that goes with these runtimes, under rules by which few configurations have a warm start.

    Every run is made once. Short captimes, and races that begin with their first run, have tests of their own.
    """
    return Problem(
        n_configs=len(seconds),
        utility=UTILITY,
        delta=DELTA,
        epsilon=epsilon,
        captime_limit=LIMIT,
        n_instances=seconds.shape[1],
        seed=seed,
        short_captimes=False,
        schedule=FIFTH_SCHEDULE,
    )


def run_of(seconds: FloatArray, *, epsilon: float = 0.1, seed: int = 0, **options: object) -> Run:
    """A race over these runtimes, met as they come."""
    race = build_procedure("race", REGISTERS, problem_of(seconds, epsilon, seed), options)
    assert isinstance(race, Race)
    return Run(race, Replay(table_of(seconds, LIMIT), in_order(seconds.shape[1]), race.plan, UTILITY))


def runtimes(n_configs: int, n_instances: int, *, seed: int = 1, gap: float = 6.0) -> FloatArray:
    """Each configuration slower than the one before by this many seconds, on instances of very different hardness."""
    rng = np.random.default_rng(seed)
    slower = gap * np.arange(n_configs)[:, None]
    return np.asarray(rng.uniform(1.0, 30.0, n_instances) + slower + rng.uniform(0.0, 4.0, (n_configs, n_instances)))


def overtaken() -> FloatArray:
    """Configuration 0 shines in the warm start and is poor afterwards; 1 is the best then, 2 and 3 are in between."""
    rng = np.random.default_rng(4)
    seconds = rng.uniform(0.0, 4.0, (4, 3000)) + np.array([30.0, 6.0, 24.0, 27.0])[:, None]
    seconds[0, :8] = 1.0
    seconds[1:, :8] = 55.0
    return np.asarray(seconds)


# ---------------------------------------------------------------- how it ends


def test_it_reaches_the_epsilon_asked_for_and_names_the_best() -> None:
    """On a table with a clear order, long before the instances end."""
    run = run_of(runtimes(5, 20_000), epsilon=0.08)
    run.to_the_end()
    held = run.race.certificate()
    assert run.race.finished() == "epsilon"
    assert (held.config, held.n_configs, held.delta, held.mode) == (0, 5, DELTA, "selection")
    assert held.epsilon <= 0.08
    assert held.challenger in range(1, 5)
    assert run.replay.tally.n.max() < 20_000
    assert len(run.race.ask(4)) == 0


def test_what_it_certifies_is_true_of_the_means_and_gets_better_only() -> None:
    """Against the means of the table, at every moment; epsilon never rises, and belongs to the leader it names."""
    seconds = runtimes(6, 6000, gap=4.0)
    truth = UTILITY(seconds).mean(axis=1)
    run = run_of(seconds, epsilon=0.05)
    run.to_the_end()
    epsilon = [held.epsilon for held in run.story]
    assert epsilon == sorted(epsilon, reverse=True)
    assert all(truth.max() - truth[held.config] <= held.epsilon for held in run.story)
    assert all(held.utility_low <= truth[held.config] <= held.utility_high for held in run.story)


def test_before_anything_is_known_it_names_somebody_and_claims_nothing() -> None:
    """Epsilon 1, utility between 0 and 1; also after every lap of the warm start."""
    run = run_of(runtimes(9, 2000))
    held = run.race.certificate()
    assert (held.config, held.epsilon, held.utility_low, held.utility_high) == (0, 1.0, 0.0, 1.0)
    while run.race._start is None:
        assert run.race.finished() is None
        assert run.race.certificate().epsilon == 1.0
        assert run.race.candidates.all()
        run.lap()


def test_a_single_configuration_needs_no_run() -> None:
    """There is no other to compare it with."""
    run = run_of(runtimes(1, 50))
    assert run.race.finished() == "single"
    assert len(run.race.ask(8)) == 0
    held = run.race.certificate()
    assert (held.config, held.epsilon, held.challenger) == (0, 0.0, None)


@pytest.mark.parametrize("n_instances", [1, 2, 7, 60])
def test_two_configurations_use_up_a_short_table_and_keep_what_was_shown(n_instances: int) -> None:
    """Equal ones on few instances: no certificate at the goal, an end all the same."""
    run = run_of(np.full((2, n_instances), 20.0), epsilon=0.02)
    run.to_the_end()
    assert run.race.finished() == "instances"
    assert run.replay.tally.n.tolist() == [n_instances, n_instances]
    assert 0.02 < run.race.certificate().epsilon <= 1.0


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("n_instances", [1, 5, 60])
@pytest.mark.parametrize("n_configs", [3, 20, 30])
def test_many_configurations_use_up_a_short_table(n_configs: int, n_instances: int, paired: bool) -> None:
    """A configuration without an instance left does not keep the others waiting."""
    rng = np.random.default_rng(n_instances)
    run = run_of(rng.uniform(1.0, 60.0, (n_configs, n_instances)), epsilon=0.001, paired=paired)
    run.to_the_end()
    assert run.race.finished() == "instances"
    rivals = run.race.candidates
    assert (run.replay.tally.n[rivals] == n_instances).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.005, 0.5, 0.94, 0.95, 0.999])
def test_every_epsilon_a_problem_may_have_can_be_raced_for(epsilon: float) -> None:
    """From "continue" to next to nothing."""
    run = run_of(runtimes(3, 300), epsilon=epsilon)
    for _ in range(40):
        if run.race.finished() is not None:
            break
        run.lap()
    assert run.race.certificate().epsilon < 1.0


def test_the_goal_itself_is_among_the_margins_of_duels() -> None:
    """Otherwise a duel could never show exactly what was asked for; all margins are below 1 and rise."""
    for aim in (0.005, 0.1, 0.5, 0.94):
        steps = margins(aim)
        assert steps[0] == aim
        assert (np.diff(steps) > 0.0).all()
        assert steps[-1] < 1.0


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("boost", 0.9, "boost is 0.9, but it has to be between 1 and 100"),
        ("boost", math.nan, "boost is nan"),
        ("mode", "all", "all"),
        ("first_runs", 0, "first_runs is 0, but every configuration has to run at least once"),
        ("growth", 0.0, "growth is 0.0, but it has to be a positive share"),
        ("growth", -1.0, "growth is -1.0"),
        ("truncation", 0.0, "truncation is 0.0, but it has to be a share between 0 and 1"),
        ("truncation", 1.0, "truncation is 1.0"),
        ("speed", 3.0, "has no option 'speed'"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_a_reason(option: str, value: object, message: str) -> None:
    """What was found and what would do."""
    with pytest.raises(ScenarioError, match=message):
        build_procedure("race", REGISTERS, problem_of(runtimes(3, 50)), {option: value})


def test_a_mode_nobody_knows_is_refused_without_the_reader_of_options_too() -> None:
    """From Python the constructor says it."""
    problem = Problem(n_configs=3, utility=UTILITY, delta=DELTA)
    with pytest.raises(ScenarioError, match="race has no mode 'all'; there are selection, simultaneous"):
        Race(problem, mode="all")  # type: ignore[arg-type]  # the mistake under test


# ---------------------------------------------------------------- chance


def test_the_same_seed_tells_the_same_story() -> None:
    """Certificate by certificate; another seed draws other captimes."""
    stories = []
    for seed in (3, 3, 4):
        run = run_of(runtimes(6, 4000), epsilon=0.1, seed=seed)
        run.to_the_end()
        stories.append((run.story, run.replay.tally.seconds.tolist()))
    assert stories[0] == stories[1]
    assert stories[0] != stories[2]


def test_captimes_are_the_plans_and_nobody_runs_longer() -> None:
    """Cost of every configuration: its runs up to min(K, longest), each once."""
    seconds = runtimes(4, 3000)
    run = run_of(seconds, epsilon=0.1)
    run.to_the_end()
    tally = run.replay.tally
    for config in range(4):
        ran = np.r_[0 : int(tally.n[config])]
        skipped = int(tally.skipped[config])
        ran = ran[(ran >= run.start) | (ran < run.start - skipped)]
        captime = run.race.plan.captime(np.zeros_like(ran), ran)
        assert tally.runs[config] == len(ran)
        assert tally.seconds[config] == pytest.approx(np.minimum(seconds[config, ran], captime).sum(), rel=1e-12)


# ---------------------------------------------------------------- levels


@dataclass
class Asked:
    """Which bound was asked of which configuration at which level."""

    upper: list[tuple[int, float]] = field(default_factory=list)
    lower: list[tuple[int, float]] = field(default_factory=list)
    duels: list[tuple[int, float]] = field(default_factory=list)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Listens to every question to the board and to the duels; duels are noted with their leader."""
    heard = Asked()
    upper, lower, margins = Board.upper, Board.lower, Duels.margins

    def hear_upper(self: Board, config: IntArray, log_inverse: FloatArray) -> FloatArray:
        heard.upper += zip(config.tolist(), log_inverse.tolist(), strict=True)
        return upper(self, config, log_inverse)

    def hear_lower(self: Board, config: IntArray, log_inverse: FloatArray) -> FloatArray:
        heard.lower += zip(config.tolist(), log_inverse.tolist(), strict=True)
        return lower(self, config, log_inverse)

    def hear_duel(self: Duels, board: Board, leader: int, challengers: IntArray, log_inverse: FloatArray) -> FloatArray:
        assert leader not in challengers
        heard.duels += [(leader, level) for level in log_inverse.tolist()]
        return margins(self, board, leader, challengers, log_inverse)

    monkeypatch.setattr(Board, "upper", hear_upper)
    monkeypatch.setattr(Board, "lower", hear_lower)
    monkeypatch.setattr(Duels, "margins", hear_duel)
    return heard


def chances(levels: list[tuple[int, float]]) -> dict[int, set[float]]:
    """The failure probabilities spent, per configuration, to twelve digits."""
    found: dict[int, set[float]] = {}
    for config, log_inverse in levels:
        found.setdefault(config, set()).add(float(f"{math.exp(-log_inverse):.12g}"))
    return found


def told(chance: float) -> float:
    """The same twelve digits."""
    return float(f"{chance:.12g}")


def test_delta_is_shared_out_completely_and_as_the_page_says() -> None:
    """The shares on the certificate sum to 1 and head the rows of the table in docs/engine.md."""
    step = PAGE.partition("## Step 8")[2].partition("\n## ")[0]
    assert [float(share) for share in re.findall(r"^\| ([\d.]+) \|", step, flags=re.MULTILINE)] == [*SHARE.values()]
    assert math.fsum(SHARE.values()) == pytest.approx(1.0, abs=1e-15)
    assert run_of(runtimes(2, 20)).race.certificate().shares == SHARES


def test_selection_mode_spends_as_documented(asked: Asked) -> None:
    """Upper bounds without a union; lower bounds and duels by the weight of the leader."""
    run = run_of(overtaken(), epsilon=0.1)
    run.to_the_end()
    weight = np.exp(-run.race.levels.log_rank)
    lower, duels = chances(asked.lower), chances(asked.duels)
    assert len(lower) > 1, "the leader should have changed"
    assert lower == {config: {told(SHARE["lower"] * DELTA * weight[config])} for config in lower}
    assert duels == {leader: {told(SHARE["paired"] * DELTA * weight[leader])} for leader in duels}
    assert set(duels) == set(lower)
    assert all(told(SHARE["upper"] * DELTA) in spent for spent in chances(asked.upper).values())
    assert math.fsum(weight) <= 1.0


def test_simultaneous_mode_spends_as_documented(asked: Asked) -> None:
    """Everything is divided by the number of configurations, and each of them has a lower bound."""
    run = run_of(overtaken(), epsilon=0.1, mode="simultaneous")
    run.to_the_end()
    assert run.race.certificate().mode == "simultaneous"
    assert chances(asked.lower) == {config: {told(SHARE["lower"] * DELTA / 4)} for config in range(4)}
    assert all(spent == {told(SHARE["paired"] * DELTA / 4)} for spent in chances(asked.duels).values())
    assert all(told(SHARE["upper"] * DELTA / 4) in spent for spent in chances(asked.upper).values())


def test_the_interval_shown_spends_a_share_that_no_ranking_has_touched(asked: Asked) -> None:
    """Its scores include the warm start, so its level is the same for all, before and after."""
    run = run_of(overtaken(), epsilon=0.1)
    run.to_the_end()
    known = {told(SHARE["upper"] * DELTA), told(SHARE["shown"] * DELTA / 4)}
    assert set().union(*chances(asked.upper).values()) == known


def test_in_selection_mode_only_leaders_have_lower_bounds() -> None:
    """No other configuration pays for one."""
    run = run_of(runtimes(5, 4000), epsilon=0.1)
    run.to_the_end()
    assert np.flatnonzero(run.race.lower).tolist() == [0]
    other = run_of(runtimes(5, 4000), epsilon=0.1, mode="simultaneous")
    other.to_the_end()
    assert (other.race.lower[other.replay.tally.n > other.start] > 0.0).all()


def test_simultaneous_intervals_contain_the_means_of_the_table() -> None:
    """All of them, at the end; and they are wider than those of selection mode from the same scores."""
    seconds = runtimes(5, 4000)
    truth = UTILITY(seconds).mean(axis=1)
    run = run_of(seconds, epsilon=0.1, mode="simultaneous")
    run.to_the_end()
    assert (run.race.lower <= truth).all()
    assert (truth <= run.race.upper).all()
    members = np.arange(5)
    union = run.race._board.upper(members, np.full(5, math.log(5 / (SHARE["upper"] * DELTA))))
    alone = run.race._board.upper(members, np.full(5, math.log(1 / (SHARE["upper"] * DELTA))))
    assert (alone < union).all()


# ---------------------------------------------------------------- the prior and the warm start


@pytest.mark.parametrize("n_configs", [1, 2, 3, 5, 40])
def test_the_weights_of_leaders_sum_to_at_most_one(n_configs: int) -> None:
    """1 / ((r + 1)(r + 2)) over all ranks, in both modes."""
    for mode in ("selection", "simultaneous"):
        run = run_of(runtimes(n_configs, 400), mode=mode)
        run.until_the_start()
        weight = np.exp(-run.race.levels.log_rank)
        assert 0.0 < math.fsum(weight) <= 1.0 + 1e-12
        if mode == "selection":
            expected = [1.0 / ((rank + 1) * (rank + 2)) for rank in range(n_configs)]
            assert sorted(weight, reverse=True) == pytest.approx(expected, rel=1e-12)


def test_the_weights_are_final_before_the_first_run_of_the_race() -> None:
    """They follow from the warm start alone, and nothing later moves them."""
    seconds = runtimes(12, 2000, gap=2.0)
    run = run_of(seconds, epsilon=0.02)
    run.until_the_start()
    weights, leader, start = run.race.levels.log_rank.copy(), run.race.leader, run.start
    assert run.replay.tally.n.max() == start
    changed = seconds.copy()
    changed[:, start:] = changed[::-1, start:]
    other = run_of(changed, epsilon=0.02)
    other.until_the_start()
    assert (other.start, other.race.leader) == (start, leader)
    assert other.race.levels.log_rank.tolist() == weights.tolist()
    for each in (run, other):
        for _ in range(400):
            each.lap()
        assert each.race.levels.log_rank.tolist() == weights.tolist()
        assert each.start == start


def test_how_long_the_warm_start_is_depends_on_no_result() -> None:
    """Only on the numbers of configurations and instances and on the first round."""
    for n_configs, available in ((2, None), (3, 100), (40, None), (40, 200), (7, 5)):
        lengths = set()
        for seed in range(5):
            warm = WarmStart(n_configs, 4, 2, available)
            while warm.judge(np.random.default_rng(seed).random(n_configs)) is None:
                pass
            lengths.add(warm.positions)
        assert len(lengths) == 1
        assert available is None or lengths.pop() <= max(1, available // 8)


def test_whoever_was_halved_away_skips_the_rest_of_the_warm_start_for_ever() -> None:
    """And is ranked behind all that continued; all begin the race on the same position."""
    run = run_of(runtimes(8, 4000, gap=3.0), epsilon=0.02)
    run.until_the_start()
    ran = run.race._board._high_counts.sum(axis=1)
    order = np.argsort(run.race.levels.log_rank)
    assert (np.diff(ran[order]) <= 0).all()
    assert len(set(ran.tolist())) > 1
    for _ in range(300):
        run.lap()
    tally = run.replay.tally
    started = tally.n > run.start
    assert started.all()
    assert (run.start - tally.skipped).tolist() == ran.tolist()
    assert (run.race._board.settled == tally.n).all()


def test_who_goes_on_is_judged_on_the_positions_of_the_round_alone() -> None:
    """Scouts have run further than the others by then; what they met there must not decide who runs there."""
    seconds = runtimes(40, 4000, gap=0.5)
    trial = run_of(seconds, epsilon=0.2)
    while trial.race._scout is not None:
        assert trial.lap()
    far = int(trial.race._known.max())
    assert far > 16, "the scout should have continued alone"
    skipping = []
    for later in (1.0, 55.0):
        changed = seconds.copy()
        # The chosen one meets easy or hard instances after the first round, on positions others may come to run.
        changed[:, 4:far] = np.where(trial.replay.tally.n[:, None] >= far, later, changed[:, 4:far])
        run = run_of(changed, epsilon=0.2)
        while run.race._scout is not None:
            assert run.lap()
        run.lap()
        run.lap()
        ran = run.replay.tally.n.copy()
        skipping.append(np.flatnonzero((ran <= 4) & (trial.replay.tally.n < 4)).tolist())
    assert skipping[0] == skipping[1]


def test_scouts_are_fixed_and_the_champions_bound_begins_after_its_choice() -> None:
    """The same few whatever the results; positions on which it was chosen do not count for its bound."""
    run = run_of(np.full((400, 4000), 0.5), epsilon=0.2)
    first = set()
    while run.race._scout is not None and run.race._scout.champion is None:
        assert run.lap()
        first |= set(np.flatnonzero(run.replay.tally.n).tolist())
    scout = run.race._scout
    assert scout is not None
    assert len(first) == 8
    assert scout.start == int(run.replay.tally.n.max())
    run.to_the_end()
    held = run.race.certificate()
    assert run.race.finished() == "epsilon"
    assert held.config == scout.champion
    assert held.utility_low >= 0.8
    assert np.count_nonzero(run.replay.tally.n) == 8, "no other configuration had to run"
    low, _ = run.replay.samples(held.config, scout.start, int(run.replay.tally.n[held.config]))
    counts = run.race._board.binned_low(low)[None]
    level = np.array([-math.log(SHARE["scout"] * DELTA)])
    assert run.race._board.lower_of(counts, level)[0] == scout.lower


def scouts_of(table: FloatArray, epsilon: float) -> tuple[set[int], int]:
    """Who has run anything by the time the champion is known, and who that is."""
    run = run_of(table, epsilon=epsilon)
    while run.race._scout is not None and run.race._scout.champion is None:
        assert run.lap()
    scout = run.race._scout
    assert scout is not None
    assert scout.champion is not None
    return set(np.flatnonzero(run.replay.tally.n).tolist()), scout.champion


def test_more_are_tried_if_the_first_few_leave_it_open_and_only_the_first_positions_decide_that() -> None:
    """A configuration above the goal may be rare. What the few meet later must not send others to those positions."""
    table = np.full((400, 4000), 9.0)  # worth 0.85 each
    table[36] = 0.5  # the only good one, a scout only if more are called
    first = {0, 57, 114, 171, 228, 285, 342, 399}
    some, champion = scouts_of(table, 0.1)
    assert some > first
    assert len(some) == 18
    assert champion == 36
    assert scouts_of(table, 0.05)[0] == first, "0.85 is far below 0.95: no more scouts are called"
    table[57] = table[114] = 0.5
    assert scouts_of(table, 0.1)[0] == first, "two of the few are good enough already"
    for later in (table[:, 4:], table[:, 4:] * 0.0 + 59.0, table[:, 4:] * 0.0 + 0.1):
        changed = np.concatenate((table[:, :4], later), axis=1)
        assert scouts_of(changed, 0.1)[0] == first
    table[57] = table[114] = 9.0
    for seconds in (59.0, 0.1):
        changed = table.copy()
        changed[:, 4:] = seconds
        assert scouts_of(changed, 0.1)[0] == some


def recomputed(run: Run, config: int, first: int) -> tuple[FloatArray, FloatArray]:
    """Interval ends of a configuration from this position on, from the table once more."""
    return run.replay.samples(config, first, int(run.replay.tally.n[config]))


def test_lower_bounds_know_nothing_of_the_warm_start() -> None:
    """Recomputed from the scores of the race alone, rounded down."""
    run = run_of(runtimes(6, 4000), epsilon=0.1, mode="simultaneous")
    run.to_the_end()
    board = run.race._board
    mixture = BinnedMixture(board._bets.grid, np.linspace(0.0, 1.0, 501)[1:-1], sine_nodes(24))
    level = math.log(6 / (SHARE["lower"] * DELTA))
    for config in range(6):
        low, _ = recomputed(run, config, run.start)
        counts = np.bincount(mixture.bin_down(low), minlength=len(board._bets.grid))[None, :]
        alone = mixture.lower(counts, np.array([level]))
        assert board.lower(np.array([config]), np.array([level])).tolist() == alone.tolist()
        assert run.race.lower[config] >= alone[0]


def test_duels_know_nothing_of_the_warm_start_and_take_the_worst_of_both() -> None:
    """Differences of the challenger's high and the leader's low end on common positions of the race, rounded up."""
    run = run_of(runtimes(6, 4000), epsilon=0.1)
    run.to_the_end()
    duels, leader = run.race._duels, run.race.leader
    low, _ = recomputed(run, leader, run.start)
    for config in range(1, 6):
        _, high = recomputed(run, config, run.start)
        n = min(len(low), len(high))
        worst = np.ceil((high[:n] - low[:n]) * 256.0 - 1e-9).astype(np.int64) + 256
        assert duels._counts[config].tolist() == np.bincount(worst, minlength=513).tolist()
    assert duels._counts[leader].sum() == 0


def test_upper_bounds_use_every_position_that_was_run() -> None:
    """Those of the warm start included, the skipped ones not, rounded up."""
    run = run_of(runtimes(8, 4000, gap=3.0), epsilon=0.1)
    run.to_the_end()
    board, tally = run.race._board, run.replay.tally
    assert board._high_counts.sum(axis=1).tolist() == (tally.n - tally.skipped).tolist()
    for config in range(8):
        pilot = run.start - int(tally.skipped[config])
        _, high = run.replay.samples(config, 0, pilot)
        _, later = recomputed(run, config, run.start)
        bins = np.searchsorted(board._bets.grid, np.concatenate((high, later)), side="left")
        assert board._high_counts[config].tolist() == np.bincount(bins, minlength=len(board._bets.grid)).tolist()


def test_scores_of_the_warm_start_move_upper_bounds_only() -> None:
    """On the board itself."""
    board, level = Board(1, 0.8), np.array([math.log(20.0)])
    one, score = np.array([0]), np.full(30, 0.9)
    board.settle_pilot(0, score)
    assert board.lower(one, level)[0] == 0.0
    assert board.upper(one, level)[0] < 1.0
    assert board.settled[0] == 0
    assert len(board.low(0, 0, 30)) == 0
    assert board.mean(0) == 0.0
    board.settle(0, score, score)
    assert 0.0 < board.lower(one, level)[0] < 0.9 < board.upper(one, level)[0]
    assert board.settled[0] == 30


# ---------------------------------------------------------------- leaders


def test_clearing_belongs_to_one_leader() -> None:
    """After a change, what is known against the new leader comes from duels with the new leader alone."""
    run = run_of(overtaken(), epsilon=0.15)
    run.until_the_start()
    assert run.race.leader == 0
    changes = 0
    while run.race.finished() is None:
        leader = run.race.leader
        assert run.lap()
        if run.race.leader == leader:
            continue
        changes += 1
        afresh = Duels(4, margins(0.15))
        fought = afresh.due(run.race._board, run.race.leader)
        level = run.race.levels.log_rank[run.race.leader] - math.log(SHARE["paired"] * DELTA)
        expected = np.ones(4)
        expected[fought] = afresh.margins(run.race._board, run.race.leader, fought, float(level))
        assert run.race._margin.tolist() == expected.tolist()
        assert run.race._duels._counts.tolist() == afresh._counts.tolist()
    assert changes >= 1
    assert run.race.certificate().config == run.race.leader == 1


def test_a_change_of_leader_forgets_what_the_old_one_had_cleared() -> None:
    """Crowning by hand in the middle of a race: all others are open again unless the new leader clears them."""
    run = run_of(runtimes(5, 4000), epsilon=0.1)
    run.to_the_end()
    race = run.race
    assert (race._epsilons() <= 0.1).all()
    held = race.certificate()
    race._crown(4)
    assert race.leader == 4
    assert race._epsilons()[0] > 0.1
    assert race._duels._counts[4].sum() == 0
    assert race._duels._counts[0].sum() == min(race._board.raced(0), race._board.raced(4))
    race._certify()
    assert race.candidates[0]
    assert race.certificate() == held, "the better certificate names the leader it was drawn for"


def test_epsilon_is_the_better_of_own_bounds_and_duel_for_the_worst_challenger() -> None:
    """As defined: max over the others of min(upper - lower of the leader, margin)."""
    run = run_of(runtimes(5, 4000), epsilon=0.02)
    run.until_the_start()
    for _ in range(120):
        run.lap()
        race = run.race
        others = np.arange(5) != race.leader
        own = np.maximum(race.upper - race.lower[race.leader], 0.0)
        epsilon = float(np.minimum(own, race._margin)[others].max())
        assert min(1.0, epsilon) >= race.certificate().epsilon
        assert race._epsilons()[race.leader] == 0.0
        assert race._epsilons().max() == epsilon


def test_without_duels_only_own_bounds_clear() -> None:
    """Margins stay at 1; the race needs more runs for the same goal."""
    paired, unpaired = run_of(runtimes(4, 20_000)), run_of(runtimes(4, 20_000), paired=False)
    for run in (paired, unpaired):
        run.to_the_end()
        assert run.race.finished() == "epsilon"
    assert (unpaired.race._margin == 1.0).all()
    assert paired.replay.tally.runs.sum() < unpaired.replay.tally.runs.sum()


def test_bounds_only_tighten() -> None:
    """Upper bounds never rise, lower bounds never fall, margins of one leader never grow."""
    run = run_of(overtaken(), epsilon=0.05)
    upper, lower = run.race.upper.copy(), run.race.lower.copy()
    margin, leader = run.race._margin.copy(), run.race.leader
    while run.race.finished() is None:
        assert run.lap()
        assert (run.race.upper <= upper).all()
        assert (run.race.lower >= lower).all()
        assert run.race.leader != leader or (run.race._margin <= margin).all()
        upper, lower = run.race.upper.copy(), run.race.lower.copy()
        margin, leader = run.race._margin.copy(), run.race.leader


def test_nobody_is_run_while_cleared_but_the_leader() -> None:
    """Orders name the leader and challengers that are open."""
    run = run_of(runtimes(6, 4000), epsilon=0.1)
    run.until_the_start()
    while run.race.finished() is None:
        open_ones = set(np.flatnonzero(run.race.candidates).tolist())
        order = run.race.ask(3)
        assert set(order.config.tolist()) <= open_ones
        assert order.first is not None
        assert (order.first == run.start).all()
        run.race.tell(run.replay.tally, run.replay.answer(order))
