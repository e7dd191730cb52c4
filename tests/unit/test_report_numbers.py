"""The numbers behind every figure are the ledger's, and what is called certain is."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from captime.bounds.dkw import uniform_dkw_radius, utility_bounds
from captime.evidence import Evidence
from captime.ledger import LedgerReader
from captime.live import walk_again
from captime.report.charts.chart import Band, Points
from captime.report.known_runs import ANSWERED, CUT, FAILED, KINDS, OPEN, STOPPED, KnownRuns
from captime.report.ledger_data import LedgerData, read_story
from captime.report.views.dominance import dominance_view, heat
from captime.report.views.duel import duel, duel_view
from captime.report.views.intervals import certified, epsilon_at, thinned
from captime.report.views.parameters import INACTIVE, columns, effects
from captime.report.views.runtimes import band, distributions, product_limit, runtimes_view
from captime.report.views.spending import captimes, spending
from captime.report.views.whatif import FIRST, LAST, dominance, expected, what_if
from captime.utilities import parse_utility
from report_ledgers import UTILITY, hand_written, raced_ledger, raced_question, shared_memory


@pytest.fixture(scope="module")
def story() -> LedgerData:
    """A race, from its ledger."""
    return read_story(raced_ledger())


@pytest.fixture
def by_hand(tmp_path: Path) -> LedgerData:
    """The ledger that was written by hand."""
    with hand_written(tmp_path / "hand.ledger"):
        return read_story(tmp_path / "hand.ledger")


def plain_runs(kind: list[int], seconds: list[float], captime: list[float]) -> KnownRuns:
    """Runs of one configuration."""
    n = len(kind)
    zeros = np.zeros(n, dtype=np.int64)
    return KnownRuns(
        zeros,
        np.arange(n),
        np.array(kind),
        np.array(seconds),
        np.array(captime),
        zeros - 1,
        np.zeros(n),
        zeros + 1,
        np.zeros(n),
    )


def test_what_is_known_of_every_run_is_what_the_rows_say(by_hand: LedgerData) -> None:
    """Attempts are joined, losses and runs under way are open, orphans count nothing."""
    runs = by_hand.runs
    assert runs is not None
    told = {
        (config, position): (KINDS[kind], seconds, captime, attempts)
        for config, position, kind, seconds, captime, attempts in zip(
            *(
                getattr(runs, name).tolist()
                for name in ("config", "position", "kind", "seconds", "captime", "attempts")
            ),
            strict=True,
        )
    }
    assert told == {
        **{(0, position): (KINDS[ANSWERED], position + 1.0, 60.0, 1) for position in range(4)},
        (1, 0): (KINDS[CUT], 5.0, 5.0, 1),
        (1, 1): (KINDS[ANSWERED], 30.0, 40.0, 2),
        (1, 2): (KINDS[STOPPED], 2.0, 60.0, 1),
        (1, 3): (KINDS[OPEN], 0.0, 60.0, 1),
        (2, 0): (KINDS[FAILED], 0.5, 60.0, 1),
        (2, 1): (KINDS[FAILED], 0.25, 60.0, 1),
        (2, 2): (KINDS[ANSWERED], 8.0, 60.0, 1),
        (2, 3): (KINDS[OPEN], 1.0, 60.0, 1),
    }
    assert runs.cost.sum() == pytest.approx(1 + 2 + 3 + 4 + 5 + 4 + 30 + 2 + 0.5 + 0.25 + 8 + 1)


def test_scores_without_draws_are_the_utility_with_open_ends(by_hand: LedgerData) -> None:
    """u(60 - t)/60 for answers; cut, stopped and open runs reach from 0 to what an answer just then would be worth."""
    scores, runs = by_hand.scores, by_hand.runs
    assert scores is not None
    assert runs is not None
    slow = runs.config == 1
    assert scores.low[slow].tolist() == pytest.approx([0.0, 0.5, 0.0, 0.0])
    assert scores.high[slow].tolist() == pytest.approx([55 / 60, 0.5, 58 / 60, 1.0])
    crashing = runs.config == 2
    assert scores.high[crashing].tolist() == pytest.approx([0.0, 0.0, 52 / 60, 59 / 60])


@pytest.mark.parametrize("procedure", ["race", "up"])
def test_scores_of_a_campaign_are_those_its_procedure_was_told(procedure: str) -> None:
    """Replaying the ledger through the books of the engine gives the same sums, configuration by configuration."""
    told = read_story(raced_ledger(procedure))
    _, question = raced_question(procedure)
    made = question.build()
    evidence = Evidence(len(question.configs), made.plan, question.utility)
    with LedgerReader(raced_ledger(procedure)) as reader:
        for _ in walk_again(made, evidence, reader.replay()):
            pass
    assert told.scores is not None
    assert told.runs is not None
    assert (told.lottery is not None) == (procedure == "race")
    for config in range(len(question.configs)):
        own = told.runs.config == config
        assert told.scores.low[own].sum() == pytest.approx(evidence.tally.utility_low[config], abs=1e-9)
        if procedure == "up" and (told.runs.kind[own] == FAILED).any():
            # A ladder counts failures up to u(κ), because its bound needs that; here they are what they are, 0.
            assert told.scores.high[own].sum() <= evidence.tally.utility_high[config]
            continue
        # What was ordered and never started counts from 0 to 1 there, and is no run here.
        never = evidence.tally.n[config] - evidence.tally.skipped[config] - int(own.sum())
        high = told.scores.high[own].sum() + never
        assert high == pytest.approx(evidence.tally.utility_high[config], abs=1e-9)
        assert 0 <= never <= 3
        assert told.scores.lower[config] <= told.scores.upper[config]


def test_the_staircase_is_the_ledgers_certificates(story: LedgerData) -> None:
    """Row by row; and thinning keeps the first and the last."""
    with LedgerReader(raced_ledger()) as reader:
        rows = reader.certificates()
    steps = certified(story)
    assert steps.seconds.tolist() == [row.cpu_seconds for row in rows]
    assert steps.epsilon.tolist() == [row.certificate.epsilon for row in rows]
    assert steps.candidates.tolist() == [row.candidates for row in rows]
    assert epsilon_at(steps, np.array([rows[-1].cpu_seconds, 0.0])).tolist() == [rows[-1].certificate.epsilon, 1.0]
    many = np.linspace(1.0, 1e6, 100_000)
    places = thinned(many, 500)
    assert len(places) <= 500
    assert (places[0], places[-1]) == (0, len(many) - 1)


def test_who_left_the_race_is_who_is_no_candidate(story: LedgerData) -> None:
    """The notes of a campaign lead to the number that its last certificate has."""
    assert len(story.in_race) == story.progress.candidates[-1]
    assert story.leader in story.in_race
    left = {config for _, who in story.progress.out for config in who}
    assert left | story.in_race == set(range(len(story.names)))


def test_time_and_runs_add_up_to_the_ledgers(story: LedgerData) -> None:
    """Nothing is lost between the rows and the figure, and every run is in the heat map once."""
    with LedgerReader(raced_ledger()) as reader:
        counts = reader.counts()
    paid = spending(story)
    grid = heat(story, list(range(len(story.names))), columns=17)
    assert paid is not None
    assert grid is not None
    assert story.runs is not None
    assert paid.seconds.sum() == pytest.approx(sum(cost for _, cost in counts.values()))
    assert int(paid.attempts.sum()) == sum(count for count, _ in counts.values())
    assert int(grid.counts.sum()) == len(story.runs) == int(paid.runs.sum())
    assert (grid.kind[4] == FAILED).sum() >= 1
    assert grid.kind.shape[1] <= 17


def test_captimes_rise_in_steps_only_where_captimes_rise(story: LedgerData) -> None:
    """A ladder has a staircase for each configuration; chance has a median and a longest."""
    drawn, raised = captimes(story), captimes(read_story(raced_ledger("up")))
    assert drawn is not None
    assert raised is not None
    assert drawn.steps == ()
    assert (drawn.longest >= drawn.median).all()
    rungs = {captime for _, _, captime in raised.steps}
    assert rungs <= {*(2.0**k for k in range(12)), 60.0, 900.0}


def test_the_product_limit_is_the_textbooks() -> None:
    """Times 1, 2+, 3, 4+, 5: survival 4/5, then 2/3 of that, then nothing left."""
    runs = plain_runs([ANSWERED, CUT, ANSWERED, CUT, ANSWERED], [1, 2, 3, 4, 5], [9, 2, 9, 4, 9])
    found = product_limit(runs, np.array([1.0, 1.5, 3.5, 4.5, 5.5]))
    assert found.tolist() == pytest.approx([0.0, 0.2, 1 - 0.8 * 2 / 3, 1 - 0.8 * 2 / 3, 1.0])


def test_without_cuts_the_product_limit_is_the_plain_share_and_failures_never_answer() -> None:
    """Three answers, one failure: the share ends at 3/4, and behind the failure's captime nothing is known."""
    runs = plain_runs([ANSWERED, ANSWERED, ANSWERED, FAILED], [1, 2, 3, 0.1], [10, 10, 10, 10])
    found = product_limit(runs, np.array([1.0, 2.5, 9.0, 11.0]))
    assert found[:3].tolist() == pytest.approx([0.0, 0.5, 0.75])
    assert math.isnan(found[3])


