import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from captime.errors import TableError
from captime.sources import RuntimeTable, read_table
from captime.sources.formats.aslib import read_description

INF = float("inf")

DESCRIPTION = """scenario_id: TOY
performance_measures:
- runtime
maximize:
- false
performance_type:
- runtime
algorithm_cutoff_time: 100
algorithm_cutoff_memory: '?'
"""
HEADER = """@RELATION RUNS_TOY

@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE algorithm STRING
@ATTRIBUTE runtime NUMERIC
@ATTRIBUTE runstatus {ok, timeout, memout, not_applicable, crash, other}

@DATA
"""
ROWS = """x,1,a,1.5,ok
x,1,b,100,timeout
y,1,a,7,memout
y,1,b,?,not_applicable
z,1,a,3,crash
z,1,b,250.0,ok
w,1,a,0,other
w,1,b,?,timeout
"""


def scenario(folder: Path, *, rows: str = ROWS, header: str = HEADER, description: str = DESCRIPTION) -> Path:
    """A scenario folder made by hand."""
    (folder / "description.txt").write_text(description)
    (folder / "algorithm_runs.arff").write_text(header + rows)
    return folder


def changed(text: str, old: str, new: str) -> str:
    """The text with one thing replaced, which must be there."""
    assert old in text
    return text.replace(old, new)


def test_every_status_means_what_it_says(tmp_path: Path) -> None:
    """Ok takes its time, timeout at least the cutoff, as does a late ok; the other four never finish."""
    table = read_table(scenario(tmp_path))
    assert table.name == "TOY"
    assert table.configs == ("a", "b")
    assert table.instances == ("x", "y", "z", "w")
    assert table.seconds.tolist() == [[1.5, INF, INF, INF], [100, INF, 100, 100]]
    assert table.limit == 100
    assert table.notes == ()


def test_the_scenario_may_be_named_by_either_file(tmp_path: Path) -> None:
    """Pointing at description.txt or algorithm_runs.arff reads the folder."""
    scenario(tmp_path)
    for name in ("description.txt", "algorithm_runs.arff"):
        assert read_table(tmp_path / name).name == "TOY"


def test_keywords_and_names_in_any_case_and_mixed_line_ends_are_read(tmp_path: Path) -> None:
    """Lower case, comments, tabs, CRLF and LF together, no final line end, shorter nominal sets."""
    header = changed(HEADER.lower(), "{ok, timeout, memout, not_applicable, crash, other}", "{ok,timeout}")
    header = changed(header, "repetition numeric", "\trepetition\treal")
    header = changed(header, "algorithm string", "algorithm {a , 'b'}")
    rows = changed(ROWS, "x,1,b", "% a comment\r\n\r\nx , 1 , b").rstrip("\n")
    table = read_table(scenario(tmp_path, header=changed(header, "@data\n", "@data\r\n"), rows=rows))
    assert table.seconds[:, 0].tolist() == [1.5, 100]


def test_quoted_names_may_hold_anything(tmp_path: Path) -> None:
    """Commas, equals signs, blanks, percent signs, braces and escaped quotes inside quotes."""
    names = ["a,b", "p=1 q=2", "it's", 'say "hi"', "100%", "{x}", "back\\slash", "?"]
    quoted = [
        "'a,b'",
        '"p=1 q=2"',
        '"it\'s"',
        "'say \"hi\"'",
        "'100%'",
        "'{x}'",
        r"'back\\slash'",
        "'?'",
    ]
    rows = "".join(f"{name},1,'solver, one',{n},ok\n" for n, name in enumerate(quoted))
    table = read_table(scenario(tmp_path, rows=rows))
    assert list(table.instances) == names
    assert table.configs == ("solver, one",)


def test_unquoted_names_may_hold_equals_signs_and_inner_quotes(tmp_path: Path) -> None:
    """Only a quote at the start of a value opens one."""
    table = read_table(scenario(tmp_path, rows="d/p.pddl_len=10,1,o'neil,1,ok\n"))
    assert table.instances == ("d/p.pddl_len=10",)
    assert table.configs == ("o'neil",)


def test_repetitions_are_columns_that_share_a_group(tmp_path: Path) -> None:
    """1 and 1.0 are the same repetition; an instance run once keeps its plain name."""
    rows = "x,1,a,1,ok\nx,2,a,2,ok\ny,1,a,3,ok\nx,1.0,b,4,ok\nx,2.0,b,5,timeout\ny,1,b,6,ok\n"
    table = read_table(scenario(tmp_path, rows=rows))
    assert table.instances == ("x [repetition 1]", "x [repetition 2]", "y")
    assert table.groups.tolist() == [0, 0, 1]
    assert table.seconds.tolist() == [[1, 2, 3], [4, 100, 6]]


