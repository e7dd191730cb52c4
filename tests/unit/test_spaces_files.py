import warnings
from pathlib import Path

import numpy as np
import pytest

from captime.errors import ScenarioError
from captime.spaces import FORMATS, Settings, Space, as_configspace, read_space, section_of, write_space
from captime.spaces.clauses import clause_text
from captime.spaces.formats.section import read_section
from captime.spaces.parameters import Float, Integer, Ordinal

FILES = sorted((Path(__file__).parents[1] / "spaces").glob("*.[pt][cx][st]"))
# Parameters, conditional ones, forbidden combinations.
EXPECTED = {
    "old-paramils.pcs": (4, 1, 0),
    "old-numbers.pcs": (8, 0, 0),
    "old-conditions.pcs": (9, 6, 3),
    "new-types.pcs": (7, 0, 0),
    "new-conditions.pcs": (12, 8, 0),
    "new-forbidden.pcs": (5, 0, 7),
    "new-odd-names.pcs": (7, 3, 1),
    "mixed-dialects.pcs": (3, 1, 1),
    "new-windows.pcs": (2, 1, 0),
    "new-scientific.pcs": (4, 0, 0),
    "irace-guide.txt": (6, 2, 1),
    "irace-conditions.txt": (10, 6, 0),
    "irace-forbidden.txt": (3, 0, 4),
}


def named(name: str) -> Space:
    """One of the files of the tests."""
    return read_space(next(path for path in FILES if path.name == name))


def active(space: Space, **settings: object) -> set[str]:
    """The parameters that are active with these settings and defaults for the rest."""
    row = space.default_row.copy()
    for name, value in settings.items():
        code = space.by_name[name].code(value)  # type: ignore[arg-type]  # a test writes values
        assert code is not None
        row[space.names.index(name)] = code
    return set(space.settings(space.deactivated(row[np.newaxis])[0]))


def forbids(space: Space, **settings: object) -> bool:
    """Whether these settings, with defaults for the rest, are forbidden."""
    row = space.default_row.copy()
    for name, value in settings.items():
        code = space.by_name[name].code(value)  # type: ignore[arg-type]  # a test writes values
        assert code is not None
        row[space.names.index(name)] = code
    return not space.allowed(space.deactivated(row[np.newaxis]))[0]


def test_every_file_is_expected() -> None:
    """A file without an expectation would be a test that cannot fail."""
    assert {path.name for path in FILES} == set(EXPECTED)
    assert len(FILES) >= 12


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_of_both_grammars_load_with_everything_in_them(path: Path) -> None:
    """As many parameters, conditions and forbidden combinations as stand in the file."""
    space = read_space(path)
    assert (len(space.parameters), len(space.conditions), len(space.forbidden)) == EXPECTED[path.name]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_draws_of_every_file_are_configurations_of_it(path: Path) -> None:
    """Complete, in range, active and not forbidden; the default too."""
    space = read_space(path)
    space.check(space.default)
    for number in range(40):
        space.check(space.draw(5, number))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_survives_the_canonical_form(path: Path) -> None:
    """The dictionary reads back as the same space, with the same draws and the same dictionary."""
    space = read_space(path)
    again = read_section(section_of(space), "again")
    assert section_of(again) == section_of(space)
    assert [again.draw(1, number) for number in range(10)] == [space.draw(1, number) for number in range(10)]


@pytest.mark.parametrize("name", [name for name, each in FORMATS.items() if each.write is not None])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_a_format_can_write_it_reads_back_as_the_same_space(path: Path, name: str, tmp_path: Path) -> None:
    """Or it refuses and says what would be lost; nothing is lost in silence."""
    space = read_space(path)
    copy = tmp_path / f"copy{FORMATS[name].endings[0]}"
    try:
        copy.write_text(write_space(space, name), encoding="utf-8")
    except ScenarioError as refusal:
        assert "cannot say everything" in str(refusal)  # noqa: PT017 (either outcome is right, both are checked)
        return
    again = read_space(copy, name)
    assert again.names == space.names
    for number in range(20):
        # Values of choices may have become texts; they still mean the same value.
        drawn = space.draw(3, number)
        again.check(drawn)
        assert {key: str(value) for key, value in again.draw(3, number).items()} == {
            key: str(value) for key, value in drawn.items()
        }