def test_certain_utilities_agree_with_the_bounds_family() -> None:
    """With one captime for all, the integral over the band is the bound of `bounds.dkw`, up to the grid of moments."""
    told = read_story(raced_ledger("up"))
    known = distributions(told)
    assert known is not None
    assert told.runs is not None
    utility = parse_utility("uniform(20)")
    _, lower, upper = expected(known, utility)
    for config in range(len(told.names)):
        own = told.runs.of(config)
        radius = float(uniform_dkw_radius(np.array([len(own)]), math.log(len(told.names) / told.delta))[0])
        if radius >= 1.0 or len(np.unique(own.captime[own.kind == CUT])) > 1 or (own.kind == OPEN).any():
            continue
        cut = float(own.captime.max())
        seconds = np.where(own.kind == ANSWERED, own.seconds, np.inf)
        exact = utility_bounds(seconds, cut, utility, radius)
        assert lower[config] <= exact[0] + 1e-9
        assert exact[0] - lower[config] <= 0.02
        if not (own.kind == FAILED).any() and not (own.kind == STOPPED).any():
            assert upper[config] >= exact[1] - 1e-9
            assert upper[config] - exact[1] <= 0.02


def test_a_band_that_excludes_nothing_is_not_drawn(story: LedgerData, by_hand: LedgerData) -> None:
    """With a few runs it would shade the whole picture; the caption says why there is none."""
    for told, drawn in ((story, True), (by_hand, False)):
        made = runtimes_view([told])
        assert made is not None
        (chart,) = made.charts
        assert any(isinstance(mark, Band) for mark in chart.marks) == drawn
        assert ("No certified band is drawn" in made.caption) == (not drawn)


