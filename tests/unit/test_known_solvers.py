"""The table of known solvers: recognised by name, and right about what real solvers print."""

import re

import pytest

from captime.comparison.commands import KnownSolver, known_solvers, recognise

SOLVERS = list(known_solvers().values())

# Lines as the programs print them, copied from runs of the versions named in the table.
ANSWERS = [
    ("kissat", "s SATISFIABLE", "SATISFIABLE"),
    ("cadical", "s UNSATISFIABLE", "UNSATISFIABLE"),
    ("minisat", "UNSATISFIABLE", "UNSATISFIABLE"),
    ("clasp", "s SATISFIABLE", "SATISFIABLE"),
    ("clasp", "OPTIMUM FOUND", "OPTIMUM FOUND"),
    ("clingo", "UNSATISFIABLE", "UNSATISFIABLE"),
    ("z3", "unsat", "unsat"),
    ("z3", "s SATISFIABLE", "SATISFIABLE"),
    ("cvc5", "sat", "sat"),
    ("highs", "  Status            Optimal", "Optimal"),
    ("highs", "Model status        : Infeasible", "Infeasible"),
    ("scip", "SCIP Status        : problem is solved [optimal solution found]", "optimal solution found"),
    ("cbc", "Result - Optimal solution found", "Optimal solution found"),
    ("cbc", "Pre-processing says infeasible or unbounded", "Pre-processing says infeasible"),
    ("glpk", "INTEGER OPTIMAL SOLUTION FOUND", "INTEGER OPTIMAL SOLUTION FOUND"),
    ("glpk", "PROBLEM HAS NO PRIMAL FEASIBLE SOLUTION", "PROBLEM HAS NO PRIMAL FEASIBLE SOLUTION"),
]
NO_ANSWERS = [
    ("kissat", "s UNKNOWN"),
    ("minisat", "INDETERMINATE"),
    ("clasp", "s UNKNOWN"),
    ("z3", "unknown"),
    ("z3", "timeout"),
    ("cvc5", "cvc5 interrupted by timeout."),
    ("highs", "  Status            Time limit reached"),
    ("highs", "Model status        : Time limit reached"),
    ("scip", "SCIP Status        : solving was interrupted [time limit reached]"),
    ("cbc", "Result - Stopped on time limit"),
    ("glpk", "TIME LIMIT EXCEEDED; SEARCH TERMINATED"),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
def test_every_entry_is_complete_and_its_program_is_recognised(solver: KnownSolver) -> None:
    """An entry has a pattern that compiles and is not met by an empty line, and each of its programs leads to it."""
    assert solver.programs
    assert solver.note.endswith(".")
    if solver.answer is not None:
        assert re.compile(solver.answer).groups == 1
        assert re.search(solver.answer, "") is None
    assert all("{seed}" in " ".join(solver.seed) for _ in solver.seed)
    for program in solver.programs:
        assert recognise([program, "{instance}"]) is solver


def test_no_program_belongs_to_two_solvers() -> None:
    """The name of an executable decides."""
    programs = [program for solver in SOLVERS for program in solver.programs]
    assert len(set(programs)) == len(programs)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["/opt/solvers/kissat-4.0.1", "-q"], "kissat"),
        (["./cadical-sc2021"], "cadical"),
        (["C:\\tools\\z3.exe", "a.smt2"], "z3"),
        (["z3-4.8.12-x64-glibc"], "z3"),
        (["env", "LD_LIBRARY_PATH=/lib", "highs", "m.lp"], "highs"),
        (["nice", "-n", "10", "minisat", "a.cnf"], "minisat"),
        (["glucose_static"], "glucose"),
        (["Kissat"], "kissat"),
    ],
)
def test_versions_folders_and_launchers_are_passed_over(command: list[str], name: str) -> None:
    """What stands around the name of a solver does not hide it."""
    found = recognise(command)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "command", [[], ["python3", "kissat.py"], ["env", "A=1"], ["./solve.sh"], ["z"], ["catkissat"]]
)
def test_other_programs_are_not_recognised(command: list[str]) -> None:
    """A program that is not in the table is none of its solvers."""
    assert recognise(command) is None


@pytest.mark.parametrize(("name", "line", "answer"), ANSWERS)
def test_lines_with_an_answer_are_answers(name: str, line: str, answer: str) -> None:
    """The pattern finds the answer in a line that the solver prints."""
    pattern = known_solvers()[name].answer
    assert pattern is not None
    found = re.search(pattern, line)
    assert found is not None
    assert found.group(1) == answer


@pytest.mark.parametrize(("name", "line"), NO_ANSWERS)
def test_lines_about_a_limit_are_no_answers(name: str, line: str) -> None:
    """A solver that gave up has not answered."""
    pattern = known_solvers()[name].answer
    assert pattern is not None
    assert re.search(pattern, line) is None


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (["kissat", "--time=5", "{instance}"], "--time=5"),
        (["z3", "-t:500", "{instance}"], "-t:500"),
        (["glpsol", "--tmlim", "5"], "--tmlim"),
        (["scip", "-c", "set limits time 5"], "set limits time 5"),
        (["kissat", "-q", "{instance}"], None),
    ],
)
def test_a_time_limit_of_its_own_is_noticed(command: list[str], word: str | None) -> None:
    """A command that limits itself is told apart from one that does not."""
    solver = recognise(command)
    assert solver is not None
    assert solver.own_time_limit(command) == word
