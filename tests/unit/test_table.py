import tracemalloc
from typing import Any, Literal

import numpy as np
import pytest

from captime.arrays import FloatArray
from captime.errors import CaptimeError, ScenarioError, TableError
from captime.sources import RuntimeTable
from captime.sources.synthetic import _BLOCK_CELLS, synthetic_table

INF = float("inf")


def table(rows: list[list[float]], timeout: float | None = None) -> RuntimeTable:
    """A table from rows of configurations."""
    seconds = np.array(rows, dtype=np.float64)
    configs, instances = seconds.shape
    return RuntimeTable.build(
        "t", [f"c{n}" for n in range(configs)], [f"i{n}" for n in range(instances)], seconds, timeout=timeout
    )


def test_a_table_keeps_configurations_as_contiguous_rows() -> None:
    """The layout is configuration-major, whatever the layout of what was handed in."""
    by_instance = np.arange(6.0).reshape(3, 2)
    built = RuntimeTable.build("t", ["a", "b"], ["x", "y", "z"], by_instance.T)
    assert built.seconds.shape == (2, 3)
    assert built.seconds.flags.c_contiguous
    assert built.seconds[1].tolist() == [1.0, 3.0, 5.0]
    assert (built.n_configs, built.n_instances, built.n_groups) == (2, 3, 3)