def test_a_penalised_measure_is_cut_at_the_cutoff(tmp_path: Path) -> None:
    """A PAR10 column: 1000 beside a timeout or an ok means at least 100."""
    description = changed(DESCRIPTION, "- runtime\nmaximize", "- PAR10\nmaximize")
    header = changed(HEADER, "runtime NUMERIC", "PAR10 NUMERIC")
    rows = "x,1,a,1000,timeout\nx,1,b,1000,ok\ny,1,a,1000,crash\ny,1,b,99,ok\n"
    table = read_table(scenario(tmp_path, rows=rows, header=header, description=description))
    assert table.seconds.tolist() == [[100, INF], [100, 99]]
    assert table.notes == ("runtimes are the measure 'PAR10'",)


def test_the_runtime_measure_is_found_among_others(tmp_path: Path) -> None:
    """A quality measure that is to be maximised does not matter when it is not the one used."""
    description = changed(DESCRIPTION, "- runtime\nmaximize:\n- false", "- solved\n- runtime\nmaximize: [yes, no]")
    description = changed(description, "performance_type:\n- runtime", "performance_type: [solution_quality, Runtime]")
    header = changed(HEADER, "@ATTRIBUTE runtime", "@ATTRIBUTE solved NUMERIC\n@ATTRIBUTE RunTime")
    table = read_table(scenario(tmp_path, rows="x,1,a,0,5,ok\n", header=header, description=description))
    assert table.seconds.tolist() == [[5]]


def test_a_second_runtime_measure_is_mentioned(tmp_path: Path) -> None:
    """The first one is used, and a note names the other."""
    description = changed(DESCRIPTION, "- runtime\nmaximize", "- runtime\n- PAR10\nmaximize")
    description = changed(description, "type:\n- runtime", "type:\n- runtime\n- runtime")
    table = read_table(scenario(tmp_path, description=description))
    assert table.notes == ("measures of runtime not used: 'PAR10'",)


@pytest.mark.parametrize("cutoff", ["1.0e+02", "100.0", "'100'", "100 # seconds"])
def test_the_cutoff_may_be_written_in_many_ways(tmp_path: Path, cutoff: str) -> None:
    """Integers, floats, exponents, quotes and comments."""
    description = changed(DESCRIPTION, "time: 100", f"time: {cutoff}")
    assert read_table(scenario(tmp_path, description=description)).limit == 100


@pytest.mark.parametrize("cutoff", ["0", "0.0", "'?'", "?", ""])
def test_no_cutoff_means_that_stopped_runs_speak_for_themselves(tmp_path: Path, cutoff: str) -> None:
    """0 and ? mean none: the shortest stopped run is the limit; one without a time needs a declaration."""
    description = changed(DESCRIPTION, "time: 100", f"time: {cutoff}")
    rows = changed(ROWS, "w,1,b,?,timeout", "w,1,b,120,timeout")
    table = read_table(scenario(tmp_path, description=description, rows=rows))
    assert table.limit == 100
    assert "shortest time recorded" in table.notes[0]
    with pytest.raises(TableError, match="nothing says after how long"):
        read_table(scenario(tmp_path, description=description))


def test_the_cutoff_can_be_shortened_but_not_extended(tmp_path: Path) -> None:
    """What happened after the cutoff was not observed."""
    assert read_table(scenario(tmp_path), timeout=1).seconds[:, 0].tolist() == [1, 1]
    for timeout in (101, INF):
        with pytest.raises(TableError, match="nothing is known beyond"):
            read_table(tmp_path, timeout=timeout)


