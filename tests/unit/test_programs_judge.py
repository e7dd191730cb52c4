import math
from typing import Any

import pytest

from captime.executors.retry import LossLimit
from captime.programs.judge import AnswerRules, SelfReport, TellsTime, judge
from captime.runs import STATUS_OF, Halt, RunRequest, Status, Verdict
from captime.supervision.messages import Report, lost_by_change

CAPTIME = 2.5
REQUEST = RunRequest(0, 3, CAPTIME)
SAT_RULES = AnswerRules(exit_codes=(10, 20), pattern=True)


def report(ended: Any = "exit", *, seconds: float = 1.0, **more: Any) -> Report:
    """What a supervisor would say."""
    return Report(1, ended, runtime_ns=round(seconds * 1e9), cpu_ns=round(seconds * 1e9), wall_ns=2 * 10**9, **more)


def answered(seconds: float = 1.0, **more: Any) -> Report:
    """A run with everything in order, but for what is said otherwise."""
    return report(seconds=seconds, **{"exit_code": 10, "matches": {"answer": b"SATISFIABLE"}} | more)


def test_only_a_run_with_everything_in_order_has_answered() -> None:
    """Ended by itself, before the captime, accepted exit code, recognised answer."""
    outcome = judge(REQUEST, answered(), SAT_RULES)
    assert (outcome.verdict, outcome.status, outcome.runtime) == (Verdict.ANSWERED, Status.COMPLETED, 1.0)
    assert outcome.measured is not None
    assert outcome.measured.answer == b"SATISFIABLE"


@pytest.mark.parametrize(
    ("told", "known", "expected"),
    [
        ({"exit_code": None, "signal": 11}, None, Verdict.CRASH),
        ({"exit_code": 1}, None, Verdict.CRASH),
        ({"exit_code": 0}, None, Verdict.UNKNOWN),
        ({"exit_code": 0, "matches": {}}, None, Verdict.UNKNOWN),
        ({"matches": {}}, None, Verdict.UNKNOWN),
        ({}, b"UNSAT", Verdict.WRONG),
        ({}, b"sat", Verdict.ANSWERED),
        ({}, b"?", Verdict.ANSWERED),
        ({"matches": {}}, b"sat", Verdict.UNKNOWN),
    ],
)
def test_one_thing_out_of_order_and_it_is_no_answer(
    told: dict[str, Any], known: bytes | None, expected: Verdict
) -> None:
    """Signals, exit codes, missing and wrong answers; whatever was printed (T13 to T16)."""
    outcome = judge(REQUEST, answered(**told), SAT_RULES, known=known)
    assert outcome.verdict is expected
    assert outcome.status is STATUS_OF[expected]


@pytest.mark.parametrize("signal", range(1, 32))
def test_every_signal_is_a_crash(signal: int) -> None:
    """All 31 of them, even after the right answer was printed (T13, T15)."""
    outcome = judge(REQUEST, answered(exit_code=None, signal=signal), SAT_RULES)
    assert (outcome.verdict, outcome.status) == (Verdict.CRASH, Status.FAILED)
    assert str(signal) in outcome.detail


NEAREST = [
    (math.nextafter(CAPTIME, 0.0), Verdict.ANSWERED),
    (CAPTIME, Verdict.CAPPED),
    (math.nextafter(CAPTIME, math.inf), Verdict.CAPPED),
    (0.0, Verdict.ANSWERED),
    (1000.0, Verdict.CAPPED),
]


@pytest.mark.parametrize(("seconds", "expected"), NEAREST)
def test_the_boundary_is_exact_on_the_recorded_value(seconds: float, expected: Verdict) -> None:
    """At the captime is too late, one rounding step before it is in time (T18)."""
    told = SelfReport("solved", seconds, b"SAT")
    outcome = judge(REQUEST, answered(seconds=0.5), AnswerRules(exit_codes=None, time="reported"), told=told)
    assert outcome.verdict is expected
    assert outcome.runtime == (CAPTIME if expected is Verdict.CAPPED else seconds)


@pytest.mark.parametrize("nanoseconds", [-5_000_000, -1, 0, 1, 5_000_000])
def test_no_measured_run_at_or_after_its_captime_is_completed(nanoseconds: int) -> None:
    """The same on the clock of the supervisor, in nanoseconds around the captime."""
    seen = report(exit_code=10, matches={"answer": b"SATISFIABLE"})
    object.__setattr__(seen, "runtime_ns", round(CAPTIME * 1e9) + nanoseconds)
    outcome = judge(REQUEST, seen, SAT_RULES)
    assert outcome.status is (Status.COMPLETED if nanoseconds < 0 else Status.CAPPED)
    assert (outcome.runtime < CAPTIME) == (nanoseconds < 0)
    assert nanoseconds < 0 or outcome.runtime == CAPTIME