def test_marks_of_another_shape_are_refused() -> None:
    """Broadcast quietly, they would stop runs that were never stopped."""
    with pytest.raises(TableError, match=r"shape \(1, 3\); expected \(2, 3\)"):
        RuntimeTable.build(
            "t",
            ["a", "b"],
            ["x", "y", "z"],
            np.ones((2, 3)),
            timeout=9,
            capped=np.ones((1, 3), dtype=np.bool_),
        )


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_table_is_made_without_many_copies(order: Literal["C", "F"]) -> None:
    """Beside what was handed in, a table that has to be cut takes one copy and little more."""
    seconds = np.full((200, 5000), 2.0, order=order)
    seconds[7, 4000] = 1.0
    configs, instances = [f"c{n}" for n in range(200)], [f"i{n}" for n in range(5000)]
    tracemalloc.start()
    try:
        built = RuntimeTable.build("t", configs, instances, seconds, timeout=1.5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert built.seconds[7, 3999:4002].tolist() == [1.5, 1.0, 1.5]
    assert (seconds.max(), peak < 1.3 * seconds.nbytes) == (2.0, True)


def test_a_flaw_late_in_a_large_table_is_found_at_its_place() -> None:
    """Tables are looked through in pieces; the place counts from the start all the same."""
    seconds = np.ones((300, 1001))
    seconds[299, 1000] = -1.0
    seconds[298, 3] = -2.0
    with pytest.raises(TableError, match=r"'c298' \(row 299\), instance 'i3' \(column 4\): found -2"):
        table(seconds.tolist())


def test_a_table_cannot_be_edited() -> None:
    """Its arrays are read-only, and the array it was made from is not changed."""
    source = np.array([[1.0, 50.0], [2.0, 3.0]])
    built = RuntimeTable.build("t", ["a", "b"], ["x", "y"], source, timeout=10)
    assert source[0, 1] == 50.0
    assert built.seconds[0, 1] == 10.0
    with pytest.raises(ValueError, match="read-only"):
        built.seconds[0, 0] = 7
    with pytest.raises(ValueError, match="read-only"):
        built.groups[0] = 7


@pytest.mark.parametrize("bad", [float("nan"), -1.0, -INF, 1e13])
def test_an_impossible_runtime_is_refused_with_its_place(bad: float) -> None:
    """The message names configuration and instance, and counts them from 1."""
    with pytest.raises(TableError, match=r"'c1' \(row 2\), instance 'i2' \(column 3\)"):
        table([[1, 2, 3], [1, 2, bad], [4, 5, 6]])


@pytest.mark.parametrize(
    ("configs", "instances", "shape", "message"),
    [
        ([], ["x"], (0, 1), "no configuration"),
        (["a"], [], (1, 0), "no instance"),
        (["a", "a"], ["x"], (2, 1), "configuration name 'a' occurs twice, as number 1 and as number 2"),
        (["a"], ["x", "y", "x"], (1, 3), "instance name 'x' occurs twice, as number 1 and as number 3"),
        (["a", " "], ["x"], (2, 1), "configuration 2 is named ' ', which is blank"),
        (["a"], ["x\0"], (1, 1), "NUL"),
        (["a"], ["\ud800"], (1, 1), "Unicode"),
        (["a"], ["x" * 10_001], (1, 1), "longer than"),
        (["a", "b"], ["x"], (1, 2), r"shape \(1, 2\); expected \(2, 1\)"),
        (["a"], ["x"], (1,), r"shape \(1,\)"),
    ],
)
def test_bad_names_and_shapes_are_refused(
    configs: list[str], instances: list[str], shape: tuple[int, ...], message: str
) -> None:
    """Empty, doubled, blank or unprintable names, and names that do not fit the array."""
    with pytest.raises(TableError, match=message):
        RuntimeTable.build("t", configs, instances, np.ones(shape))


def test_the_constructor_checks_what_build_would_repair() -> None:
    """A runtime above the limit, a wrong layout and odd groups cannot get in by the side door."""
    seconds = np.array([[1.0], [9.0]])
    groups = np.zeros(1, dtype=np.int64)
    with pytest.raises(TableError, match="above the timeout"):
        RuntimeTable("t", ("a", "b"), ("x",), seconds, 5.0, groups)
    with pytest.raises(TableError, match="C-contiguous"):
        RuntimeTable("t", ("a", "b"), ("x", "y"), np.ones((2, 2)).T[:, ::-1], INF, np.arange(2))
    with pytest.raises(TableError, match="above 0"):
        RuntimeTable("t", ("a", "b"), ("x",), seconds, float("nan"), groups)
    for wrong in ([1], [-1], [0, 0]):
        with pytest.raises(TableError, match="groups"):
            RuntimeTable("t", ("a", "b"), ("x",), seconds, INF, np.array(wrong))


def test_a_shared_largest_runtime_is_taken_as_the_timeout() -> None:
    """Undeclared: when several runs share the largest time, and a note says so and how to overrule it."""
    built = table([[1, 900], [900, INF]])
    assert built.limit == 900
    assert "timeout=" in built.notes[0]
    assert (built.censored, built.never_finished) == (0.5, 0.25)


def test_a_single_largest_runtime_is_a_runtime() -> None:
    """Undeclared: without a tie there is no timeout, and zeros alone do not make one."""
    assert table([[1, 900], [2, 3]]).limit == INF
    assert table([[0, 0], [INF, 0]]).limit == INF
    assert table([[1, 900], [2, 3]]).censored == 0.0


@pytest.mark.parametrize(
    ("timeout", "expected"), [(900.0, [1, 900, 900]), (100.0, [1, 100, 100]), (INF, [1, 900, 950])]
)
def test_a_declared_timeout_wins_over_a_guess(timeout: float, expected: list[float]) -> None:
    """Runs at or above it are stored as exactly the timeout; infinity means that there is none."""
    built = table([[1, 900, 950]], timeout=timeout)
    assert built.limit == timeout
    assert built.seconds[0].tolist() == expected
    assert built.notes == ()


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan")])
def test_a_timeout_that_is_none_is_refused(timeout: float) -> None:
    """The user wrote it, so it is the user's error."""
    with pytest.raises(ScenarioError, match="timeout"):
        table([[1.0]], timeout=timeout)


def capped_table(times: list[float], *, timeout: float | None, recorded: float | None = None) -> RuntimeTable:
    """One finished run of 3 s and some that timed out."""
    seconds = np.array([3.0, *times])[:, None]
    mask = np.array([False, *(True for _ in times)])[:, None]
    names = [f"c{n}" for n in range(len(times) + 1)]
    return RuntimeTable.build("t", names, ["x"], seconds, timeout=timeout, capped=mask, recorded_limit=recorded)


@pytest.mark.parametrize(
    ("times", "timeout", "recorded", "limit"),
    [
        ([10.5, 10.1], None, None, 10.1),
        ([10.5, 10.1], 10.0, None, 10.0),
        ([INF, INF], 10.0, None, 10.0),
        ([INF, 10.5], 10.0, None, 10.0),
        ([100.0, INF], None, 10.0, 10.0),
        ([100.0, INF], 2.0, 10.0, 2.0),
    ],
)
def test_runs_that_timed_out_bound_what_is_known(
    times: list[float], timeout: float | None, recorded: float | None, limit: float
) -> None:
    """The limit never exceeds how long the stopped runs were seen to run, or what the file declares."""
    built = capped_table(times, timeout=timeout, recorded=recorded)
    assert built.limit == limit
    assert built.seconds[:, 0].tolist() == [min(3.0, limit), limit, limit]
    assert bool(built.notes) == (timeout is None and recorded is None)


@pytest.mark.parametrize(
    ("times", "timeout", "recorded", "message"),
    [
        ([10.0], 11.0, None, "nothing is known beyond"),
        ([10.0], INF, None, "nothing is known beyond"),
        (
            [INF],
            None,
            None,
            r"'c1' \(row 2\), instance 'x' \(column 1\): the run timed out, but nothing says",
        ),
        ([INF], INF, None, "nothing says after how long"),
        ([0.0], None, None, "after 0 s"),
        ([INF], 11.0, 10.0, "own timeout is 10 s"),
        ([INF], INF, 10.0, "own timeout is 10 s"),
        ([INF], None, -1.0, "own timeout is -1"),
    ],
)
def test_a_timeout_beyond_the_records_is_refused(
    times: list[float], timeout: float | None, recorded: float | None, message: str
) -> None:
    """What was observed cannot be extended."""
    with pytest.raises(TableError, match=message):
        capped_table(times, timeout=timeout, recorded=recorded)


def test_a_recorded_timeout_nobody_reached_may_be_overruled() -> None:
    """If every run ended earlier, a longer timeout claims nothing that was not seen."""
    built = RuntimeTable.build("t", ["a"], ["x"], np.array([[3.0]]), timeout=99, recorded_limit=10)
    assert built.limit == 99
    assert RuntimeTable.build("t", ["a"], ["x"], np.array([[3.0]]), recorded_limit=INF).limit == INF


def test_the_summary_says_what_matters() -> None:
    """Size, timeout, shares and notes, one line each."""
    lines = table([[1, 900], [900, INF]]).summary()
    assert lines[0] == "t: 2 configurations, 2 instances"
    assert lines[1] == "timeout 900 s; 50.0% of the runs reached it, 25.0% never finish"
    assert lines[2].startswith("note: timeout 900 s")
    repeated = RuntimeTable.build(
        "t",
        ["a"],
        ["x [repetition 1]", "x [repetition 2]"],
        np.array([[1.0, 2.0]]),
        groups=np.array([0, 0]),
    )
    assert repeated.summary()[0] == "t: 1 configurations, 2 instances (1 distinct, repeated)"
    assert repeated.summary()[1].startswith("no timeout")


def one_piece(seed: int, n_configs: int, n_instances: int) -> FloatArray:
    """The synthetic formula without blocks."""
    rng = np.random.default_rng(seed)
    speed = rng.permutation(1.0 + 0.25 * np.arange(n_configs))
    hard = 1.5 * rng.standard_normal(n_instances)
    noise = rng.standard_normal((n_configs, n_instances)) * 0.5
    seconds: FloatArray = np.exp(noise + speed[:, None] + hard)
    return seconds


def test_synthetic_tables_follow_the_formula_in_every_block() -> None:
    """More than one block gives the numbers of a single one, cut at the limit."""
    n_configs, n_instances = 2 * _BLOCK_CELLS // 1000 + 7, 1000
    built = synthetic_table(3, n_configs, n_instances, limit=60, spread=0.25, first_log_speed=1.0)
    assert np.array_equal(built.seconds, np.minimum(one_piece(3, n_configs, n_instances), 60))
    assert built.limit == 60


def test_synthetic_runtimes_beyond_all_bounds_are_cut_or_refused() -> None:
    """A limit cuts what would overflow; without one it is absurd, not a run that never finishes."""
    assert (synthetic_table(1, 2, 3, limit=60, first_log_speed=5000.0).seconds == 60).all()
    with pytest.raises(TableError, match="is the unit right"):
        synthetic_table(1, 2, 3, limit=INF, first_log_speed=5000.0)


def test_synthetic_tables_depend_on_the_seed_alone() -> None:
    """Same seed, same table; another seed, another one; the name says which."""
    first = synthetic_table(1, 4, 6, limit=INF)
    assert np.array_equal(first.seconds, synthetic_table(1, 4, 6, limit=INF).seconds)
    assert not np.array_equal(first.seconds, synthetic_table(2, 4, 6, limit=INF).seconds)
    assert first.name == "synthetic-4x6-seed1"
    assert synthetic_table(1, 1, 1, limit=INF, name="mine").name == "mine"


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_configs": 0},
        {"n_instances": 0},
        {"n_instances": 10**12},
        {"limit": 0.0},
        {"noise": -1.0},
        {"hardness": INF},
        {"spread": float("nan")},
        {"first_log_speed": INF},
        {"seed": -1},
    ],
)
def test_synthetic_tables_refuse_nonsense(wrong: dict[str, float]) -> None:
    """Empty, gigantic, negative or infinite arguments are named in the message."""
    arguments: dict[str, Any] = {"seed": 1, "n_configs": 2, "n_instances": 2, "limit": 1.0, **wrong}
    with pytest.raises(CaptimeError, match="synthetic table"):
        synthetic_table(**arguments)


def test_a_table_needs_a_name() -> None:
    """Reports and messages begin with it."""
    with pytest.raises(TableError, match="is blank"):
        RuntimeTable.build("", ["a"], ["x"], np.ones((1, 1)))
