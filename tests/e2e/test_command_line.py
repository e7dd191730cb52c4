"""The whole tool, as a user meets it: real processes, real files, exit codes."""

import csv
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CAPTIME = (sys.executable, "-m", "captime")
REQUIRED = {
    "certificate",
    "procedure",
    "bound",
    "utility",
    "cpu_seconds",
    "runs",
    "rounds",
    "candidates_left",
    "captimes",
    "stopped",
    "seed",
    "population",
}
STATEMENT = {"config", "config_name", "epsilon", "delta", "gamma", "utility_low", "utility_high"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four configurations of clearly different speed on 600 instances, as a wide CSV."""
    rng = np.random.default_rng(11)
    hardness = rng.normal(1.0, 1.0, 600)
    path = tmp_path / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["configuration", *(f"i{j}" for j in range(600))])
        for k in range(4):
            seconds = np.exp(hardness + 1.2 * k + rng.normal(0, 0.4, 600))
            writer.writerow([f"c{k}", *(f"{s:.4f}" for s in seconds)])
    return path


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """One command to its end."""
    return subprocess.run([*CAPTIME, *words], capture_output=True, text=True, check=False, cwd=cwd, timeout=6000)


@pytest.mark.parametrize("procedure", ["race", "up", "oup", "fixed-captimes", "naive", "oracle", "verification"])
def test_json_has_every_promised_key(table: Path, procedure: str) -> None:
    """One object on stdout, the same keys for every procedure, and a goal that was reached ends with 0."""
    done = run(
        "simulate", str(table), "--procedure", procedure, "--utility", "uniform(60)", "--epsilon", "0.3", "--json"
    )
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert set(found) >= REQUIRED
    assert set(found["certificate"]) >= STATEMENT
    assert found["certificate"]["config_name"] == "c0"
    assert found["stopped"] in ("epsilon", "single")
    assert found["procedure"] == procedure
    assert found["utility"] == "uniform(60)"
    assert 0 <= found["certificate"]["epsilon"] <= 0.3


def test_running_out_of_instances_ends_with_three_and_a_certificate(table: Path) -> None:
    """UP cannot certify 0.01 on 600 instances; what it holds is printed all the same."""
    done = run("simulate", str(table), "--procedure", "up", "--utility", "uniform(60)", "--epsilon", "0.01")
    assert done.returncode == 3
    assert "With probability at least 90 %" in done.stdout
    assert "the recorded data are used up" in done.stdout


def test_a_spent_budget_ends_with_three(table: Path) -> None:
    """The round during which it runs out is judged, and no other begins."""
    done = run("simulate", str(table), "--procedure", "up", "--utility", "uniform(60)", "--budget", "1h", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["stopped"]) == (3, "budget")
    # That round may have raised captimes and repeated cut runs; a property test has the exact limit.
    assert 3600 <= found["cpu_seconds"] < 2 * 3600


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--utility", "log-laplace(60"), "log-laplace"),
        (("--utility", "loglaplase(60, 1)"), "did you mean"),
        (("--utility", "uniform(60)", "--procedure", "upp"), "there is no procedure 'upp'"),
        (("--utility", "uniform(60)", "--procedure", "up", "--option", "variant"), "NAME=VALUE"),
        (("--utility", "uniform(60)", "--procedure", "up", "--option", "flavour=paper"), "it takes variant"),
        (("--utility", "uniform(60)", "--delta", "1.5"), "delta is 1.5"),
        (("--utility", "uniform(60)", "--epsilon", "-1"), "epsilon is -1"),
        (("--utility", "uniform(60)", "--sampling", "sorted"), "sampling is 'sorted'"),
        (("--utility", "uniform(60)", "--trace", "story.txt"), ".jsonl"),
        (("--utility", "uniform(60)", "--captime-first", "soon"), "--captime-first"),
        (("--utility", "step(60)", "--procedure", "naive", "--option", "captime=2h", "--timeout", "1h"), "beyond"),
    ],
)
def test_wrong_words_end_with_two_and_say_what_to_do(table: Path, words: tuple[str, ...], part: str) -> None:
    """No traceback, nothing on stdout, the reason on stderr."""
    done = run("simulate", str(table), *words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert part in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_table_is_named_with_row_and_column(tmp_path: Path) -> None:
    """A text where a number belongs: line, column, what was found."""
    path = tmp_path / "bad.csv"
    path.write_text("configuration,i0,i1\na,1.5,2.5\nb,oops,3\n", encoding="utf-8")
    done = run("simulate", str(path), "--utility", "uniform(60)")
    assert done.returncode == 2
    assert "oops" in done.stderr
    assert "3" in done.stderr


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_the_trace_tells_the_same_story_in_every_format(table: Path, tmp_path: Path, suffix: str) -> None:
    """As many decisions as the result counts, ending with its epsilon and its cost."""
    path = tmp_path / f"story{suffix}"
    done = run(
        *("simulate", str(table), "--procedure", "up", "--utility", "uniform(60)", "--epsilon", "0.3", "--json"),
        *("--trace", str(path)),
    )
    result = json.loads(done.stdout)
    rows = _rows(path)
    decisions = [row for row in rows if row["kind"] == "decision"]
    assert len(decisions) == result["rounds"]
    assert float(decisions[-1]["epsilon"]) == pytest.approx(result["certificate"]["epsilon"], abs=1e-12)
    assert float(decisions[-1]["seconds"]) == pytest.approx(result["cpu_seconds"], rel=1e-12)
    gone = {row["config_name"] for row in rows if row["kind"] == "eliminated"}
    assert gone == set(result["captimes"]) - set(result["candidates"])
    assert any(row["kind"] == "captime" for row in rows)


def _rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    import pyarrow.parquet as pq  # noqa: PLC0415 (only one of the three needs it)

    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found


def test_comparing_runs_everyone_on_the_same_stream(table: Path) -> None:
    """One object per procedure; the race is the cheapest here."""
    done = run("simulate", str(table), "--utility", "uniform(60)", "--epsilon", "0.3", "--compare", "up,race", "--json")
    found = json.loads(done.stdout)["compare"]
    assert done.returncode == 0
    assert list(found) == ["up", "race"]
    assert found["race"]["cpu_seconds"] < found["up"]["cpu_seconds"]


def test_control_c_prints_the_certificate_held_so_far(tmp_path: Path) -> None:
    """On a terminal the live view is shown; the first Ctrl-C ends an endless simulation with exit code 3."""
    table = tmp_path / "twins.csv"  # two equal configurations: none is ever eliminated, nothing ever reached
    table.write_text("configuration,i0,i1,i2\na,1,20,300\nb,1,20,300\n", encoding="utf-8")
    leader, follower = pty.openpty()
    words = ("simulate", str(table), "--procedure", "up", "--utility", "log-laplace(60, 1)", "--epsilon", "0")
    process = subprocess.Popen(
        [*CAPTIME, *words, "--sampling", "replace"],
        stdout=subprocess.PIPE,
        stderr=follower,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(follower)
    seen = b""
    while b"candidates" not in seen:  # the view is up, so the simulation runs
        seen += os.read(leader, 4096)
    process.send_signal(signal.SIGINT)
    # A terminal that is not read fills up and would block the last frame.
    while True:
        try:
            if not os.read(leader, 4096):
                break
        except OSError:
            break
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 3
    assert "it was interrupted" in out
    assert "of the best of these 2 configurations" in out or "Nothing is certified yet" in out


def test_the_demo_ends_with_a_certificate_its_check_and_something_to_look_at(tmp_path: Path) -> None:
    """What `make demo` runs: a real solver."""
    done = run("demo", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "With probability at least 90 %" in done.stdout
    assert (tmp_path / "out" / "epsilon.png").read_bytes().startswith(b"\x89PNG")
    assert "captime verify: confirmed" in done.stdout
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")