def test_toml_can_say_everything() -> None:
    """The scenario's own form refuses no file."""
    for path in FILES:
        assert write_space(read_space(path), "toml")


@pytest.mark.parametrize("name", ["old-conditions.pcs", "new-types.pcs", "new-conditions.pcs", "mixed-dialects.pcs"])
def test_configspace_agrees_about_what_is_active_and_what_is_forbidden(name: str) -> None:
    """Our draws are valid to ConfigSpace, and its draws are valid to us."""
    space = named(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ConfigSpace's own affairs
        theirs = as_configspace(space)
        from ConfigSpace import Configuration  # noqa: PLC0415 (slow to import, wanted here only)

        for number in range(100):
            Configuration(theirs, values=space.draw(2, number)).check_valid_configuration()
        theirs.seed(1)
        for configuration in theirs.sample_configuration(100):
            space.check({key: getattr(value, "item", lambda v=value: v)() for key, value in configuration.items()})


def test_the_reference_reader_reads_what_we_write() -> None:
    """ConfigSpace's own (deprecated) PCS reader understands our new-style files."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ConfigSpace.read_and_write import pcs_new  # noqa: PLC0415 (slow to import, wanted here only)

        theirs = pcs_new.read(write_space(named("new-types.pcs"), "pcs").splitlines())
    assert sorted(theirs) == sorted(named("new-types.pcs").names)


# ---------------------------------------------------------------- what single lines mean


def test_flags_of_the_old_style() -> None:
    """I: whole numbers, l: logarithm, in any order and spacing."""
    found = {
        each.name: (type(each), each.log)
        for each in named("old-numbers.pcs").parameters
        if not isinstance(each, Ordinal) and hasattr(each, "log")
    }
    assert found["plain"] == (Float, False)
    assert found["whole"] == (Integer, False)
    assert found["logged"] == (Float, True)
    assert found["both"] == found["reversed"] == found["apart"] == (Integer, True)


def test_several_conditions_for_one_child_must_all_hold() -> None:
    """In both dialects; a note says so."""
    old = named("old-conditions.pcs")
    assert "@1:3:Geo:restarts" not in active(old, **{"@1:0:restarts": "x", "@1:S:ary": "2"})
    assert "@1:3:Geo:restarts" in active(old, **{"@1:0:restarts": "x", "@1:S:ary": "3"})
    assert "@1:3:Geo:restarts" not in active(old, **{"@1:0:restarts": "+", "@1:S:ary": "3"})
    new = named("new-conditions.pcs")
    assert "c6" in active(new, alpha="a", beta=3)
    assert "c6" not in active(new, alpha="a", beta=7)
    assert "c6" not in active(new, alpha="c", beta=3)
    assert any("c6" in note for note in new.notes)


@pytest.mark.parametrize(
    ("child", "settings", "there"),
    [
        ("c1", {"alpha": "a"}, True),
        ("c1", {"alpha": "b"}, False),
        ("c2", {"alpha": "b", "beta": 4}, True),
        ("c2", {"alpha": "b", "beta": 3}, False),
        ("c3", {"alpha": "a", "beta": 0, "gamma": 0.6}, True),
        ("c3", {"alpha": "b", "beta": 4, "gamma": 0.1}, True),
        ("c3", {"alpha": "a", "beta": 4, "gamma": 0.1}, False),
        ("c4", {"delta": "cold"}, False),
        ("c4", {"delta": "warm"}, True),
        ("c5", {"alpha": "b", "beta": 2}, True),
        ("c5", {"alpha": "b", "beta": 1}, False),
        ("c7", {"alpha": "a", "c1": 0.3}, True),
        ("c7", {"alpha": "b", "c1": 0.3}, False),  # c1 is inactive: nothing about it is true
        ("c8", {"delta": "hot", "beta": 5}, False),
        ("c8", {"delta": "cold", "beta": 3}, True),
    ],
)
def test_conditions_mean_what_they_say(child: str, settings: dict[str, object], there: bool) -> None:
    """&& binds tighter than ||; ordinals compare by rank; an inactive parent makes nothing true."""
    assert (child in active(named("new-conditions.pcs"), **settings)) is there


@pytest.mark.parametrize(
    ("settings", "bad"),
    [
        ({"mode": "x", "p1": 9}, True),
        ({"mode": "y", "p1": 9, "p2": 7}, False),
        ({"p1": 4, "p2": 2, "p3": 2.5}, True),
        ({"p1": 4, "p2": 5, "p3": 2.5}, False),
        ({"p1": 10, "p2": 9}, True),
        ({"p1": 3, "p2": 4}, True),
        ({"mode": "y", "p3": 9.6}, True),
        ({"p1": 8, "p2": 8}, True),
        ({"size": "32", "p1": 0}, True),
        ({"size": "16", "p1": 0}, False),
        ({"mode": "y", "size": "32", "p2": 1}, True),
        ({"mode": "y", "size": "32", "p2": 2}, False),
    ],
)
def test_forbidden_combinations_mean_what_they_say(settings: dict[str, object], bad: bool) -> None:
    """Equalities, comparisons, arithmetic, functions and ranks."""
    assert forbids(named("new-forbidden.pcs"), **settings) is bad


def test_names_with_signs_and_values_that_look_like_names() -> None:
    """A hyphen is no minus where the whole is a name; a value is a value even if a parameter is called so."""
    space = named("new-odd-names.pcs")
    assert "b" in active(space, **{"a": 3, "a-b": "a-b"})
    assert "b" not in active(space, **{"a": 3, "a-b": "a"})
    assert "what?!" in active(space, **{"x<y": 0.7, "c&d": 1})
    assert "what?!" not in active(space, **{"x<y": 0.7, "c&d": 2})


@pytest.mark.parametrize(
    ("child", "settings", "there"),
    [
        ("q0", {"kind": "d"}, True),
        ("q0", {"kind": "b#c"}, False),
        ("nn", {"kind": "b#c"}, True),
        ("nn", {"kind": "a", "ants": 20, "rho": 0.1}, True),
        ("nn", {"kind": "a", "ants": 20, "rho": 0.05}, False),
        ("nn", {"kind": "a", "ants": 19, "rho": 0.5}, False),
        ("always", {}, True),
        ("deep", {"level": "4"}, True),
        ("deep", {"level": "2"}, False),
        ("sum", {"ants": 40}, True),
        ("sum", {"ants": 42}, False),
        ("sum", {"ants": 39}, False),
        ("one", {"level": "4"}, True),
        ("one", {"level": "8"}, False),
    ],
)
def test_r_expressions_mean_what_they_say(child: str, settings: dict[str, object], there: bool) -> None:
    """%in%, %%, as.numeric, ! & | and their doubles, with R's precedence."""
    assert (child in active(named("irace-conditions.txt"), **settings)) is there


def test_irace_combinations_and_digits() -> None:
    """Arithmetic and functions forbid; reals are rounded to the digits of the file."""
    space = named("irace-forbidden.txt")
    assert forbids(space, a=0, b=0)
    assert forbids(space, a=3, b=2, c=0.5)
    assert not forbids(space, a=3, b=2, c=0.4)
    assert forbids(space, a=1, b=10, c=0.35)
    assert forbids(space, a=9, b=9)
    drawn = [space.draw(0, number)["c"] for number in range(20)]
    assert all(value == round(float(value), 6) for value in drawn)
    assert any("maxTime" in note for note in space.notes)


def test_irace_switches_are_glued_as_they_stand() -> None:
    """A trailing blank makes two words, an empty value none, a value with blanks several."""
    space = named("irace-guide.txt")
    settings: Settings = {"engine": "two words", "workers": 3, "decay": 0.5, "effort": "low"}
    assert space.arguments(settings) == ["--two", "words", "-w", "3", "--decay=0.5", "--effort", "low"]
    flags = named("irace-conditions.txt")
    words = flags.arguments(flags.completed({"always": "--quick", "level": "4"}))
    assert words[0] == "-l4"
    assert "--quick" in words
    assert "" not in flags.arguments(flags.completed({"always": ""}))


def test_the_text_of_a_clause_reads_back() -> None:
    """Negations, brackets and arithmetic survive."""
    space = named("new-forbidden.pcs")
    again = read_section(section_of(space), "again")
    assert [clause_text(clause) for clause in again.forbidden] == [clause_text(clause) for clause in space.forbidden]
