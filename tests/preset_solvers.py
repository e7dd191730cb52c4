"""Solvers for the tests of presets: found where Debian or a wheel puts them, with small instances for each."""

import importlib.util
import os
import random
import shutil
import sys
from pathlib import Path

MISSING = {
    "kissat": "passagemath-kissat is not installed",
    "cadical": "Debian's cadical is not installed",
    "minisat": "Debian's minisat is not installed",
    "clasp": "Debian's clasp is not installed",
    "clingo": "Debian's gringo, which has clingo, is not installed",
    "z3": "Debian's z3 is not installed",
    "cvc5": "Debian's cvc5 is not installed",
    "highs": "highsbox is not installed",
    "scip": "pyscipopt, which has SCIP's shell in its library, is not installed",
    "cbc": "Debian's coinor-cbc is not installed",
    "glpk": "Debian's glpk-utils is not installed",
    "cp-sat": "ortools is not installed",
    "zstd": "zstd is not installed",
}
"""Why a preset cannot be tried, if its solver is not there."""

_SCIP = """#!{python}
import ctypes, sys
argv = (ctypes.c_char_p * len(sys.argv))(*map(str.encode, sys.argv))
sys.exit(0 if ctypes.CDLL({library!r}).SCIPrunShell(len(sys.argv), argv, None) == 1 else 1)
"""


def provide(solver: str, folder: Path) -> bool:
    """Put the program of a solver into a folder for the PATH; False if it is nowhere on this machine."""
    folder.mkdir(exist_ok=True)
    if solver == "kissat":
        return _linked(folder / "kissat", _in_wheel("sage_wheels", "bin", "kissat")) or bool(shutil.which("kissat"))
    if solver == "highs":
        home = _in_wheel("highsbox", "highs_dist")
        if home is None:
            return shutil.which("highs") is not None
        return _script(folder / "highs", f'#!/bin/sh\nLD_LIBRARY_PATH={home}/lib exec {home}/bin/highs "$@"\n')
    if solver == "scip":
        wheel = _in_wheel("pyscipopt")
        libraries = [] if wheel is None else sorted(wheel.parent.glob("pyscipopt.libs/libscip-*"))
        if not libraries:
            return shutil.which("scip") is not None
        return _script(folder / "scip", _SCIP.format(python=sys.executable, library=os.fspath(libraries[0])))
    if solver == "cp-sat":
        return importlib.util.find_spec("ortools") is not None
    return shutil.which({"glpk": "glpsol"}.get(solver, solver)) is not None


def instances(solver: str, folder: Path, count: int) -> None:
    """Write small instances that the solver reads, each made from its number."""
    folder.mkdir(exist_ok=True)
    for number in range(count):
        draw = random.Random(number)  # noqa: S311 (instances, not secrets)
        if solver in ("kissat", "cadical", "minisat", "clasp"):
            (folder / f"{number}.cnf").write_text(_formula(draw), encoding="ascii")
        elif solver == "clingo":
            (folder / f"{number}.lp").write_text(_colouring(draw), encoding="ascii")
        elif solver in ("z3", "cvc5"):
            (folder / f"{number}.smt2").write_text(_inequalities(draw), encoding="ascii")
        elif solver == "zstd":
            lines = [f"{draw.randrange(1000)} GET /page/{draw.randrange(50)} 200" for _ in range(3000)]
            (folder / f"{number}.log").write_text("\n".join(lines), encoding="ascii")
        else:
            (folder / f"{number}.mps").write_text(_packing(draw), encoding="ascii")


def _formula(draw: random.Random, variables: int = 50) -> str:
    clauses = [draw.sample(range(1, variables + 1), 3) for _ in range(round(4.2 * variables))]
    signed = [" ".join(str(each * draw.choice((-1, 1))) for each in clause) for clause in clauses]
    return "\n".join([f"p cnf {variables} {len(clauses)}", *(f"{clause} 0" for clause in signed), ""])


def _colouring(draw: random.Random, nodes: int = 12) -> str:
    edges = {tuple(sorted(draw.sample(range(nodes), 2))) for _ in range(22)}
    facts = "".join(f"edge({a},{b})." for a, b in sorted(edges))
    rules = f"node(0..{nodes - 1}). colour(1..4). 1{{c(N,C):colour(C)}}1 :- node(N). :- edge(A,B), c(A,C), c(B,C)."
    return f"{facts}\n{rules}\n#minimize{{C,N:c(N,C)}}.\n"


def _inequalities(draw: random.Random) -> str:
    names = "xyzw"
    lines = [f"(declare-const {name} Int)(assert (and (>= {name} 0) (<= {name} 30)))" for name in names]
    for _ in range(5):
        terms = " ".join(f"(* {draw.choice(('{}', '(- {})')).format(draw.randint(1, 9))} {name})" for name in names)
        lines.append(f"(assert (<= (+ {terms}) {draw.randint(5, 60)}))")
    total = " ".join(names)
    return "\n".join(
        ["(set-logic QF_LIA)", *lines, f"(assert (>= (+ {total}) {draw.randint(10, 60)}))", "(check-sat)\n"]
    )


def _packing(draw: random.Random, columns: int = 14, rows: int = 6) -> str:
    """A multi-dimensional knapsack as a minimisation, in MPS format with fixed columns, which every solver reads."""
    weights = [[draw.randint(3, 30) for _ in range(columns)] for _ in range(rows)]
    marker = "    MARKER                 'MARKER'                 '{}'"
    lines = ["NAME          packing", "ROWS", " N  cost", *(f" L  r{row}" for row in range(rows)), "COLUMNS"]
    lines.append(marker.format("INTORG"))
    for column in range(columns):
        lines.append(f"    {f'x{column}':<8}  {'cost':<8}  {-draw.randint(5, 40):>12}")
        lines += [f"    {f'x{column}':<8}  {f'r{row}':<8}  {weights[row][column]:>12}" for row in range(rows)]
    lines += [marker.format("INTEND"), "RHS"]
    lines += [f"    {'rhs':<8}  {f'r{row}':<8}  {sum(weights[row]) // 3:>12}" for row in range(rows)]
    bounds = [f" UP {'bnd':<8}  {f'x{column}':<8}  {1:>12}" for column in range(columns)]
    return "\n".join([*lines, "BOUNDS", *bounds, "ENDATA", ""])


def _in_wheel(package: str, *parts: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    if spec is None:
        return None
    places = spec.submodule_search_locations or []
    found = [path for place in places if (path := Path(place).joinpath(*parts)).exists()]
    return found[0] if found else None


def _linked(link: Path, program: Path | None) -> bool:
    if program is None:
        return False
    link.symlink_to(program)
    return True


def _script(path: Path, text: str) -> bool:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return True
