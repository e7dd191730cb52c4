import numpy as np
import pytest

from captime.arrays import FloatArray
from captime.certificate import Orders
from captime.errors import ScenarioError
from captime.plans import RandomCaptimes, Schedule
from captime.procedures.pool_terms import PoolTerms
from captime.sources.replay import Replay
from captime.spaces import Known, Lessons, Proposer, Settings, Space
from captime.spaces.formats.section import read_section
from captime.spaces.lessons import in_the_end
from captime.spaces.model import FLOOR, Surrogate
from captime.spaces.proposals import _standing
from captime.spaces.search import Nursery, Search, keys
from captime.tally import blank_tally
from captime.utilities import parse_utility
from runtime_laws import in_order, table_of


def space(favourites: list[Settings] | None = None) -> Space:
    """Two numbers that matter, a switch that decides about one of them, and three that do not matter."""
    section: dict[str, object] = {
        "x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.1},
        "on": {"type": "bool", "default": False},
        "y": {"type": "float", "low": 1.0, "high": 1000.0, "log": True, "default": 10.0},
        "conditions": ["y | on == true"],
        "forbidden": ["on == true && x < 0.05"],
    }
    section |= {f"z{place}": {"type": "int", "low": 0, "high": 9, "default": 0} for place in range(3)}
    return read_section(section | ({"favourites": favourites} if favourites else {}), "test")


def utility(settings: Settings) -> float:
    """Best at x = 0.8, on, y = 100: about 0.9; without y never above 0.5."""
    value = 0.5 * np.exp(-((float(settings["x"]) - 0.8) ** 2) / 0.1)
    if settings["on"]:
        value += 0.4 * np.exp(-((np.log10(float(settings["y"])) - 2) ** 2) / 0.2)
    return float(value)


def known(settings: Settings, rng: np.random.Generator) -> Known:
    """Scores of that configuration, noisy, some of them cut."""
    n = int(rng.integers(10, 60))
    mean = float(np.clip(utility(settings) + 0.25 * rng.standard_normal() / np.sqrt(n), 0, 1))
    return Known(settings, max(mean - 0.02, 0.0), min(mean + 0.02, 1.0), n)


def pool(proposer: Proposer, size: int) -> list[Settings]:
    """A pool that grows to that size."""
    rng = np.random.default_rng(77)
    evidence: list[Known] = []
    for index in range(size):
        evidence.append(known(proposer.propose(index, evidence), rng))
    return [each.settings for each in evidence]


def test_the_order_is_fixed_before_the_first_run() -> None:
    """The default, the favourites, some random draws, then random and model in turn."""
    proposer = Proposer(space([{"x": 0.3}, {"x": 0.4}]), seed=1, draws_first=2)
    origins = [proposer.origin(index) for index in range(9)]
    assert origins == ["default", *["favourite"] * 2, *["random"] * 3, "model", "random", "model"]
    assert [Proposer(space(), 1, model=False).origin(index) for index in range(3)] == ["default", "random", "random"]
    assert proposer.random_draws(9) == 4


@pytest.mark.parametrize("proposals", [1, 3])
@pytest.mark.parametrize(("favourites", "model", "draws_first"), [(0, True, 0), (2, True, 3), (1, False, 5)])
def test_pools_agree_about_who_is_random(favourites: int, model: bool, draws_first: int, proposals: int) -> None:
    """The race counts gamma by its own terms; both must mean the same indices."""
    proposer = Proposer(
        space([{"x": 0.2 + place / 10} for place in range(favourites)]),
        1,
        model=model,
        draws_first=draws_first,
        proposals=proposals,
    )
    terms = PoolTerms(proposer.n_listed, model=model, draws_first=draws_first, proposals=proposals)
    ours = ["listed" if origin in ("default", "favourite") else origin for origin in map(proposer.origin, range(40))]
    assert ours == [terms.origin(index) for index in range(40)]


def test_several_proposals_follow_each_draw() -> None:
    """The proposals of one draw come together, from where the pool is when the first of them comes."""
    proposer = Proposer(space(), seed=1, draws_first=1, proposals=3)
    origins = [proposer.origin(index) for index in range(10)]
    assert origins == ["default", "random", "random", *["model"] * 3, "random", *["model"] * 3]
    terms = PoolTerms(1, model=True, draws_first=1, proposals=3)
    assert [terms.batch_end(index) for index in range(1, 8)] == [2, 3, 6, 6, 6, 7, 10]
    later = terms.joined(3, 2)
    assert [later.origin(index) for index in range(9)] == ["listed", *["random"] * 2, *["model"] * 5, "random"]
    assert later.batch_end(5) == 8
    with pytest.raises(ScenarioError, match="proposals is 0"):
        Proposer(space(), seed=1, proposals=0)
    with pytest.raises(ScenarioError, match="0 proposals for each draw"):
        PoolTerms(1, model=True, proposals=0)


