from pathlib import Path

import numpy as np
import pytest

from captime.errors import TableError
from captime.sources import RuntimeTable, read_table

INF = float("inf")


def read(folder: Path, text: str | bytes, timeout: float | None = None) -> RuntimeTable:
    """Read a text as a CSV file."""
    path = folder / "runs.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(path, timeout=timeout)


def test_wide_csv_has_a_row_per_configuration(tmp_path: Path) -> None:
    """The header names instances, the first column configurations; the file gives the table its name."""
    table = read(tmp_path, "anything,x,y,z\nfast,1,2.5,3e1\nsafe,4,5,.5\n")
    assert table.name == "runs"
    assert table.configs == ("fast", "safe")
    assert table.instances == ("x", "y", "z")
    assert table.seconds.tolist() == [[1, 2.5, 30], [4, 5, 0.5]]
    assert table.groups.tolist() == [0, 1, 2]


def test_wide_csv_accepts_words_for_runs_that_did_not_finish(tmp_path: Path) -> None:
    """Crash, memout and inf never finish; timeout means at least the declared timeout."""
    table = read(tmp_path, "c,x,y,z,w\na,1,TIMEOUT,crash,9\nb,memout,inf,Other,10\n", timeout=10)
    assert table.seconds.tolist() == [[1, 10, INF, 9], [INF, INF, INF, 10]]
    assert table.limit == 10


def test_a_timeout_word_without_a_time_needs_a_declaration(tmp_path: Path) -> None:
    """Nothing in a wide file says how long a run with the word timeout lasted."""
    with pytest.raises(TableError, match=r"'b' \(row 2\), instance 'y' \(column 2\).*Declare it with timeout="):
        read(tmp_path, "c,x,y\na,1,2\nb,3,timeout\n")


def test_bom_crlf_blanks_and_quotes_are_accepted(tmp_path: Path) -> None:
    """What spreadsheets write is read."""
    text = '\ufeffc,"x, ""1""",y\r\n"a,b" , 1 ,"2"\r\n\r\nc,3,4'
    table = read(tmp_path, text)
    assert table.instances == ('x, "1"', "y")
    assert table.configs == ("a,b", "c")
    assert table.seconds.tolist() == [[1, 2], [3, 4]]


LONG = """Solver,seed,Instance_ID,Time,RunStatus
a,7,x,1.5,ok
b,7,x,2,SAT
a,7,y,900.2,timeout
b,7,y,,memout
a,7,z,900.1,Capped
b,7,z,17,crash
"""


def test_long_csv_finds_its_columns_by_name(tmp_path: Path) -> None:
    """Any order, any case; statuses decide; unused columns are listed in a note."""
    table = read(tmp_path, LONG, timeout=900)
    assert table.configs == ("a", "b")
    assert table.instances == ("x", "y", "z")
    assert table.seconds.tolist() == [[1.5, 900, 900], [2, INF, INF]]
    assert table.notes == ("columns not used: 'seed'",)


def test_long_csv_without_timeout_uses_the_shortest_stopped_run(tmp_path: Path) -> None:
    """900.1 s is what is known of every run that timed out."""
    table = read(tmp_path, LONG)
    assert table.limit == 900.1
    assert "shortest time recorded" in table.notes[1]


def test_long_csv_in_any_order_gives_the_same_runs(tmp_path: Path) -> None:
    """Lines may be shuffled; only the order of rows and columns follows the file."""
    lines = LONG.splitlines()
    rng = np.random.default_rng(5)
    table = read(tmp_path, LONG, timeout=900)
    for _ in range(5):
        mixed = "\n".join([lines[0], *rng.permutation(lines[1:])])
        other = read(tmp_path, mixed, timeout=900)
        row = [other.configs.index(name) for name in table.configs]
        column = [other.instances.index(name) for name in table.instances]
        assert np.array_equal(other.seconds[np.ix_(row, column)], table.seconds)


def test_repetitions_share_a_group(tmp_path: Path) -> None:
    """An instance that was run twice has two columns with one group; an instance run once keeps its name."""
    text = "config,instance,repetition,seconds\n" + "".join(
        f"{c},{i},{r},{s}\n"
        for s, (c, i, r) in enumerate(
            [("a", "x", 1), ("a", "x", 2), ("a", "y", 1), ("b", "x", 1), ("b", "x", 2), ("b", "y", 1)]
        )
    )
    table = read(tmp_path, text)
    assert table.instances == ("x [repetition 1]", "x [repetition 2]", "y")
    assert table.groups.tolist() == [0, 0, 1]
    assert table.n_groups == 2
    assert table.seconds.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("\n \n", "empty"),
        ("c;x;y\na;1;2\n", "line 1: found the single column 'c;x;y'.*semicolons"),
        ("c,x,y\n", "no row below the header"),
        ("config,instance,runtime\n", "no run"),
        ("c,x,y\na,1\n", "line 2: found 2 cells; expected 3"),
        ("c,x,y\na,1,2\nb,1,2,3\n", "line 3: found 4 cells; expected 3"),
        ("c,x,x\na,1,2\n", "instance name 'x' occurs twice"),
        ("c,x,y\na,1,2\na,1,2\n", "configuration name 'a' occurs twice"),
        ("c,x,\na,1,2\n", "instance 2 is named '', which is blank"),
        ("c,x,y\n,1,2\n", "configuration 1 is named ''"),
        ('c,x,y\na,"1,2\n', "line 2, column 2: the quote is not closed"),
        ('c,x,y\na,1,"2"3\n', "line 2, column 3: found '3' after the closing quote"),
        ('c,x,y\na,1,2"3\n', "line 2, column 3: found a double quote inside"),
        (
            "config,instance,time,runtime\na,x,1,2\n",
            "columns 3 and 4: 'time' and 'runtime' both name the runtime",
        ),
        ("config,instance,runtime\na,x,1\na,y,2\nb,y,3\n", "'b' on instance 'x' is missing .1 of 4 pairs"),
        ("config,instance,runtime\na,x,1\nb,y,3\n", "'a' on instance 'y' is missing .2 of 4 pairs"),
        (
            "config,instance,runtime\na,x,1\nb,x,1\na,x,3\nb,x,4\n",
            "line 4: .*'a' on instance 'x'.* on line 2",
        ),
        ("config,instance,runtime\n,x,1\n", "line 2: the configuration has no name"),
        ("config,instance,runtime\na,,1\n", "line 2: the instance has no name"),
        ("config,instance,runtime,status\na,x,1,fine\n", "line 2, column 4: found the status 'fine'"),
        ("config,instance,runtime,status\na,x,,ok\n", "line 2, column 3: the cell is empty"),
        (
            "config,instance,runtime,status\na,x,inf,ok\n",
            "line 2, column 3: .*finished, but its runtime is inf",
        ),
        ("config,instance,runtime,status\na,x,oops,crash\n", "line 2, column 3: found 'oops'"),
    ],
)
def test_a_broken_csv_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    """Where, what was found, what was expected."""
    with pytest.raises(TableError, match=message):
        read(tmp_path, text)