def test_what_if_holds_estimates_between_certain_ends(story: LedgerData) -> None:
    """For every family and member; a deadline's utility is the share answered by then; regret is never negative."""
    answers = what_if(story)
    assert answers is not None
    for family in answers.families:
        known = ~np.isnan(family.estimate)
        assert (family.lower[known] <= family.estimate[known] + 1e-9).all()
        assert (family.estimate[known] <= family.upper[known] + 1e-9).all()
        regret = family.regret(story.leader)
        assert (regret[~np.isnan(regret)] >= 0.0).all()
        both = ~np.isnan(regret[story.leader])
        assert (family.certified_regret(story.leader)[both] >= regret[story.leader][both] - 1e-9).all()
        # No other one wins because nothing is known of the recommended one.
        assert ((family.best(story.leader) == -1) == ~known[story.leader]).all()
        assert np.isnan(regret[:, ~known[story.leader]]).all()
        assert family.possible().any(axis=0).all()
    deadline = answers.families[0]
    moments = np.searchsorted(answers.distributions.moments, deadline.parameter)
    shares = answers.distributions.estimate[story.leader, moments]
    both = ~np.isnan(shares) & ~np.isnan(deadline.estimate[story.leader])
    np.testing.assert_allclose(deadline.estimate[story.leader][both], shares[both], atol=1e-12)


