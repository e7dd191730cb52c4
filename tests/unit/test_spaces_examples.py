import importlib.util
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from captime.spaces import Space, proposer_of, read_space
from captime.spaces.formats.section import section_in

EXAMPLES = Path(__file__).parents[2] / "examples"
# Parameters, conditional ones, favourites.
EXPECTED = {
    "kissat": (147, 78, 3),
    "highs-auctions": (21, 2, 2),
    "clasp": (27, 9, 1),
    "compressor": (10, 4, 2),
}
MAKERS = {
    "kissat": "make_colouring.py",
    "highs-auctions": "make_auction.py",
    "clasp": "make_cnf.py",
    "compressor": "make_file.py",
}


def script(path: Path) -> ModuleType:
    """A script of an example, loaded as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{path.parent.name}_{path.stem}".replace("-", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made(name: str, number: int) -> str:
    """An instance of an example, as its scenario would have it made."""
    command = [sys.executable, str(EXAMPLES / name / MAKERS[name]), str(number)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def space(name: str) -> Space:
    """The space of an example."""
    return read_space(EXAMPLES / name / "scenario.toml")


@pytest.mark.parametrize("name", EXPECTED)
def test_the_space_of_every_example_loads(name: str) -> None:
    """With all its parameters, conditions and favourites; its draws are valid and become words."""
    here = space(name)
    assert (len(here.parameters), len(here.conditions), len(here.favourites)) == EXPECTED[name]
    for number in range(10):
        settings = here.draw(0, number)
        here.check(settings)
        assert all("{" not in word for word in here.arguments(settings))
    section = section_in((EXAMPLES / name / "scenario.toml").read_text(encoding="utf-8"), name)
    assert proposer_of(here, section, 1, name).n_listed == 1 + len(here.favourites)


@pytest.mark.parametrize("name", EXPECTED)
def test_instances_are_the_same_every_time_and_different_for_every_number(name: str) -> None:
    """Made by the number alone."""
    first = made(name, 3)
    assert first == made(name, 3)
    assert first != made(name, 4)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_page_shows_how_to_validate_and_what_to_take_away(name: str) -> None:
    """With files that its own generator makes, called as the scenario calls them, far from where a campaign counts."""
    page = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    wishes = tomllib.loads((EXAMPLES / name / "scenario.toml").read_text(encoding="utf-8"))["instances"]
    assert wishes["generator"] == ["python3", MAKERS[name], "{k}"]
    loop = "for k in $(seq 1000000 1000099); do"
    assert f"{loop} python3 {MAKERS[name]} $k > held-out/$k{wishes['suffix']}; done\n" in page
    assert "captime validate scenario.ledger --instances held-out\n" in page
    assert "captime best scenario.ledger\n" in page
    assert made(name, 1000000) != made(name, 0)


@pytest.mark.parametrize("name", ["kissat", "clasp"])
def test_formulas_are_what_their_first_line_says(name: str) -> None:
    """This many clauses, with variables in range."""
    for number in range(4):
        lines = [line for line in made(name, number).splitlines() if not line.startswith("c")]
        _, _, variables, clauses = lines[0].split()
        assert len(lines) - 1 == int(clauses)
        literals = [int(word) for line in lines[1:] for word in line.split()[:-1]]
        assert max(map(abs, literals)) <= int(variables)
        assert 0 not in literals


def test_kissats_space_is_what_kissat_says() -> None:
    """space.pcs is what prepare.py makes of `kissat --range`, and every draw is accepted."""
    if shutil.which("kissat") is None and importlib.util.find_spec("sage_wheels") is None:
        pytest.skip("kissat is not installed")
    prepare = script(EXAMPLES / "kissat" / "prepare.py")
    kissat = prepare.find_kissat()
    ranges = subprocess.run([kissat, "--range"], check=True, capture_output=True, text=True).stdout
    if len(ranges.splitlines()) != 153:
        pytest.skip("another version of kissat, with other options")
    assert prepare.space(ranges) == (EXAMPLES / "kissat" / "space.pcs").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "program", "first", "codes"),
    [
        ("clasp", "clasp", ["clasp", "--outf=1", "--verbose=0"], (10, 20, 30)),
        ("compressor", "zstd", ["zstd", "-q", "-c"], (0,)),
    ],
)
def test_programs_accept_what_is_drawn(
    name: str, program: str, first: list[str], codes: tuple[int, ...], tmp_path: Path
) -> None:
    """Words of random configurations, as the program itself sees them."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    instance = tmp_path / "instance"
    instance.write_text("p cnf 2 2\n1 2 0\n-1 0\n" if name == "clasp" else "a line\n" * 50, encoding="utf-8")
    here = space(name)
    for settings in [here.default, *here.favourites, *(here.draw(1, number) for number in range(12))]:
        ended = subprocess.run([*first, *here.arguments(settings), str(instance)], capture_output=True, check=False)
        assert ended.returncode in codes, (settings, ended.stderr)


def test_the_default_configuration_of_kissat_changes_nothing() -> None:
    """Its words name the defaults that kissat has anyway."""
    here = space("kissat")
    words = here.arguments(here.default)
    assert "--eliminateint=500" in words
    assert "--seed=0" not in words
    assert len(words) == len(here.default)