def test_descriptions_of_several_dialects_are_read(tmp_path: Path) -> None:
    """Scalars for lists, indented items, quoted keys, nested maps, a document mark and unknown keys."""
    path = tmp_path / "description.txt"
    path.write_text(
        "---\n# about\n'scenario_id': \"S # 1\"\nperformance_measures: runtime\nmaximize: no\n"
        "performance_type: runtime\nalgorithm_cutoff_time: 1.0e+08\nmetainfo_algorithms:\n  a:\n"
        "    configuration: 'x: y'\n    performance_type: nested\n    - odd\nfeature_steps:\n  "
        "s:\n    provides:\n"
        "    - f1\n"
    )
    found = read_description(path)
    assert (found.scenario, found.measure, found.cutoff) == ("S # 1", "runtime", 1e8)
    path.write_text("performance_measures:\n    - 'T'\nperformance_type:\n    - runtime\n")
    found = read_description(path)
    assert (found.scenario, found.measure, found.cutoff) == ("", "T", None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("performance_type:\n- runtime", "performance_type:\n- solution_quality", "hold no runtimes"),
        ("- false", "- true", "maximised"),
        ("- false", "- maybe", "maximize is 'maybe'"),
        ("performance_measures", "measures", "no performance_measures"),
        ("performance_type", "kind", "no performance_type"),
        ("time: 100", "time: long", "algorithm_cutoff_time is 'long'"),
        ("time: 100", "time: -1", "algorithm_cutoff_time is '-1'"),
        ("time: 100", "time: nan", "algorithm_cutoff_time is 'nan'"),
        ("time: 100", "time: 1_0", "algorithm_cutoff_time is '1_0'"),
        ("scenario_id: TOY", "performance_type: [a", "line 1: the list is not closed"),
        ("scenario_id: TOY", "maximize: no", "line 4: maximize occurs twice"),
        ("- runtime\nmaximize", "- speed\nmaximize", "found 0 attributes named 'speed'"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    """With the key and what was found."""
    with pytest.raises(TableError, match=message):
        read_table(scenario(tmp_path, description=changed(DESCRIPTION, old, new)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("x,1,a,1.5,ok", "x,1,a,?,ok", "line 10, runtime: it is missing .*because the run is ok"),
        ("x,1,a,1.5,ok", "x,1,a,,ok", "line 10, runtime: the cell is empty"),
        ("x,1,a,1.5,ok", "x,1,a,1.5,fine", "line 10, runstatus: found the status 'fine'"),
        ("x,1,a,1.5,ok", "x,1,a,1.5,?", "line 10, runstatus: it is missing"),
        ("x,1,a,1.5,ok", "x,1,a,-1,ok", "line 10, runtime: found -1"),
        ("x,1,a,1.5,ok", "x,1,a,nan,ok", "line 10, runtime: found 'nan'"),
        ("x,1,a,1.5,ok", "x,1,a,inf,ok", "line 10, runtime: .*runtime is inf"),
        ("x,1,a,1.5,ok", "x,1.5,a,1.5,ok", "line 10, repetition: found '1.5'"),
        ("x,1,a,1.5,ok", "x,inf,a,1.5,ok", "line 10, repetition: found 'inf'"),
        ("x,1,a,1.5,ok", "?,1,a,1.5,ok", "line 10, instance_id: it is missing"),
        ("x,1,a,1.5,ok", "x,1,?,1.5,ok", "line 10, algorithm: it is missing"),
        ("x,1,a,1.5,ok", "'',1,a,1.5,ok", "line 10: the instance has no name"),
        ("y,1,a,7,memout", "y,1,a,lots,memout", "line 12, runtime: found 'lots'"),
        ("x,1,a,1.5,ok", "x,1,a,1.5", "line 10: found 4 values; expected 5"),
        ("x,1,a,1.5,ok", "{0 x}", "line 10: found a sparse row"),
        ("x,1,a,1.5,ok\n", "", "'a' on instance 'x' is missing .1 of 8"),
        ("y,1,a,7,memout", "x,1,a,7,ok", "line 12: .*'a' on instance 'x' was there before, on line 10"),
    ],
)
def test_a_bad_run_is_refused_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    """Line and attribute, what was found, what was expected."""
    with pytest.raises(TableError, match=message):
        read_table(scenario(tmp_path, rows=changed(ROWS, old, new)))


# ---------------------------------------------------------------- published scenarios, if they are at hand

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("CAPTIME_SHARED", REPOSITORY.parent / "shared")) / "data" / "aslib"
# Configurations, instances and cutoff, counted once by hand from the raw files.
PUBLISHED = {
    "ASP-POTASSCO": (11, 1294, 600),
    "CSP-MZN-2013": (11, 4642, 1800),
    "MAXSAT15-PMS-INDU": (29, 601, 1800),
    "QBF-2014": (14, 1254, 900),
    "SAT03-16_INDU": (10, 2000, 5000),
    "SAT12-INDU": (31, 1167, 1200),
    "SAT18-EXP": (37, 353, 5000),
}


def raw_rows(folder: Path) -> list[list[str]]:
    """The rows of a published scenario by the crudest means: none of these seven quotes anything."""
    lines = (folder / "algorithm_runs.arff").read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.strip().lower() == "@data")
    return [line.strip().split(",") for line in lines[start + 1 :] if line.strip() and line[0] != "%"]


def read_published(name: str) -> tuple[RuntimeTable, list[list[str]]]:
    """A published scenario, read by the reader and by hand, or a skipped test."""
    if not (SHARED / name).is_dir():
        pytest.skip(f"the ASlib scenario {name} is not on this machine")
    return read_table(SHARED / name), raw_rows(SHARED / name)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_scenarios_have_their_published_size(name: str) -> None:
    """Shape, cutoff and name; none of them repeats a run."""
    table, rows = read_published(name)
    assert (table.n_configs, table.n_instances, table.limit) == PUBLISHED[name]
    assert table.name == name
    assert table.n_configs * table.n_instances == len(rows)
    assert table.n_groups == table.n_instances


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_runs_are_all_there_and_unchanged(name: str) -> None:
    """Counted and compared line by line: ok runs exactly, timeouts at the cutoff, everything else endless."""
    table, rows = read_published(name)
    counts = Counter(row[-1] for row in rows)
    assert int((table.seconds < table.limit).sum()) == counts["ok"]
    assert int((table.seconds == table.limit).sum()) == counts["timeout"]
    assert int(np.isinf(table.seconds).sum()) == len(rows) - counts["ok"] - counts["timeout"]
    row_of = {config: number for number, config in enumerate(table.configs)}
    column_of = {instance: number for number, instance in enumerate(table.instances)}
    for instance, _, algorithm, runtime, *_, status in rows:
        expected = {"ok": float(runtime), "timeout": table.limit}.get(status, INF)
        assert table.seconds[row_of[algorithm], column_of[instance]] == expected