def test_what_if_reaches_from_a_second_to_an_hour_whatever_was_measured(story: LedgerData, by_hand: LedgerData) -> None:
    """The fixed families have the same numbers for all campaigns; beyond the longest captime little is certain."""
    for told in (story, by_hand):
        answers = what_if(told)
        assert answers is not None
        fixed = [family for family in answers.families if family.fixed]
        assert [family.name for family in fixed] == ["deadline", "log-laplace", "par10"]
        for family in fixed:
            assert (family.parameter[0], family.parameter[-1]) == pytest.approx((FIRST, LAST))
        deadline = fixed[0]
        beyond = deadline.parameter > answers.last
        assert beyond.any()
        # No run was watched for that long: one that has not answered by then may yet, and none is taken to have.
        assert (deadline.lower[:, beyond] <= deadline.lower[:, ~beyond].max(axis=1, keepdims=True) + 1e-12).all()
        assert (deadline.upper[:, beyond] >= deadline.upper[:, ~beyond].max(axis=1, keepdims=True) - 1e-12).all()
        open_ended = np.nan_to_num(answers.distributions.estimate).max(axis=1) < 0.98
        assert open_ended.any()
        assert np.isnan(deadline.estimate[np.ix_(open_ended, beyond)]).all()


def test_many_utilities_at_once_are_one_after_the_other(story: LedgerData) -> None:
    """The families are what `expected` says of each of their members."""
    answers = what_if(story)
    assert answers is not None
    for family in answers.families:
        for place in (0, 40, 96):
            utility = parse_utility(family.example.format(repr(float(family.parameter[place]))))
            found = expected(answers.distributions, utility)
            for one, column in zip(found, (family.estimate, family.lower, family.upper), strict=True):
                np.testing.assert_allclose(one, column[:, place], atol=1e-3 if family.name == "parc" else 1e-9)


def test_what_if_agrees_with_the_scores_under_the_campaigns_own_utility(story: LedgerData) -> None:
    """Two roads to one number: draws by position, and the whole distribution."""
    answers = what_if(story)
    assert answers is not None
    assert story.scores is not None
    estimate, lower, upper = expected(answers.distributions, UTILITY)
    assert estimate[story.leader] == pytest.approx(story.scores.estimate[story.leader], abs=0.05)
    assert (lower <= story.scores.upper).all()
    assert (upper >= story.scores.lower).all()


def test_the_largest_loss_is_the_largest_over_deadlines(story: LedgerData) -> None:
    """Every utility is a mixture of deadlines, so no utility loses more than the worst deadline."""
    answers = what_if(story)
    assert answers is not None
    pair = [story.leader, int(story.ranking()[1])]
    found = dominance(answers.distributions, pair)
    deadline = answers.families[0].estimate
    worst = float(np.nanmax(deadline[pair[1]] - deadline[pair[0]]))
    assert found.loss[0, 1] >= max(0.0, worst) - 1e-9
    assert (found.certified >= found.loss - 1e-9).all()
    assert found.loss[0, 0] == 0.0
    assert found.dominates()[0, 0]


def test_effects_are_averages_over_those_who_share_a_value(story: LedgerData) -> None:
    """By hand for a switch; a conditional parameter has a group for those who lack it."""
    scores = story.scores
    assert scores is not None
    found = {effect.name: effect for effect in effects(story)}
    assert set(found) == {"restart", "decay", "unit"}
    luby = np.arange(0, len(story.names), 2)
    restart = found["restart"]
    place = list(restart.groups).index("luby")
    assert restart.members[place].tolist() == luby.tolist()
    assert restart.lower[place] == pytest.approx(scores.lower[luby].mean())
    assert restart.estimate[place] == pytest.approx(scores.estimate[luby].mean())
    unit = found["unit"]
    assert unit.groups[-1] == INACTIVE
    assert unit.members[-1].tolist() == (luby + 1).tolist()
    places = {column.name: column.place for column in columns(story)}
    assert np.isnan(places["unit"][1])
    assert places["decay"][0] == 0.0


def test_a_duel_is_the_same_seen_from_the_other_side(story: LedgerData) -> None:
    """Positions that both ran, and an interval that turns around."""
    first, second = story.leader, int(story.ranking()[1])
    one, other = duel(story, first, second), duel(story, second, first)
    assert one is not None
    assert other is not None
    assert story.runs is not None
    common = set(story.runs.of(first).position.tolist()) & set(story.runs.of(second).position.tolist())
    assert set(one.position.tolist()) == common
    assert (one.lower, one.upper) == pytest.approx((-other.upper, -other.lower))
    assert one.estimate == pytest.approx(-other.estimate)
    assert one.lower <= one.estimate <= one.upper