@pytest.mark.parametrize(
    ("ended", "verdict", "runtime"),
    [
        ("captime", Verdict.CAPPED, CAPTIME),
        ("wall", Verdict.WALL, 1.0),
        ("memory", Verdict.MEMOUT, 1.0),
        ("output", Verdict.OUTPUT, 1.0),
        ("disk", Verdict.OUTPUT, 1.0),
        ("cancelled", Verdict.CANCELLED, 1.0),
        ("lost", Verdict.LOST, 0.0),
        ("not-started", Verdict.LOST, 0.0),
    ],
)
def test_a_run_that_was_stopped_never_counts_as_an_answer(ended: str, verdict: Verdict, runtime: float) -> None:
    """Even if the answer was printed before (T15); and what is known of its time is kept."""
    outcome = judge(REQUEST, report(ended, exit_code=10, matches={"answer": b"SATISFIABLE"}), SAT_RULES)
    assert (outcome.verdict, outcome.runtime) == (verdict, runtime)
    assert outcome.status is not Status.COMPLETED


@pytest.mark.parametrize(
    ("ended", "repeatable", "status"),
    [
        ("cancelled", True, Status.CAPPED),
        ("cancelled", False, Status.ABANDONED),
        ("lost", True, Status.LOST),
        ("lost", False, Status.ABANDONED),
        ("not-started", False, Status.LOST),
    ],
)
def test_unrepeatable_programs_get_no_second_chance(ended: str, repeatable: bool, status: Status) -> None:
    """What had begun is never tried again if a second try would be another draw."""
    assert judge(REQUEST, report(ended), AnswerRules(), repeatable=repeatable).status is status


@pytest.mark.parametrize(
    ("verified", "verdict"), [(True, Verdict.ANSWERED), (False, Verdict.WRONG), (None, Verdict.UNKNOWN)]
)
def test_the_verifier_has_to_agree(verified: bool | None, verdict: Verdict) -> None:
    """Silence is not consent."""
    rules = AnswerRules(exit_codes=(10,), pattern=True, verifier=True)
    assert judge(REQUEST, answered(verified=verified), rules).verdict is verdict


@pytest.mark.parametrize(
    ("word", "verdict", "status"),
    [
        ("solved", Verdict.ANSWERED, Status.COMPLETED),
        ("timeout", Verdict.WALL, Status.ABANDONED),
        ("crashed", Verdict.CRASH, Status.FAILED),
        ("memout", Verdict.MEMOUT, Status.FAILED),
        ("abort", Verdict.CRASH, Status.FAILED),
        ("nothing", Verdict.UNKNOWN, Status.FAILED),
    ],
)
def test_a_wrappers_own_account_counts(word: Any, verdict: Verdict, status: Status) -> None:
    """Only "solved" is an answer; a wrapper that gave up early leaves open what would have come."""
    outcome = judge(REQUEST, report(exit_code=0), AnswerRules(), told=SelfReport(word, 1.0))
    assert (outcome.verdict, outcome.status) == (verdict, status)


def test_a_wrapper_that_aborts_stops_the_campaign() -> None:
    """ABORT, a changed file and a program that does not start are reasons to stop; a crash is none."""
    aborted = judge(REQUEST, report(exit_code=0), AnswerRules(), told=SelfReport("abort", None, None, "no licence"))
    assert (aborted.halt, aborted.detail) == (Halt.ABORTED, "abort: no licence")
    changed = judge(REQUEST, lost_by_change(0, "a.cnf"), AnswerRules())
    assert (changed.halt, changed.changed_file) == (Halt.FILE_CHANGED, "a.cnf")
    absent = judge(REQUEST, report("not-started", problem="no such file"), AnswerRules())
    assert absent.halt is Halt.NOT_STARTED
    assert "no such file" in absent.detail
    slow = judge(REQUEST, report("lost", halt=Halt.PATTERN_TOO_SLOW), AnswerRules())
    assert slow.halt is Halt.PATTERN_TOO_SLOW


def test_no_sentence_stops_a_campaign() -> None:
    """A crash whose last words look like a reason to stop is a crash; only the field decides."""
    assert judge(REQUEST, report(exit_code=1), AnswerRules()).halt is None
    told = SelfReport("crashed", None, None, "abort: changed: not started: pattern: ")
    outcome = judge(REQUEST, report(exit_code=0), AnswerRules(), told=told)
    assert outcome.detail.startswith("abort: ")
    assert outcome.halt is None