@pytest.mark.parametrize("proposals", [1, 3])
def test_random_draws_do_not_depend_on_what_was_observed(proposals: int) -> None:
    """This is what carries gamma: draw r is draw r, with any evidence and with none."""
    here = space()
    proposer = Proposer(here, seed=5, draws_first=3, proposals=proposals)
    grown = pool(proposer, 30)
    numbers = [proposer.random_number(index) for index in range(30) if proposer.origin(index) == "random"]
    assert numbers == list(range(len(numbers)))
    for index in range(30):
        if proposer.origin(index) == "random":
            assert grown[index] == here.draw(5, proposer.random_number(index)) == proposer.propose(index)


def test_a_favourite_that_is_the_default_counts_once() -> None:
    """Two of the same would only cost runs."""
    assert Proposer(space([{}, {"x": 0.5}]), 0).n_listed == 2


def test_proposals_are_configurations_of_the_space_that_the_pool_has_not() -> None:
    """Whatever the model thinks."""
    here = space()
    grown = pool(Proposer(here, seed=2), 60)
    for settings in grown:
        here.check(settings)
    assert all(settings not in grown[:place] for place, settings in enumerate(grown))


def test_the_same_evidence_gives_the_same_proposals() -> None:
    """Seeded through and through."""
    assert pool(Proposer(space(), seed=3), 25) == pool(Proposer(space(), seed=3), 25)
    assert pool(Proposer(space(), seed=3), 25) != pool(Proposer(space(), seed=4), 25)


def test_what_the_model_proposes_is_better_than_random_draws() -> None:
    """By far, once it has learnt; a model that learns nothing fails here."""
    found: dict[str, list[float]] = {"model": [], "random": []}
    for seed in range(3):
        proposer = Proposer(space(), seed=seed)
        grown = pool(proposer, 60)
        for index in range(30, 60):
            found[proposer.origin(index)].append(utility(grown[index]))
    assert np.mean(found["model"]) > np.mean(found["random"]) + 0.2


def test_uneven_evidence_is_weighed() -> None:
    """One score says less than a thousand, and a wide interval less than a narrow one."""
    here = space()
    settings = [here.draw(0, number) for number in range(4)]
    surrogate = Surrogate(
        here,
        [
            Known(settings[0], 0.5, 0.5, 1000),
            Known(settings[1], 0.5, 0.5, 1),
            Known(settings[2], 0.0, 1.0, 1000),
            Known(settings[3], 0.0, 1.0, 0),
        ],
    )
    assert len(surrogate.means) == 3
    assert surrogate.weights[0] > 50 * surrogate.weights[1]
    assert surrogate.weights[0] > 50 * surrogate.weights[2]


def cliffs(settings: Settings) -> float:
    """Half of all configurations fail, and which of the others is good depends on several numbers at once."""
    here = [int(settings[f"n{place}"]) for place in range(5)]
    return 0.0 if (here[0] + here[1]) % 10 >= 5 else 0.5 + 0.05 * ((here[2] + here[3] * here[0]) % 10)