def test_runs_that_took_no_time_do_not_stretch_the_axes(story: LedgerData) -> None:
    """Stopped before they began: they stand at the edge of what the others span, and the page is told the truth."""
    assert story.runs is not None
    runs = story.runs
    seconds = runs.seconds.copy()
    seconds[np.flatnonzero(runs.config == story.leader)[::5]] = 0.0
    made = duel_view(replace(story, runs=replace(runs, seconds=seconds)))
    assert made is not None
    assert made.versus is not None
    shortest = seconds[seconds > 0.0].min()
    for chart in [*made.charts, made.versus.chart]:
        assert chart.y.low >= shortest / 2.0
        points = [mark for mark in chart.marks if isinstance(mark, Points)]
        assert all((mark.y >= chart.y.low).all() and (mark.x >= chart.x.low).all() for mark in points)
    assert 10.0 ** json.loads(json.dumps(made.versus.data))["ends"][0] >= shortest / 2.0


def test_dominance_is_about_the_recommended_one_or_nobody(story: LedgerData) -> None:
    """With few runs of the leader there is no estimate of it, and the next one does not take its place."""
    assert dominance_view(story) is not None
    assert story.runs is not None
    own = np.flatnonzero(story.runs.config == story.leader)
    few = np.delete(np.arange(len(story.runs)), own[20:])
    assert dominance_view(replace(story, runs=story.runs.where(few))) is None


def test_any_two_on_the_page_are_the_ledgers_runs(story: LedgerData) -> None:
    """What the script of the page is given: every pair with its interval, every run with its time and its end."""
    made = duel_view(story)
    assert made is not None
    assert made.versus is not None
    assert story.runs is not None
    data = json.loads(json.dumps(made.versus.data))
    config = [story.names.index(name) for name in made.versus.names]
    assert config[made.versus.first] == story.leader
    assert len(data["pairs"]) == len(config) * (len(config) - 1) // 2
    for first, second, lower, upper, _, common in data["pairs"]:
        fought = duel(story, config[first], config[second])
        assert fought is not None
        assert (lower, upper) == pytest.approx((fought.lower, fought.upper), abs=1.1e-3)
        assert lower <= fought.lower
        assert upper >= fought.upper
        assert common == len(fought.position)
    at = {name: number for number, name in enumerate(data["instances"])}
    for place, (steps, seconds, kinds) in enumerate(data["runs"]):
        own = story.runs.of(config[place])
        # Where no other was run there is nothing to compare.
        places = [at.get(story.instances[position]) for position in own.position.tolist()]
        known = {where: row for row, where in enumerate(places) if where is not None}
        rows = [known[where] for where in np.cumsum(steps).tolist()]
        np.testing.assert_allclose(seconds, own.seconds[rows], rtol=1e-3)
        assert [int(kind) for kind in kinds] == own.kind[rows].tolist()
        assert sorted(rows) == sorted(known.values())


def test_a_million_cells_have_no_room_for_doubt(story: LedgerData) -> None:
    """The band is a distribution function on both sides, inside [0, 1], and holds the estimate."""
    known = distributions(story)
    assert known is not None
    for ends in (known.lower, known.upper):
        assert (np.diff(ends, axis=1) >= -1e-12).all()
        assert ((ends >= 0.0) & (ends <= 1.0)).all()
    assert (known.lower <= known.upper).all()
    few = plain_runs([ANSWERED] * 5, [1.0] * 5, [9.0] * 5)
    lower, upper = band(few, np.array([2.0]), np.zeros(1), 5.0)
    assert (float(lower[0]), float(upper[0])) == (0.0, 1.0)


def test_ledgers_without_runs_or_with_a_foreign_utility_are_told_as_far_as_they_go() -> None:
    """Nothing is made up: no runs, no figures of runs."""
    path = shared_memory() / "empty.ledger"
    from captime.ledger import ConfigRow, Ledger  # noqa: PLC0415 (only this test writes one itself)

    with Ledger.create(path, {"utility": "python:secret.module:f", "delta": 0.1}, [ConfigRow(0, "a")]):
        pass
    told = read_story(path)
    assert told.utility is None
    assert told.scores is None
    assert told.certificate is None
    assert distributions(told) is None
    assert what_if(told) is None
