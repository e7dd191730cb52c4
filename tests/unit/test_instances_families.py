import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from captime.errors import ScenarioError
from captime.instances import INSTANCES, colouring, fuzz, generate, quasigroup, script
from captime.instances.__main__ import main

each_family = pytest.mark.parametrize("name", INSTANCES)
each_formula = pytest.mark.parametrize("name", [name for name, made in INSTANCES.items() if made.SUFFIX == ".cnf"])
# Of seed 7 at the defaults: a change of bytes changes every campaign that names an instance by its seed.
FINGERPRINTS = {
    "auction": "2cd84e1b93c2c8cf",
    "cascade": "f47b089141d6d17e",
    "colouring": "fd2b04cb10f68d7d",
    "fuzz": "520ac5a1333d5f51",
    "quasigroup": "be8d1b0cd2150bdd",
}


def clauses_of(text: str) -> tuple[int, list[list[int]]]:
    """Number of variables and clauses of a DIMACS file, read strictly."""
    lines = [line for line in text.splitlines() if not line.startswith("c")]
    word, kind, variables, count = lines[0].split()
    assert (word, kind) == ("p", "cnf")
    clauses = [[int(number) for number in line.split()] for line in lines[1:]]
    assert len(clauses) == int(count)
    assert all(clause[-1] == 0 and 0 not in clause[:-1] for clause in clauses)
    return int(variables), [clause[:-1] for clause in clauses]


def satisfied(clauses: list[list[int]], true: set[int]) -> bool:
    """Whether every clause has a literal that holds; `true` names the variables that do."""
    return all(any((abs(each) in true) == (each > 0) for each in clause) for clause in clauses)


@each_family
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(name: str) -> None:
    """An instance is named by its family, seed and options, today and next year."""
    text = generate(name, 7)
    assert text == generate(name, 7)
    assert text != generate(name, 8)
    assert text.isascii()
    assert text.endswith("\n")
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == FINGERPRINTS[name]


@each_family
def test_three_roads_give_the_same_bytes(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The plain script without the package, the module on the command line, and the function."""
    expected = generate(name, 3)
    plain = subprocess.run(
        [sys.executable, "-I", "-S", str(script(name)), "--seed", "3"], capture_output=True, text=True, check=True
    )
    assert plain.stdout == expected
    assert main([name, "--seed", "3", "-o", str(tmp_path / "made")]) == 0
    assert (tmp_path / "made").read_text() == expected
    assert [each.name for each in tmp_path.iterdir()] == ["made"]
    assert main([name, "--seed", "3"]) == 0
    assert capsys.readouterr().out == expected


@each_formula
def test_a_formula_is_valid_dimacs(name: str) -> None:
    """The header tells the truth, no variable is out of range, no clause is empty or repeats a variable."""
    for seed in range(5):
        variables, clauses = clauses_of(generate(name, seed))
        for clause in clauses:
            assert clause
            assert max(map(abs, clause)) <= variables
            assert len({abs(each) for each in clause}) == len(clause)


@each_family
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "--seed is missing"),
        (["--seed"], "'--seed' needs a value"),
        (["--seed", "x"], "--seed is 'x', expected a whole number"),
        (["--seed", "1", "--colour", "2"], "there is no option '--colour'"),
        (["--seed", "1", "--size", "0"], "size"),
        (["--seed", "1", "-o", "no-such-folder/x"], "cannot write no-such-folder/x"),
    ],
)
def test_words_that_make_no_sense_are_refused(
    name: str, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, the complaint on stderr, nothing on stdout."""
    assert main([name, *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert complaint in said.err


def test_an_unknown_family_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line and in Python."""
    assert main(["sudoku", "--seed", "1"]) == 2
    said = capsys.readouterr().err
    with pytest.raises(ScenarioError, match="no family of instances 'sudoku'") as refusal:
        generate("sudoku", 1)
    for name in INSTANCES:
        assert name in said
        assert name in str(refusal.value)


def test_the_planted_colouring_satisfies_its_formula() -> None:
    """Sizes as stated, every edge between different colours, and the planted colouring is a model."""
    for seed in range(20):
        colours, edges = colouring.draw(seed, (80, 200), 2.3)
        assert 80 <= len(colours) <= 200
        assert len(set(edges)) == len(edges) == round(2.3 * len(colours))
        assert all(colours[one] != colours[other] for one, other in edges)
        variables, clauses = clauses_of(generate("colouring", seed))
        assert variables == 3 * len(colours)
        assert satisfied(clauses, {3 * node + colour + 1 for node, colour in enumerate(colours)})
        # Teeth: the same colouring with one node changed to a neighbour's colour is not a model.
        one, other = edges[0]
        colours[one] = colours[other]
        assert not satisfied(clauses, {3 * node + colour + 1 for node, colour in enumerate(colours)})


def test_a_latin_square_is_latin_and_its_erased_cells_can_be_filled_in_as_they_were() -> None:
    """Rows and columns hold every symbol once, holes as many as stated, and the erased symbols are a model."""
    for seed in range(5):
        square, erased = quasigroup.draw(seed, (10, 14), 0.42)
        order = len(square)
        assert 10 <= order <= 14
        assert all(sorted(row) == list(range(order)) for row in square)
        assert all(sorted(column) == list(range(order)) for column in zip(*square, strict=True))
        assert len(erased) == order * round(0.42 * order)
        number = quasigroup.numbering(square, erased)
        variables, clauses = clauses_of(generate("quasigroup", seed, size=(10, 14)))
        assert variables == len(number)
        true = {number[row, column, square[row][column]] for row, column in erased}
        assert satisfied(clauses, true)
        assert not satisfied(clauses, true - {min(true)})


def test_latin_squares_are_not_all_the_cyclic_one() -> None:
    """Shuffling leaves the group table: some two rows no longer differ by one shift of the symbols' cycle."""
    square, _ = quasigroup.draw(1, (12, 12), 0.4)
    first = {symbol: column for column, symbol in enumerate(square[0])}
    cycles = set()
    for row in square[1:]:
        length, column = 0, 0
        while True:
            column, length = first[row[column]], length + 1
            if column == 0:
                break
        cycles.add(length)
    # In a cyclic square of order 12 every such cycle has a length that divides 12.
    assert any(12 % length for length in cycles)


@pytest.mark.parametrize("odd", [True, False])
@pytest.mark.parametrize("length", [2, 3, 4])
def test_a_parity_is_its_clauses(length: int, *, odd: bool) -> None:
    """Over all assignments, the clauses hold exactly where the number of true variables is odd (even)."""
    clauses = fuzz.parity(list(range(1, length + 1)), odd=odd)
    for bits in range(2**length):
        true = {variable for variable in range(1, length + 1) if bits >> (variable - 1) & 1}
        assert satisfied(clauses, true) == (len(true) % 2 == int(odd))


def test_every_make_of_fuzzed_formula_occurs_with_the_size_it_states() -> None:
    """All three makes within a few seeds; variables are the size times the make's factor; mixed lengths in layers."""
    seen = set()
    for seed in range(20):
        text = generate("fuzz", seed, size=(100, 100))
        make = text.splitlines()[0].rpartition(" ")[2]
        variables, clauses = clauses_of(text)
        seen.add(make)
        assert variables == round(100 * fuzz.MAKES[make][1])
        lengths = {len(clause) for clause in clauses}
        assert lengths == {"threshold": {3}, "layers": {2, 3, 4, 5, 6}, "parities": {3, 4}}[make]
        if make == "threshold":
            assert 4.0 <= len(clauses) / variables <= 4.52
    assert seen == set(fuzz.MAKES)