@pytest.mark.parametrize("rolling", [True, False])
def test_doubts_are_honest_on_rolling_land_and_where_there_are_cliffs(
    rolling: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors on configurations that the model has not seen, in standard deviations: their mean square is about one.

    With a model that takes everything for rolling land, they are well above where there are cliffs.
    """
    numbers: dict[str, object] = {f"n{place}": {"type": "int", "low": 0, "high": 9, "default": 0} for place in range(5)}
    here, worth = (space(), utility) if rolling else (read_section(numbers, "test"), cliffs)
    drawn = [here.draw(5, number) for number in range(300)]
    rows, worths = np.array([here.codes(each) for each in drawn[150:]]), np.array([worth(each) for each in drawn[150:]])

    def surprise() -> float:
        model = Surrogate(here, [Known(each, worth(each), worth(each), 2000, 0.01) for each in drawn[:150]])
        mean, doubt = model.expected(rows)
        return float(np.mean((worths - mean) ** 2 / (doubt**2 + FLOOR)))

    assert surprise() < 1.5
    if not rolling:
        monkeypatch.setattr("captime.spaces.model._STRANGENESS", (3.0,))
        assert surprise() > 1.5


def test_who_is_given_out_leaves_its_neighbours_with_less_to_tell() -> None:
    """Doubt falls as if it were known already: to next to nothing there, and hardly at all far away."""
    here = space()
    rng = np.random.default_rng(3)
    model = Surrogate(here, [known(here.draw(1, number), rng) for number in range(40)])
    search = Search(model, rng)
    before = search.doubt.copy()
    chosen = search.best(np.empty((0, len(here.names))), rng)
    assert chosen is not None
    place = int(keys(search.candidates).index(keys(chosen[np.newaxis])[0]))
    shared = model.shared_doubt(search.candidates)(place)
    assert shared[place] == pytest.approx(before[place] ** 2)
    assert (np.abs(shared) <= before * before[place] + 1e-9).all()
    assert search.doubt[place] < min(0.5 * before[place], FLOOR**0.5)
    assert (search.doubt <= before).all()
    alike = np.abs(shared) / (before * before[place])
    assert (search.doubt / before)[alike < 0.2].min() > 0.9


def test_proposals_of_a_batch_differ_from_each_other_and_stay_near_the_best() -> None:
    """Every second one is a variation of the best known; all of them may be run, and none is proposed twice."""
    here = space()
    rng = np.random.default_rng(9)
    evidence = [known(here.draw(4, number), rng) for number in range(40)]
    proposer = Proposer(here, seed=3, draws_first=2, proposals=6)
    batch = []
    for index in range(80, 140):
        if proposer.origin(index) == "model":
            batch.append(proposer.propose(index, evidence))
            evidence.append(Known(batch[-1], 0.0, 1.0, 0))
    for each in batch:
        here.check(each)
    rows = np.array([here.codes(each) for each in batch])
    assert len(set(keys(rows))) == len(batch) > 40
    usual = np.mean([utility(each.settings) for each in evidence[:40]])
    assert np.mean([utility(each) for each in batch]) > usual + 0.2


def test_a_lucky_newcomer_is_no_parent() -> None:
    """What has one high score is drawn towards the usual, so that variations are made of what is known to be good."""
    here = space()
    good, lucky = dict(here.default) | {"x": 0.8}, dict(here.default) | {"x": 0.2}
    rest = [Known(here.draw(1, number), 0.3, 0.3, 40, 0.05) for number in range(8)]
    told = [Known(good, 0.7, 0.7, 40, 0.05), Known(lucky, 0.8, 0.8, 1, 0.25), *rest]
    assert int(_standing(told).argmax()) == 0


def test_variations_may_be_run_and_change_a_fifth() -> None:
    """Half of them take after the very best alone, the others after two of the best."""
    section = {f"p{place}": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.0} for place in range(20)}
    here = read_section(section, "test")
    best = np.stack([np.full(20, 0.25), np.full(20, 0.75)])
    rng = np.random.default_rng(2)
    made = Nursery(here, rng).variations(best, rng, 400)
    of_first = (made == 0.25).sum(axis=1)
    of_second = (made == 0.75).sum(axis=1)
    alone = (of_second == 0) & (of_first == 16)
    assert 160 <= alone.sum() <= 300
    mixed = (of_first > 0) & (of_second > 0)
    assert 60 <= mixed.sum() <= 160
    assert (of_first + of_second)[mixed].mean() > 17.0


def test_measured_times_tell_more_than_scores_of_random_captimes() -> None:
    """Means from times are nearer to the truth, though half of the runs were stopped."""
    worth = parse_utility("uniform(60)")
    wrong: dict[bool, float] = {False: 0.0, True: 0.0}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        typical = rng.uniform(8.0, 60.0, 30)[:, None]
        seconds = typical * np.exp(0.3 * rng.standard_normal((30, 12)))
        table = table_of(seconds)
        plan = RandomCaptimes(worth, seed, Schedule(1.25), Schedule(60.0))
        replay = Replay(table, in_order(12), plan, worth)
        replay.answer(Orders(np.arange(30), np.full(30, 12), np.zeros(30, dtype=np.int64)))
        truth = np.asarray(worth(seconds)).mean(axis=1)
        for timed in wrong:
            told = Lessons(worth if timed else None).of(replay.tally, [{} for _ in range(30)])
            means = np.array([(each.low + each.high) / 2.0 for each in told])
            wrong[timed] += float(np.mean((means - means.mean() - truth + truth.mean()) ** 2))
    assert wrong[True] < 0.5 * wrong[False]


def test_a_stopped_run_counts_what_such_runs_are_worth_in_the_end() -> None:
    """Of four, one ends at 0.9; of the others one is stopped at 0.6, one ends at 0.5 and one at 0.1."""
    value = np.array([0.9, 0.6, 0.5, 0.1])
    step = ((1.0 - value) * 64).astype(np.int64)
    left = in_the_end(value, np.array([False, True, False, False]), step)
    assert left[step[1]] == pytest.approx(0.3)
    assert left[0] == pytest.approx((0.9 + 3 * 0.3) / 4)


def test_a_model_is_not_fitted_anew_for_every_proposal() -> None:
    """Only when more is known: logarithmically many times."""
    proposer = Proposer(space(), seed=1)
    pool(proposer, 200)
    assert sum(proposer.origin(index) == "model" for index in range(200)) == 97
    assert 10 <= proposer.refits <= 45


def test_the_model_takes_its_small_share_of_the_time_and_no_more() -> None:
    """By its own estimate at most a hundredth of what the runs cost; until then children of the best are proposed."""
    rng = np.random.default_rng(1)
    proposer = Proposer(space(), seed=1)
    evidence: list[Known] = []
    refits = []
    for index in range(120):
        spent = 0.04 * index
        settings = proposer.propose(index, evidence, spent)
        assert proposer.restraint.seconds <= 0.01 * spent
        refits.append(proposer.refits)
        evidence.append(known(settings, rng))
    assert refits[15] == 0
    assert 1 <= refits[-1] <= 6
    early = [utility(each.settings) for index, each in enumerate(evidence[:40]) if proposer.origin(index) == "model"]
    drawn = [utility(each.settings) for index, each in enumerate(evidence) if proposer.origin(index) == "random"]
    assert np.mean(early) > np.mean(drawn) + 0.05


def test_in_a_wide_space_the_model_finds_the_few_that_matter() -> None:
    """Sixty parameters, of which three matter: a few dozen configurations are enough to tell them."""
    section: dict[str, object] = {f"flag{place}": {"type": "bool", "default": True} for place in range(40)}
    section |= {f"n{place}": {"type": "int", "low": 1, "high": 1000, "log": True} for place in range(20)}
    wide = read_section(section, "test")
    rng = np.random.default_rng(0)
    evidence = []
    for number in range(48):
        settings = wide.draw(0, number)
        worth = 0.3 + 0.2 * bool(settings["flag3"]) - 0.1 * bool(settings["flag17"])
        worth += 0.3 * np.log(float(settings["n5"])) / np.log(1000) + 0.03 * rng.standard_normal()
        evidence.append(Known(settings, worth, worth, 40))
    strength = Surrogate(wide, evidence).strength
    assert {wide.names[place] for place in np.argsort(-strength)[:3]} == {"flag3", "flag17", "n5"}


def test_a_small_finite_space_is_used_up_without_harm() -> None:
    """When nothing new is left, a proposal repeats something; the pool continues."""
    small = read_section({"x": {"type": "int", "low": 0, "high": 5}}, "test")
    proposer = Proposer(small, seed=0, draws_first=0)
    evidence: list[Known] = []
    for index in range(30):
        settings = proposer.propose(index, evidence)
        small.check(settings)
        evidence.append(Known(settings, 0.5, 0.5, 10))


def taught(seed: int, read: Lessons) -> tuple[list[Known], FloatArray, FloatArray]:
    """Lessons from forty configurations on different stretches of a stream, their raw means, and the truth."""
    rng = np.random.default_rng(seed)
    speed, hardness, captime = 0.6 * rng.standard_normal((40, 1)), rng.standard_normal(4000), rng.logistic(size=4000)
    score = (speed + hardness + 0.3 * rng.standard_normal((40, 4000)) < captime).astype(np.float64)
    tally = blank_tally(40, lambda config, first, last: (score[config, first:last], score[config, first:last]))
    told: list[Known] = []
    for part in (0.5, 1.0):
        for config in range(40):
            n = int(part * (4 + config % 17 if config else 300))
            start = 0 if config % 2 == 0 else 20 + 3 * config
            tally.skipped[config], tally.n[config] = start, start + n
            tally.utility_low[config] = tally.utility_high[config] = score[config, start : start + n].sum()
        told = read.of(tally, [{} for _ in range(40)])
    assert [each.n for each in told] == (tally.n - tally.skipped).tolist()
    np.testing.assert_allclose(
        [each.low for each in told], [each.low for each in Lessons().of(tally, [{} for _ in range(40)])]
    )
    return told, tally.utility_low / (tally.n - tally.skipped), score.mean(axis=1)


def test_lessons_do_not_blame_configurations_for_unkind_instances() -> None:
    """Adjusted means are nearer to the truth than raw ones, and say how much of a score is luck."""
    raw_error, error = [], []
    for seed in range(8):
        told, raw, truth = taught(seed, Lessons())
        adjusted = np.array([(each.low + each.high) / 2 for each in told])
        raw_error.append(np.var(raw - truth))
        error.append(np.var(adjusted - truth))
        assert 0.05 < told[0].variance < 0.2
    assert np.mean(error) < 0.75 * np.mean(raw_error)
