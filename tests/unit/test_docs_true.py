import inspect
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner, Result

from captime import PROCEDURES, UTILITIES, __version__, simulate
from captime.bounds import BOUNDS
from captime.cli import COMMANDS, app, command_of
from captime.cli.run import run_command
from captime.procedures.problem import option_types
from captime.report.simulated import as_json
from captime.sources.synthetic import synthetic_table
from captime.trace import BOOK_COLUMNS, COLUMNS

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in sorted(
        [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")],
    )
}
# Typer once stood on click and now carries its own copy of it: the type differs, the shape is the same.
PROGRAM: Any = typer.main.get_command(app)
EXAMPLE = "captime simulate examples/solvers.csv --utility 'uniform(1min)' --epsilon 0.2"
TABLE = "docs/guides/table.md"
FRAGMENT = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\.(added|changed|fixed|removed)\.md")


def blocks(page: str, language: str) -> list[str]:
    """The fenced code blocks of that language on a page."""
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```$", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    return [inspect.cleandoc(block) for block in found]


def section(page: str, heading: str) -> str:
    """What stands under a heading of the second level."""
    _, found, rest = PAGES[page].partition(f"\n## {heading}\n")
    assert found, f"{page} has no section {heading!r}"
    return rest.partition("\n## ")[0]


def first_column(text: str) -> list[str]:
    """The words in code type that begin the rows of the tables in a text."""
    return re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE)


def shell_lines() -> list[str]:
    """Every command that a page tells the reader to type, once."""
    # Getting started and the guides are followed as a whole: tests/unit/test_guides_walked.py.
    pages = [page for page in PAGES if not page.startswith(("docs/start/", "docs/guides/")) or page == TABLE]
    lines = [line for page in pages for block in blocks(page, "sh") for line in block.splitlines()]
    return list(dict.fromkeys(line.strip() for line in lines))


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the examples in it, as if it were a checkout."""
    (tmp_path / "examples").mkdir()
    table = ROOT / "examples" / "solvers.csv"
    (tmp_path / "examples" / table.name).write_bytes(table.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def options_of(command: Any) -> list[str]:
    """The long and short options of a command, without its help."""
    named = [option for parameter in command.params for option in parameter.opts]
    return [option for option in named if option.startswith("-") and option not in ("--help", "-h")]


def typed(line: str) -> Result:
    """A line as a person would type it."""
    word, *arguments = shlex.split(line)
    assert word == "captime", f"only captime commands can be tried here, found {line!r}"
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_its_section_with_every_option(name: str) -> None:
    """Nothing can be typed that docs/commands.md does not explain."""
    text = section("docs/commands.md", f"`captime {name}`")
    assert [option for option in options_of(command_of(name)) if f"`{option}`" not in text] == []


def test_no_command_is_documented_that_does_not_exist() -> None:
    """The sections of docs/commands.md and their options are those of the program."""
    page = PAGES["docs/commands.md"]
    assert sorted(re.findall(r"^## `captime (\w+)`$", page, flags=re.MULTILINE)) == sorted(COMMANDS)
    for name in COMMANDS:
        known = set(options_of(command_of(name)))
        for row in re.findall(r"^\| (`--[^|]*) \|", section("docs/commands.md", f"`captime {name}`"), re.MULTILINE):
            assert set(re.findall(r"`(--[^`]+)`", row)) <= known


def test_the_options_of_the_program_itself_are_documented() -> None:
    """Version, help and completion."""
    options = [*options_of(PROGRAM), "--help", "-h"]
    assert [option for option in options if option not in PAGES["docs/commands.md"]] == []


def test_every_utility_is_documented() -> None:
    """Each has a row in docs/utilities.md."""
    rows = "\n".join(first_column(PAGES["docs/utilities.md"]))
    assert [name for name in UTILITIES if f"{name}(" not in rows] == []


def test_every_procedure_is_documented_with_its_options() -> None:
    """Each has a section in docs/procedures.md and a row per option there."""
    headings = re.findall(r"^## `([\w-]+)`: .+$", PAGES["docs/procedures.md"], flags=re.MULTILINE)
    assert sorted(headings) == sorted(PROCEDURES)
    for name, maker in PROCEDURES.items():
        heading = next(line for line in PAGES["docs/procedures.md"].splitlines() if line.startswith(f"## `{name}`"))
        rows = first_column(section("docs/procedures.md", heading.removeprefix("## ")))
        assert rows == sorted(option_types(maker), key=rows.index)


