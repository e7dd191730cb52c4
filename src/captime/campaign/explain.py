"""From a campaign to a path between two of its configurations: what differs, where it is run, in which order.

The order is chosen on instances of its own. Each group of settings is tried alone, added to the first configuration and
taken out of the last one; groups that help most change first, and those that hardly matter change together at the end.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from captime.arrays import FloatArray
from captime.bounds.mixture import log_wealth
from captime.campaign.changes import settings_of
from captime.campaign.judge_candidates import in_space, instances_of, on_some
from captime.campaign.measurement import difference, log_inverse_of
from captime.campaign.validation import Worth, on_generated, used_in_tuning
from captime.certificate import check_delta
from captime.errors import ScenarioError
from captime.ledger import ConfigRow
from captime.ledger.rows import SampleRow
from captime.programs.protocol import Configuration, Setting
from captime.scenario import Scenario
from captime.spaces import Space
from captime.spaces.clauses import parents
from captime.streams import FiniteStream

# Which steps of a path carry the gain: intervals for every step and for the share of every beginning of the path.
#
# A path leads from one configuration to another, c_0, c_1, …, c_d, some settings changed at each step. All its
# configurations were run on the same instances, and the path was chosen on others. Then all intervals below hold at
# once, for all numbers of instances, with probability at least 1 - delta; docs/explain.md has the argument.

# Shares that are refuted one after the other, from each end; fixed beforehand. Finer where sentences are made of them.
_SHARES = np.concatenate((np.arange(-20, -2) / 10.0, np.arange(-20, 121) / 100.0, np.arange(13, 31) / 10.0))
# What rounding may have added to the logarithm of the wealth, for each run; far more than it has.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Share:
    """Which share of the whole gain the first steps of a path carry.

    Attributes:
        seen: On the instances run, in the middle of what is possible; None while the gain seen is not positive.
        low: Lower bound; None if no share is too small to be refuted.
        high: Upper bound; None likewise.
    """

    seen: float | None
    low: float | None
    high: float | None

    @property
    def width(self) -> float:
        """How far the ends are apart; infinite if one is missing."""
        return np.inf if self.low is None or self.high is None else self.high - self.low


@dataclass(frozen=True, slots=True)
class Ablation:
    """What is known of a path.

    Attributes:
        n_instances: On how many instances all its configurations were run.
        delta: Allowed probability that any of the intervals is wrong.
        gain: By how much the last configuration exceeds the first.
        steps: By how much each configuration exceeds the one before it.
        shares: Which share of the gain the first 1, 2, …, d - 1 steps carry.
        named: The number of first steps that a sentence is made of; d if none of the beginnings carries enough.
    """

    n_instances: int
    delta: float
    gain: Worth
    steps: tuple[Worth, ...]
    shares: tuple[Share, ...]
    named: int

    @property
    def share(self) -> Share:
        """The share of the steps that are named."""
        return self.shares[self.named - 1] if self.named <= len(self.shares) else Share(1.0, 1.0, 1.0)


def ablation(low: FloatArray, high: FloatArray, delta: float, carry: float) -> Ablation:
    """Bound the gain, every step, and the share of every beginning of the path.

    Args:
        low: Low ends of the utilities, by configuration of the path and position.
        high: High ends.
        delta: Allowed probability that any of the intervals is wrong.
        carry: A beginning of the path is named if this share of the gain is seen in it.
    """
    check_delta(delta)
    steps = len(low) - 1
    level = _level(delta, steps)
    gain = difference(low, high, steps, 0, level)
    return Ablation(
        n_instances=low.shape[1],
        delta=delta,
        gain=gain,
        steps=tuple(difference(low, high, row, row - 1, level) for row in range(1, steps + 1)),
        shares=tuple(share_of(low, high, row, level) for row in range(1, steps)),
        named=named_steps(low, high, carry),
    )


def is_decided(low: FloatArray, high: FloatArray, delta: float, *, carry: float, within: float, least: float) -> bool:
    """Tell whether enough is known: there is hardly a gain, or the share of the named steps is known closely.

    Args:
        low: As in `ablation`.
        high: As in `ablation`.
        delta: As in `ablation`.
        carry: As in `ablation`.
        within: How wide the interval of the share may be.
        least: A gain below this needs no explanation.
    """
    steps = len(low) - 1
    level = _level(delta, steps)
    gain = difference(low, high, steps, 0, level)
    if gain.high < least:
        return True
    if gain.low <= 0.0:
        return False
    named = named_steps(low, high, carry)
    return named == steps or share_of(low, high, named, level).width <= within


def named_steps(low: FloatArray, high: FloatArray, carry: float) -> int:
    """Return how many first steps are seen to carry the wanted share of the gain; all if there is no gain."""
    means = ((low + high) / 2.0).mean(axis=1)
    whole = means[-1] - means[0]
    if whole <= 0.0:
        return len(low) - 1
    return 1 + int(np.argmax(means[1:] - means[0] >= min(carry, 1.0) * whole - 1e-12))


def share_of(low: FloatArray, high: FloatArray, row: int, log_inverse: float) -> Share:
    """Bound the share (U(c_row) - U(c_0)) / (U(c_d) - U(c_0)), where U(c_d) > U(c_0).

    "The share is at most r" says that x_row - (1 - r)·x_0 - r·x_d has a mean of at most 0, a claim about one mean of
    numbers in a known range, which betting can refute. The claims contain each other, so they are refuted one after the
    other from the smallest r on, each at the full level, until one stands. The other end likewise.

    Args:
        low: Low ends of the utilities, by configuration of the path and position.
        high: High ends.
        row: The last configuration of the beginning in question.
        log_inverse: ln(1 / failure probability) of each end.
    """
    enough = log_inverse + _ROUNDING * low.shape[1]

    def refuted(share: float, *, too_small: bool) -> bool:
        """Tell whether "at most this share" is refuted, or else "at least this share"."""
        # The second claim is the first one about the same numbers with their signs changed.
        sign = 1.0 if too_small else -1.0
        weights = {row: sign, 0: sign * (share - 1.0), len(low) - 1: -sign * share}
        least = sum(min(weight, 0.0) for weight in weights.values())
        width = sum(map(abs, weights.values()))
        # From below: what helps the claim counts with its high end, what speaks against it with its low end.
        total = np.zeros(low.shape[1])
        for place, weight in weights.items():
            total += weight * (low if weight > 0 else high)[place]
        return bool(log_wealth(np.clip((total - least) / width, 0.0, 1.0), -least / width) >= enough)

    from_below = next((at for at, share in enumerate(_SHARES) if not refuted(share, too_small=True)), len(_SHARES))
    downwards = _SHARES[::-1]
    from_above = next((at for at, share in enumerate(downwards) if not refuted(share, too_small=False)), len(_SHARES))
    middle = ((low + high) / 2.0).mean(axis=1)
    whole = float(middle[-1] - middle[0])
    return Share(
        seen=float(middle[row] - middle[0]) / whole if whole > 0.0 else None,
        low=float(_SHARES[from_below - 1]) if from_below else None,
        high=float(downwards[from_above - 1]) if from_above else None,
    )


def _level(delta: float, steps: int) -> float:
    """Return ln(1 / failure probability) of one end: two for the gain, two a step, and two a beginning share delta."""
    return log_inverse_of(delta, 2 + 2 * steps + 2 * (steps - 1))


_OWN = ("command", "answer", "exit_codes")
# A group whose effect seems smaller than this share of the whole gain has no step of its own.
_LITTLE = 0.02
# Fewer instances than this are too few to bound anything on.
_FEWEST = 10

Group = tuple[str, ...]
"""Settings that change together: a parameter, and those that are only there with one of its values."""


@dataclass(frozen=True, slots=True)
class SettingsDifference:
    """What differs between two configurations.

    Attributes:
        start: Settings of the first.
        goal: Settings of the last.
        groups: What changes, each setting in one group.
        space: The space they come from; None if they were listed.
    """

    start: Mapping[str, Setting]
    goal: Mapping[str, Setting]
    groups: tuple[Group, ...]
    space: Space | None

    @property
    def n_settings(self) -> int:
        """How many settings differ."""
        return sum(map(len, self.groups))

    def mixed(self, changed: Sequence[Group]) -> dict[str, Setting] | None:
        """Return the first configuration with these groups as in the last; None if the space forbids it."""
        names = {name for group in changed for name in group}
        both = dict.fromkeys([*self.start, *self.goal])
        source = {name: self.goal if name in names else self.start for name in both}
        settings = {name: side[name] for name, side in source.items() if name in side}
        if self.space is None:
            return settings
        try:
            return in_space(self.space, settings, "ablation")[0]
        except ScenarioError:
            return None


def difference_between(first: ConfigRow, last: ConfigRow, space: Space | None) -> SettingsDifference:
    """Find what differs; refuse configurations that are programs of their own, or the same."""
    for name in _OWN:
        if first.settings.get(name) != last.settings.get(name):
            raise ScenarioError(
                f"{first.name!r} and {last.name!r} differ in their {name}: they are different programs, and no setting "
                "leads from one to the other. Name two configurations of one program with --from and --to"
            )
    start, goal = dict(settings_of(first)), dict(settings_of(last))
    absent = object()
    changed = [name for name in {**start, **goal} if start.get(name, absent) != goal.get(name, absent)]
    if first.name == last.name:
        raise ScenarioError(
            f"both ends are {first.name!r} (the default and the recommended configuration, unless --from and --to name "
            "others), so there is nothing to explain; name another one with --from or --to"
        )
    if not changed:
        raise ScenarioError(
            f"{first.name!r} and {last.name!r} have the same settings, so there is nothing to explain; name two others "
            "with --from and --to"
        )
    return SettingsDifference(start, goal, _groups(changed, start, goal, space), space)


def _groups(
    changed: Sequence[str], start: Mapping[str, Setting], goal: Mapping[str, Setting], space: Space | None
) -> tuple[Group, ...]:
    """Put parameters that only one side has to the parameters that decide whether they are there."""
    leader = {name: name for name in changed}

    def root(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for name in changed:
        if space is None or name not in space.conditions or (name in start and name in goal):
            continue
        for above in parents(space.conditions[name]):
            if above in leader:
                leader[root(name)] = root(above)
    found: dict[str, list[str]] = {}
    for name in changed:
        found.setdefault(root(name), []).append(name)
    return tuple(tuple(sorted(group, key=lambda each: each != head)) for head, group in found.items())


# ------------------------------------------------------------------ the order


def trials_of(difference: SettingsDifference) -> dict[str, dict[str, Setting]]:
    """Return what is run to choose the order: both ends, each group added to one and taken out of the other."""
    found = {"start": dict(difference.start), "goal": dict(difference.goal)}
    for number, group in enumerate(difference.groups):
        others = [each for each in difference.groups if each is not group]
        for word, settings in (("with", difference.mixed([group])), ("without", difference.mixed(others))):
            if settings is not None:
                found[f"{word}-{number}"] = settings
    return found


def order_of(
    difference: SettingsDifference, names: Sequence[str], means: FloatArray, most: int
) -> list[tuple[Group, ...]]:
    """Return the steps of the path: which groups change at each.

    Args:
        difference: What differs.
        names: Of the configurations that were tried, as `trials_of` calls them.
        means: What each was seen to be worth.
        most: How many groups may have a step of their own.
    """
    seen = dict(zip(names, means.tolist(), strict=True))
    whole = seen["goal"] - seen["start"]

    def effect(number: int) -> float:
        ends = [seen[f"with-{number}"] - seen["start"]] if f"with-{number}" in seen else []
        ends += [seen["goal"] - seen[f"without-{number}"]] if f"without-{number}" in seen else []
        return float(np.mean(ends)) if ends else 0.0

    effects = {group: effect(number) for number, group in enumerate(difference.groups)}
    ranked = sorted(difference.groups, key=lambda group: -effects[group])
    alone = [group for group in ranked if effects[group] >= _LITTLE * abs(whole)][:most]
    rest = [group for group in ranked if group not in alone]
    return _allowed(difference, alone, rest)


def _allowed(difference: SettingsDifference, alone: list[Group], rest: list[Group]) -> list[tuple[Group, ...]]:
    """Return the steps in an order that the space allows; what fits nowhere changes at the end, together."""
    steps: list[tuple[Group, ...]] = []
    done: list[Group] = []
    waiting = list(alone)
    while waiting:
        fits = next((group for group in waiting if difference.mixed([*done, group]) is not None), None)
        if fits is None:
            rest = [*waiting, *rest]
            break
        waiting.remove(fits)
        done.append(fits)
        steps.append((fits,))
    return [*steps, tuple(rest)] if rest else steps


def path_of(difference: SettingsDifference, steps: Sequence[tuple[Group, ...]]) -> list[Configuration]:
    """Return the configurations of the path; the last has everything changed."""
    done: list[Group] = []
    found = [Configuration("start", difference.start)]
    for number, step in enumerate(steps, start=1):
        done += step
        settings = difference.mixed(done) if number < len(steps) else difference.goal
        if settings is None:
            raise ScenarioError("a step of the ablation path is forbidden by the space; use --steps 1")
        found.append(Configuration("goal" if number == len(steps) else f"step-{number}", settings))
    return found


# ------------------------------------------------------------------ the instances


@dataclass(frozen=True, slots=True)
class InstanceSplit:
    """Where the order is chosen, and where the path is bounded: no instance is in both, and no choice rests on either.

    Attributes:
        choice: The scenario on the first.
        bounds: The scenario on the second.
        n_choice: How many instances the order is chosen on.
        n_bounds: How many there are for the bounds; None without end.
        n_met: How many of the instances named were left out because the campaign had met them.
    """

    choice: Scenario
    bounds: Scenario
    n_choice: int
    n_bounds: int | None
    n_met: int = 0


def places_of(campaign: Scenario, tested: Scenario, samples: Sequence[SampleRow], n_choice: int) -> InstanceSplit:
    """Split the instances that the campaign has not met.

    Args:
        campaign: Its scenario.
        tested: The scenario on the instances that were asked for; the campaign's own if none were.
        samples: The positions that the campaign has used.
        n_choice: How many instances the order may be chosen on; fewer where there are few.
    """
    stream = tested.stream
    if not isinstance(stream, FiniteStream):
        used = 1 + max((sample.position for sample in samples), default=-1)
        choice, bounds = (on_generated(campaign, first, "instances") for first in (used, used + n_choice))
        return InstanceSplit(choice, bounds, n_choice, None)
    if stream.length is None:
        # Exactly these instances are meant, and further draws of them are as good as any.
        return InstanceSplit(_redrawn(tested, "choice"), _redrawn(tested, "bounds"), n_choice, None)
    met = set(used_in_tuning(samples, campaign, stream))
    if tested is campaign and samples and not met:
        raise ScenarioError(
            "this campaign was run on other instances than its scenario names, and those of the scenario may have "
            "chosen its configurations; name held-out ones with --instances 'test/*.cnf'"
        )
    left = [each for each in instances_of(stream) if each.name not in met]
    if len(left) < 2 * _FEWEST:
        raise ScenarioError(
            f"the campaign has used {len(met):,} of {stream.length:,} instances, which leaves {len(left):,}; expected "
            f"at least {2 * _FEWEST} unused ones, because instances on which a configuration was chosen favour it. "
            "Name held-out instances with --instances 'test/*.cnf'"
        )
    shuffled = np.random.default_rng(_key(tested.seed, "split")).permutation(len(left)).tolist()
    count = min(n_choice, len(left) // 3)
    first, second = ([left[index] for index in chosen] for chosen in (shuffled[:count], shuffled[count:]))
    return InstanceSplit(
        _shuffled(on_some(tested, first)), _shuffled(on_some(tested, second)), len(first), len(second), len(met)
    )


def _shuffled(scenario: Scenario) -> Scenario:
    instances = scenario.wishes.instances.model_copy(update={"sampling": "shuffle"})
    return replace(scenario, wishes=scenario.wishes.model_copy(update={"instances": instances}))


def _redrawn(scenario: Scenario, word: str) -> Scenario:
    return replace(scenario, wishes=scenario.wishes.model_copy(update={"seed": _key(scenario.seed, word)}))


def _key(seed: int, word: str) -> int:
    return int.from_bytes(hashlib.sha256(f"explain {word} {seed}".encode()).digest()[:7], "big")


def on_candidates(scenario: Scenario, candidates: Sequence[Configuration], own: ConfigRow) -> Scenario:
    """Return the scenario with these configurations alone, each run as the campaign ran its own.

    Args:
        scenario: Target and instances.
        candidates: Names and settings.
        own: A configuration of the campaign, with the command it may have of its own.
    """
    words = {name: own.settings.get(name) for name in _OWN}
    command, codes, answer = words["command"], words["exit_codes"], words["answer"]
    made = tuple(
        Configuration(
            each.name,
            each.settings,
            command=tuple(map(str, command)) if isinstance(command, list | tuple) else None,
            answer=answer if isinstance(answer, str) else None,
            exit_codes=tuple(map(int, codes)) if isinstance(codes, list | tuple) else None,
        )
        for each in candidates
    )
    return replace(scenario, candidates=made, known=(), begun_with=None).about_draws()
