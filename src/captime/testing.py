"""The conformance suites: what captime asks of every utility, procedure and space format, for authors of plugins.

Each suite is a table of checks by name, and a check is a function without arguments that raises `ConformanceError` if
the contract is broken. They need no test framework; with pytest:

    suite = utility_checks("weibull(60, 2)")

    @pytest.mark.parametrize("check", suite.values(), ids=suite)
    def test_it_conforms(check):
        check()

captime runs the same suites over its own registers.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from captime.certificate import no_orders
from captime.errors import CaptimeError, UtilityError
from captime.procedures import Problem, Procedure
from captime.sources import RuntimeTable
from captime.sources.replay import Replay
from captime.sources.window import stream_of
from captime.spaces import Space
from captime.spaces.formats import Format
from captime.utilities import Utility, parse_utility

Checks = Mapping[str, Callable[[], None]]
"""By name, what is checked."""
_N_CONFIGS, _N_INSTANCES, _LIMIT, _EPSILON = 3, 250, 100.0, 0.45
_MOST_LAPS = 20_000


class ConformanceError(AssertionError):
    """A member of a family breaks the contract of the family."""


def _require(condition: object, words: str) -> None:
    if not condition:
        raise ConformanceError(words)


# ------------------------------------------------------------------ utilities


def utility_checks(text: str) -> Checks:
    """Return the suite of a utility, described as on the command line: `weibull(60, 2)`."""
    checks = (
        _starts_at_one_and_falls_to_zero,
        _never_rises,
        _is_right_continuous,
        _inverse_is_the_first_moment,
        _arrays_are_valued_element_by_element,
        _arguments_are_left_alone,
        _text_reads_back,
        _bad_numbers_are_refused,
    )
    return {each.__name__.strip("_").replace("_", " "): partial(_with_utility, each, text) for each in checks}


def _with_utility(check: Callable[[Utility], None], text: str) -> None:
    check(parse_utility(text))


def _moments(utility: Utility) -> list[float]:
    """Moments over many orders of magnitude, and close to wherever the formula changes."""
    last = utility.zero_at if math.isfinite(utility.zero_at) else 1e6
    near = [place * factor for place in (*utility.breakpoints, last) for factor in (1.0 - 1e-9, 1.0, 1.0 + 1e-9)]
    spread = np.concatenate(([0.0], np.geomspace(last * 1e-9, last * 1.1, 200))).tolist()
    return sorted({*spread, *(moment for moment in near if math.isfinite(moment) and moment >= 0)})


def _starts_at_one_and_falls_to_zero(utility: Utility) -> None:
    _require(float(utility(np.zeros(1))[0]) == 1.0, "u(0) is not 1")
    _require(float(utility(np.array([math.inf]))[0]) == 0.0, "u(infinity) is not 0")
    if math.isfinite(utility.zero_at):
        _require(float(utility(np.array([utility.zero_at]))[0]) == 0.0, "u(zero_at) is not 0")


def _never_rises(utility: Utility) -> None:
    worth = utility(np.array(_moments(utility)))
    _require(((worth >= 0.0) & (worth <= 1.0)).all(), "a worth lies outside [0, 1]")
    _require((np.diff(worth) <= 1e-12).all(), "u rises somewhere; later is never better")


def _is_right_continuous(utility: Utility) -> None:
    for place in utility.breakpoints:
        at, after = utility(np.array([place, np.nextafter(place, math.inf)])).tolist()
        _require(abs(at - after) <= 1e-6, f"the value at the jump {place} is not the lower one")


def _inverse_is_the_first_moment(utility: Utility) -> None:
    wanted = np.array([0.9, 0.5, 0.1])
    for value, moment in zip(wanted.tolist(), utility.inverse(wanted).tolist(), strict=True):
        _require(
            float(utility(np.array([moment]))[0]) <= value + 1e-6, f"at inverse({value}) the worth is still above it"
        )
        before = moment * (1.0 - 1e-6)
        _require(
            moment == 0.0 or float(utility(np.array([before]))[0]) >= value - 1e-4,
            f"the worth has fallen below {value} before inverse({value})",
        )


def _arrays_are_valued_element_by_element(utility: Utility) -> None:
    moments = np.array(_moments(utility)[:7])
    singly = [float(utility(np.array([each]))[0]) for each in moments.tolist()]
    _require(np.allclose(utility(moments), singly, rtol=1e-14, atol=0.0), "an array is valued unlike its elements")
    _require(utility(moments.reshape(1, -1, 1)).shape == (1, len(moments), 1), "the shape of the times is not kept")
    _require(utility(np.array([])).shape == (0,), "an empty array is not accepted")


def _arguments_are_left_alone(utility: Utility) -> None:
    moments, values = np.array([0.0, 1.0, math.inf]), np.array([0.0, 0.5, 1.0])
    utility(moments)
    utility.inverse(values)
    _require(moments.tolist() == [0.0, 1.0, math.inf], "the array of times was changed")
    _require(values.tolist() == [0.0, 0.5, 1.0], "the array of values was changed")


def _text_reads_back(utility: Utility) -> None:
    again = parse_utility(str(utility))
    _require(again == utility, f"the text {str(utility)!r} reads back as another utility")


def _bad_numbers_are_refused(utility: Utility) -> None:
    for bad in (-1.0, math.nan):
        for name, function in (("the utility", utility), ("its inverse", utility.inverse)):
            try:
                function(np.array([0.0, bad]))
            except UtilityError:
                continue
            raise ConformanceError(f"{name} accepts {bad}; expected a UtilityError")


# ------------------------------------------------------------------ procedures


def procedure_checks(make: Callable[[Problem], Procedure]) -> Checks:
    """Return the suite of a procedure, given what makes it: `lambda problem: MyProcedure(problem, option=3)`."""
    checks = (
        _claims_nothing_before_it_knows,
        _asking_changes_no_statement,
        _being_told_nothing_new_changes_nothing,
        _orders_only_grow,
        _certificates_are_intervals,
        _ends_with_a_reason,
        _repeats_itself,
    )
    return {each.__name__.strip("_").replace("_", " "): partial(each, make) for each in checks}


class _Bench:
    """A procedure and a table that answers it."""

    def __init__(self, make: Callable[[Problem], Procedure]) -> None:
        utility = parse_utility("log-laplace(10, 1)")
        rng = np.random.default_rng(5)
        scale = np.array([[2.0], [8.0], [32.0]])
        seconds = np.minimum(scale * rng.lognormal(0.0, 1.5, (_N_CONFIGS, _N_INSTANCES)), _LIMIT)
        names, instances = ["quick", "middling", "slow"], [f"i{number}" for number in range(_N_INSTANCES)]
        table = RuntimeTable.build("conformance", names, instances, seconds, recorded_limit=_LIMIT)
        self.procedure = make(
            Problem(
                n_configs=_N_CONFIGS,
                utility=utility,
                delta=0.2,
                epsilon=_EPSILON,
                captime_limit=_LIMIT,
                n_instances=_N_INSTANCES,
            )
        )
        stream = stream_of("shuffle", table.groups, seed=0)
        self.replay = Replay(table, stream, self.procedure.plan, utility, pays=self.procedure.pays)

    def state(self) -> tuple[object, ...]:
        """Return what one may rely on."""
        each = self.procedure
        return each.certificate(), each.candidates.tolist(), each.rounds, each.finished()

    def lap(self) -> bool:
        """Ask, answer, tell; False at the end."""
        if self.procedure.finished() is not None:
            return False
        orders = self.procedure.ask(slots=1)
        _require(len(orders) > 0, "it is not finished, nothing is under way, and it asks for nothing")
        self.procedure.tell(self.replay.tally, self.replay.answer(orders))
        return True


def _claims_nothing_before_it_knows(make: Callable[[Problem], Procedure]) -> None:
    held = _Bench(make).procedure.certificate()
    _require(held.epsilon == 1.0, f"epsilon is {held.epsilon} before the first run; expected 1")
    _require((held.utility_low, held.utility_high) == (0.0, 1.0), "an interval is claimed before the first run")


def _asking_changes_no_statement(make: Callable[[Problem], Procedure]) -> None:
    bench = _Bench(make)
    for _ in range(3):
        bench.lap()
    before = bench.state()
    for slots in (0, 1, 50):
        bench.procedure.ask(slots)
    _require(bench.state() == before, "asking has changed what it states")


def _being_told_nothing_new_changes_nothing(make: Callable[[Problem], Procedure]) -> None:
    bench = _Bench(make)
    for _ in range(3):
        bench.lap()
    before = bench.state()
    bench.procedure.tell(bench.replay.tally, bench.replay.answer(no_orders()))
    _require(bench.state() == before, "an empty order has changed what it states")
    bench.procedure.tell(bench.replay.tally, np.arange(_N_CONFIGS))
    _require(bench.state() == before, "being told the same again has changed what it states")


def _orders_only_grow(make: Callable[[Problem], Procedure]) -> None:
    bench = _Bench(make)
    n = np.zeros(_N_CONFIGS, dtype=np.int64)
    for _ in range(_MOST_LAPS):
        if bench.procedure.finished() is not None:
            return
        candidates = bench.procedure.candidates.copy()
        orders = bench.procedure.ask(slots=1)
        _require(len(np.unique(orders.config)) == len(orders), "a configuration stands twice in one order")
        _require(candidates[orders.config].all(), "a configuration was ordered that is no candidate any more")
        _require((orders.n >= n[orders.config]).all(), "an order asks for fewer positions than an earlier one")
        _require(orders.n.max(initial=0) <= _N_INSTANCES, "an order goes beyond the last instance")
        captimes = bench.procedure.plan.captime(orders.level, orders.n - 1)
        _require(captimes.max(initial=0.0) <= _LIMIT, "a captime exceeds the limit of the problem")
        n[orders.config] = orders.n
        bench.procedure.tell(bench.replay.tally, bench.replay.answer(orders))
    raise ConformanceError(f"it is not finished after {_MOST_LAPS:,} decisions on {_N_INSTANCES} instances")


def _certificates_are_intervals(make: Callable[[Problem], Procedure]) -> None:
    bench = _Bench(make)
    while bench.lap():
        held = bench.procedure.certificate()
        _require(0.0 <= held.epsilon <= 1.0, f"epsilon is {held.epsilon}, outside [0, 1]")
        _require(0.0 <= held.utility_low <= held.utility_high <= 1.0, "the interval of the utility is none")
        _require(0 <= held.config < _N_CONFIGS, "the recommended configuration does not exist")
        _require(bench.procedure.candidates.any(), "no candidate is left")


def _ends_with_a_reason(make: Callable[[Problem], Procedure]) -> None:
    bench = _Bench(make)
    while bench.lap():
        pass
    reason = bench.procedure.finished()
    _require(reason in ("epsilon", "single", "instances", "configurations"), f"it ended with the reason {reason!r}")
    held = bench.procedure.certificate()
    _require(
        reason != "epsilon" or held.epsilon <= _EPSILON, "it says epsilon, and has not reached the epsilon asked for"
    )
    _require(len(bench.procedure.ask(slots=1)) == 0, "it is finished, and asks for more")


def _repeats_itself(make: Callable[[Problem], Procedure]) -> None:
    first, second = _Bench(make), _Bench(make)
    while first.lap():
        second.lap()
        _require(first.state() == second.state(), "the same question got two answers: there is hidden randomness")


# ------------------------------------------------------------------ space formats


def space_format_checks(form: Format, text: str, file: str) -> Checks:
    """Return the suite of a space format.

    Args:
        form: The format.
        text: What a file of it holds: a space with at least two parameters.
        file: The name of such a file.
    """
    checks = (_a_file_becomes_a_space, _what_is_written_reads_back, _nonsense_is_refused, _it_knows_its_files)
    return {each.__name__.strip("_").replace("_", " "): partial(each, form, text, file) for each in checks}


def _read(form: Format, text: str, file: str) -> Space:
    if form.read is None:
        raise ConformanceError("the format has no reader")
    return form.read(text, file)


def _a_file_becomes_a_space(form: Format, text: str, file: str) -> None:
    space = _read(form, text, file)
    _require(isinstance(space, Space), f"the reader gives {type(space).__name__}; expected a Space")
    space.check(space.default)
    for number in range(20):
        space.check(space.draw(1, number))


def _what_is_written_reads_back(form: Format, text: str, file: str) -> None:
    if form.write is None:
        return
    space = _read(form, text, file)
    again = _read(form, form.write(space), file)
    _require(again.names == space.names, "parameters change when a space is written and read again")
    _require(again.default == space.default, "the default changes when a space is written and read again")
    for number in range(20):
        again.check(space.draw(1, number))


def _nonsense_is_refused(form: Format, text: str, file: str) -> None:
    for nonsense in ("", "\x00\x01", text + "\n%%% this is no parameter %%%\n"):
        try:
            _read(form, nonsense, file)
        except CaptimeError:
            continue
        raise ConformanceError(f"{nonsense[-40:]!r} was read as a space; expected a ScenarioError")


def _it_knows_its_files(form: Format, text: str, file: str) -> None:  # noqa: ARG001 (the text does not matter here)
    _require(form.about and "\n" not in form.about, "the format says nothing about itself in one line")
    _require(file.lower().endswith(tuple(form.endings)), f"{file} does not end in any of {form.endings}")