def test_every_bound_is_documented() -> None:
    """Each has a row in docs/bounds.md, with what it says about itself."""
    rows = re.findall(r"^\| `([\w-]+)` \| (\w+) \| (\w+) \| (\w+) \|", PAGES["docs/bounds.md"], flags=re.MULTILINE)
    word = {True: "yes", False: "no"}
    declared = [(name, word[each.monotone], word[each.time_uniform], each.needs) for name, each in BOUNDS.items()]
    assert rows == declared


def test_the_json_fields_are_the_documented_ones() -> None:
    """Every field has its row in docs/procedures.md, in the order in which it is printed, and no other has."""
    result = simulate(synthetic_table(1, 2, 30, limit=900.0), utility="uniform(60)")
    printed = []
    for field, value in as_json(result).items():
        nested = value if field == "certificate" and isinstance(value, dict) else None
        printed += [field] if nested is None else [f"{field}.{inner}" for inner in nested]
    assert first_column(section("docs/procedures.md", "The JSON object")) == printed


def test_compared_procedures_have_the_documented_object_each(workplace: Path) -> None:
    """{"compare": {name: object}}, and a trace for each; one that refuses is left out, and the exit code says so."""
    line = f"{EXAMPLE} --json --trace story.csv"
    compared = typed(f"{line} --compare race,up,naive")
    assert compared.exit_code == 3
    assert "naive is left out" in compared.stderr
    objects = json.loads(compared.stdout)["compare"]
    assert list(objects) == ["race", "up"]
    assert objects["race"] == json.loads(typed(line).stdout)
    assert sorted(path.name for path in workplace.glob("story.*.csv")) == ["story.race.csv", "story.up.csv"]


def test_the_defaults_shown_are_the_real_ones() -> None:
    """Of `captime simulate`, and of `captime.simulate`, where they have the same name."""
    text = section("docs/commands.md", "`captime simulate`")
    rows = dict(re.findall(r"^\| `--([\w-]+)` \| `?([^`|]+?)`? \|", text, flags=re.MULTILINE))
    command = {parameter.opts[0].removeprefix("--"): parameter for parameter in command_of("simulate").params}
    function = inspect.signature(simulate).parameters
    for name in ("procedure", "delta", "epsilon", "captime-first", "sampling", "seed", "accounting"):
        assert rows[name] == str(command[name].default)
        if name != "captime-first":
            assert rows[name] == str(function[name].default)


def test_the_layers_shown_are_those_that_are_checked() -> None:
    """CONTRIBUTING.md and pyproject.toml say the same, but for rooms that are not built yet."""
    checks = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in checks["contracts"] if contract["type"] == "layers")
    rooms = [[room for room in re.split(r" [|:] ", layer) if not room.startswith("(")] for layer in layers]
    text = section("CONTRIBUTING.md", "The shape of it")
    rows = re.findall(r"^\| (`.+?) (?<!\\)\| ", text, flags=re.MULTILINE)
    assert [re.findall(r"`(\w+)`", row) for row in rows] == [layer for layer in rooms if layer]


def test_the_trace_columns_are_the_documented_ones(workplace: Path) -> None:
    """Every column has its row in docs/procedures.md, in the order in which it is written."""
    documented = first_column(section("docs/procedures.md", "The trace"))
    assert documented == [*COLUMNS, *BOOK_COLUMNS, "config_name"]
    assert typed("captime simulate examples/solvers.csv --utility 'uniform(60)' --trace t.csv").exit_code in (0, 3)
    assert (workplace / "t.csv").read_text(encoding="utf-8").splitlines()[0].split(",") == documented


@pytest.mark.parametrize("page", sorted(PAGES))
def test_relative_links_lead_somewhere(page: str) -> None:
    """Links to files of the project resolve from where they stand."""
    prose = re.sub(r"^ *```.*?^ *```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", prose)]
    local = [target for target in targets if target and "://" not in target]
    assert [target for target in local if not (ROOT / page).parent.joinpath(target).exists()] == []


@pytest.mark.parametrize("page", sorted(PAGES))
def test_files_named_in_code_type_exist(page: str) -> None:
    """A path like `tests/unit/…` is a real one, unless it is a file that the reader is told to write."""
    to_be_written = {
        f"src/captime/{family}.py" for family in ("utilities/weibull", "bounds/angle", "procedures/optimist")
    }
    named = set(re.findall(r"`((?:src|tests|docs|examples|benchmarks|changelog\.d)/[\w./-]+)`", PAGES[page]))
    assert [path for path in sorted(named - to_be_written) if not (ROOT / path).exists()] == []