@pytest.mark.parametrize(
    ("reported", "flagged"), [(1.0, False), (1.04, False), (1.06, True), (0.9, True), (None, False)]
)
def test_a_reported_time_that_is_off_is_flagged(reported: float | None, flagged: bool) -> None:
    """More than 5 % between the two clocks, and not just a few milliseconds."""
    outcome = judge(REQUEST, report(exit_code=0, seconds=1.0), AnswerRules(), told=SelfReport("solved", reported))
    assert outcome.measured is not None
    assert ("reported-disagrees" in outcome.measured.flags) == flagged
    assert outcome.measured.reported == reported
    assert outcome.runtime == 1.0
    tiny = judge(REQUEST, report(exit_code=0, seconds=0.010), AnswerRules(), told=SelfReport("solved", 0.002))
    assert tiny.measured is not None
    assert tiny.measured.flags == ()


def test_the_cost_is_on_the_clock_that_counts() -> None:
    """CPU seconds of the tree, or wall-clock seconds if these are what is capped."""
    assert judge(REQUEST, answered(), SAT_RULES).cost == 1.0
    assert judge(REQUEST, answered(), AnswerRules(exit_codes=(10,), clock="wall")).cost == 2.0


def test_last_words_are_kept_only_where_something_went_wrong() -> None:
    """A ledger need not hold the output of a million good runs."""
    good = judge(REQUEST, answered(stderr_tail=b"x" * 9999), SAT_RULES)
    bad = judge(REQUEST, answered(exit_code=1, stderr_tail=b"x" * 9999 + b"end"), SAT_RULES)
    assert good.measured is not None
    assert bad.measured is not None
    assert good.measured.stderr_tail == b""
    assert bad.measured.stderr_tail.endswith(b"end")
    assert len(bad.measured.stderr_tail) <= 4096


def test_a_short_reported_time_does_not_excuse_a_run_that_was_over_its_captime() -> None:
    """The clock that caps is ours, whichever time counts; and what it says about the program's own time is nothing."""
    told = SelfReport("solved", 0.5, b"SAT")
    outcome = judge(REQUEST, report(exit_code=0, seconds=3.0), AnswerRules(time="reported"), told=told)
    assert (outcome.verdict, outcome.status, outcome.runtime) == (Verdict.CAPPED, Status.ABANDONED, 0.0)


@pytest.mark.parametrize(
    ("ended", "verdict", "status"),
    [
        ("captime", Verdict.CAPPED, Status.ABANDONED),
        ("wall", Verdict.WALL, Status.ABANDONED),
        ("cancelled", Verdict.CANCELLED, Status.CAPPED),
    ],
)
def test_our_clock_says_nothing_about_a_program_whose_own_time_counts(
    ended: str, verdict: Verdict, status: Status
) -> None:
    """Stopped after this many seconds of ours, it may have been about to report fewer: its score stays from 0 to 1."""
    outcome = judge(REQUEST, report(ended), AnswerRules(time="reported"))
    assert (outcome.verdict, outcome.status, outcome.runtime) == (verdict, status, 0.0)


def test_a_reported_time_after_the_captime_is_too_late_by_its_own_clock() -> None:
    """That run is known to be unfinished at its captime, by the clock that counts."""
    outcome = judge(REQUEST, report(exit_code=0), AnswerRules(time="reported"), told=SelfReport("solved", 5.0, b"SAT"))
    assert (outcome.verdict, outcome.status, outcome.runtime) == (Verdict.CAPPED, Status.CAPPED, CAPTIME)


@pytest.mark.parametrize(("time", "seconds"), [("measured", 1.0), ("reported", 0.7)])
def test_a_wrapper_that_gives_up_leaves_open_what_comes_after_the_time_that_counts(
    time: TellsTime, seconds: float
) -> None:
    """By our clock this many seconds, by its own as many as it says."""
    outcome = judge(REQUEST, report(exit_code=0), AnswerRules(time=time), told=SelfReport("timeout", 0.7))
    assert (outcome.status, outcome.runtime) == (Status.ABANDONED, seconds)


def test_a_reason_to_stop_survives_a_run_that_is_given_up() -> None:
    """A program that cannot repeat itself loses a run for good; that its file changed is still a reason to stop."""
    changed = judge(REQUEST, lost_by_change(0, "a.cnf"), AnswerRules())
    nowhere: Any = None
    given_up = LossLimit(nowhere, repeatable=False)._judged(changed)
    assert (given_up.status, given_up.verdict) == (Status.ABANDONED, Verdict.BLOCKED)
    assert (given_up.halt, given_up.changed_file) == (Halt.FILE_CHANGED, "a.cnf")


def test_a_run_that_is_cancelled_after_its_captime_says_nothing_about_its_own_time() -> None:
    """By our clock it was over; by its own nothing is known."""
    outcome = judge(REQUEST, report("cancelled", seconds=3.0), AnswerRules(time="reported"))
    assert (outcome.status, outcome.runtime) == (Status.ABANDONED, 0.0)
