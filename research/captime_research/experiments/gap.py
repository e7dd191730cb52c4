"""How good is the answer, and how soon? All methods on the same streams: procedures with a guarantee and baselines.

The relative gap of an answer is 1 - U / max U, with mean utilities over the whole table: 0 for the best configuration.
No method sees it; it is looked up afterwards. Methods that have to be told beforehand how much they may spend are
run with several budgets, and at a given moment the answer of the largest one that was finished by then counts.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.errors import ScenarioError
from captime.utilities import parse_utility
from captime_research.experiments.contenders import PANELS, UTILITY, Contender, contenders
from captime_research.experiments.growing import renumbered
from captime_research.experiments.paper import RACE
from captime_research.experiments.rows import Band, Row
from captime_research.experiments.setting import Setting

CERTIFIED = "certified epsilon"
# From when on a guarantee holds that is given at the end only; no panel, but marks on the curves.
IN_FORCE = "guarantee in force"
# How much longer than the race's certificate for epsilon 0.1 every method may run, and where the curves begin.
PATIENCE, BEGIN, POINTS = 100.0, 1e-4, 41


def gap(setting: Setting, seed: int) -> Iterator[Row]:
    """Gap, and certified epsilon where there is one, against CPU time spent; log-Laplace utility."""
    yield from _gap(setting, setting.log_laplace, seed)


def gap_uniform(setting: Setting, seed: int) -> Iterator[Row]:
    """The same with the uniform utility."""
    yield from _gap(setting, setting.uniform, seed)


def moments_of(setting: Setting, utility: str) -> FloatArray:
    """Return the moments at which every method is asked for its answer, in CPU seconds."""
    reference = setting.run("race", utility, 0.1, 0)
    moments: FloatArray = np.geomspace(BEGIN, 1.0, POINTS) * PATIENCE * reference.cpu_seconds
    return moments


def _gap(setting: Setting, utility: str, seed: int) -> Iterator[Row]:
    moments = moments_of(setting, utility)
    shuffled = renumbered(setting, seed)
    lost = relative_gaps(shuffled, utility)
    worth_a_tenth = min(float(parse_utility(utility).inverse(np.array(0.1))), setting.table.limit)
    for contender in contenders(setting.table.n_configs, worth_a_tenth):
        try:
            story = _followed(shuffled, utility, contender, seed, moments)
        except ScenarioError as refusal:
            yield Row(contender.promises, contender.label, seed, math.nan, math.nan, str(refusal))
            continue
        answers = np.where(story.configs >= 0, lost.take(story.configs), np.nan)
        for moment, answer, epsilon in zip(moments.tolist(), answers.tolist(), story.epsilons.tolist(), strict=True):
            yield Row(contender.promises, contender.label, seed, moment, answer)
            if contender.promises == UTILITY:
                yield Row(CERTIFIED, contender.label, seed, moment, epsilon)
        if contender.ends:
            why = "" if math.isfinite(story.ended) else f"it had not ended after {moments[-1]:.3g} s"
            yield Row(IN_FORCE, contender.label, seed, 0.0, story.ended, why)


def relative_gaps(setting: Setting, utility: str) -> FloatArray:
    """What each configuration's mean utility lacks to the best one's, as a share of that."""
    truth = setting.truth(utility)
    lost: FloatArray = 1.0 - truth / truth.max()
    return lost


@dataclass(frozen=True, slots=True)
class _Story:
    """What a method would recommend at each moment (-1: nothing yet), the epsilon certified by then, and its end."""

    configs: IntArray
    epsilons: FloatArray
    ended: float


def _followed(setting: Setting, utility: str, contender: Contender, seed: int, moments: FloatArray) -> _Story:
    configs: IntArray = np.full(len(moments), -1)
    epsilons: FloatArray = np.ones(len(moments))
    ended = math.nan
    # A goal that is hardly ever reached, so that methods that certify run to the end.
    goal = 0.02 if contender.promises == UTILITY else 0.1
    for form in contender.forms:
        result = setting.run(contender.procedure, utility, goal, seed, form, budget=float(moments[-1]))
        if len(contender.forms) > 1:
            configs[moments >= result.cpu_seconds] = result.certificate.config
            continue
        made = result.outcome.trace.decisions()
        place = np.searchsorted(made.seconds, moments, side="right") - 1
        configs = np.where(place >= 0, made.config.take(place), -1)
        epsilons = np.where(place >= 0, made.epsilon.take(place), 1.0)
        if result.outcome.stopped == "done":
            ended = result.cpu_seconds
    return _Story(configs, epsilons, ended)


Curves = Mapping[str, Mapping[str, Band]]


def panels_of(curves: Curves) -> dict[str, dict[str, Band]]:
    """Return the panels of the picture, in their order: the race, once in the rows, is in every panel."""
    race = curves.get(UTILITY, {}).get(RACE)
    found: dict[str, dict[str, Band]] = {}
    for panel in PANELS:
        if panel in curves:
            found[panel] = ({} if race is None else {RACE: race}) | dict(curves[panel])
    if CERTIFIED in curves:
        found[CERTIFIED] = dict(curves[CERTIFIED])
    return found


def marks_of(rows: Iterable[Row], curves: Curves) -> dict[str, dict[str, tuple[float, float]]]:
    """By panel and label, where on its curve a guarantee comes into force: median of the seeds, if most have one."""
    ends: dict[str, list[float]] = {}
    for row in rows:
        if row.panel == IN_FORCE:
            ends.setdefault(row.label, []).append(row.y)
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for panel, bands in curves.items():
        for label, band in bands.items():
            known = [each for each in ends.get(label, []) if not math.isnan(each)]
            if panel in PANELS and 2 * len(known) > len(ends.get(label, [])):
                moment = float(np.median(known))
                found.setdefault(panel, {})[label] = moment, float(np.interp(moment, band.x, band.middle))
    return found