def test_the_make_targets_named_exist() -> None:
    """On every page and in the changelog, in code type and in indented blocks."""
    texts = [*PAGES.values(), *(path.read_text(encoding="utf-8") for path in (ROOT / "changelog.d").glob("*.md"))]
    named = {target for text in texts for target in re.findall(r"(?:`|^    )make ([a-z-]+)", text, flags=re.MULTILINE)}
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert named <= set(targets)


def test_every_page_is_reached_from_the_index() -> None:
    """docs/index.md links every page beside it."""
    linked = set(re.findall(r"\]\(([^)#]+)\)", PAGES["docs/index.md"]))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"} <= linked


def test_every_changelog_fragment_has_a_valid_name_and_something_to_say() -> None:
    """<slug>.<added|changed|fixed|removed>.md, with a sentence inside."""
    for path in (ROOT / "changelog.d").iterdir():
        if path.name != "README.md":
            assert FRAGMENT.fullmatch(path.name), path.name
            assert path.read_text(encoding="utf-8").strip().endswith("."), path.name


def test_the_citation_is_of_this_version() -> None:
    """CITATION.cff carries the version of the package."""
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


# What CONTRIBUTING.md shows are files of examples/adding, which have tests of their own.
WITH_PYTHON = [page for page in sorted(PAGES) if page != "CONTRIBUTING.md" and blocks(page, "python")]


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_blocks_run(page: str, workplace: Path) -> None:
    """Each block stands on its own; what it asserts is true."""
    found = blocks(page, "python")
    assert found
    for block in found:
        exec(compile(block, page, "exec"), {"__name__": "example"})  # noqa: S102 (our own documentation)


@pytest.mark.parametrize("line", shell_lines())
def test_commands_shown_can_be_typed(line: str, workplace: Path) -> None:
    """Every command on every page runs and ends with its goal, or early with a valid certificate."""
    pytest.importorskip("matplotlib")
    result = typed(line)
    assert result.exit_code in ((0, 3) if "--budget" in line else (0,)), result.output


@pytest.mark.parametrize(
    ("heading", "line"),
    [
        ("Sixty seconds with a table", f"{EXAMPLE} --timeout 5min"),
        ("Which procedure?", f"{EXAMPLE} --compare race,fixed-captimes,up"),
    ],
)
def test_the_page_on_tables_shows_what_is_really_printed(heading: str, line: str, workplace: Path) -> None:
    """Every line of the output on the page, but for the ellipses, is printed by the command above it."""
    pytest.importorskip("matplotlib")
    assert line in section(TABLE, heading)
    shown = re.findall(r"^```text\n(.*?)^```$", section(TABLE, heading), flags=re.MULTILINE | re.DOTALL)[-1]
    printed = {" ".join(row.split()) for row in typed(line).stdout.splitlines()}
    expected = [" ".join(row.split()) for row in shown.splitlines() if row != "…"]
    assert [row for row in expected if row not in printed] == []


def test_the_table_shown_is_the_one_in_the_examples() -> None:
    """The first lines of examples/solvers.csv."""
    shown = re.findall(r"^```text\n(.*?)^```$", section(TABLE, "Sixty seconds with a table"), re.MULTILINE | re.DOTALL)
    assert (ROOT / "examples" / "solvers.csv").read_text(encoding="utf-8").startswith(shown[0])


def test_the_picture_in_the_readme_is_small() -> None:
    """A front page is read without downloading megabytes."""
    assert (ROOT / "docs" / "pictures" / "demo-epsilon.png").stat().st_size < 150_000


def test_no_page_names_a_place_on_somebodys_machine() -> None:
    """Absolute paths mean nothing to a reader."""
    for page, text in PAGES.items():
        assert not re.search(r"(?<![\w.])/(home|Users|tmp|work|root|var)/", text), page


def test_the_page_of_exit_codes_has_those_of_run() -> None:
    """All of them, and 1 for a bug of ours."""
    told = re.findall(r"\b(\d+)(?:, (\d+))?:", run_command.__doc__ or "")
    codes = {int(code) for pair in told for code in pair if code}
    rows = re.findall(r"^\| (\d[\d, ]*) \|", PAGES["docs/reference/exit-codes.md"], flags=re.MULTILINE)
    assert {int(code) for row in rows for code in row.split(",")} == codes | {1, 8}
    assert {0, 2, 3, 4, 5, 6, 7, 130, 143} == codes
