"""Forgeries of real ledgers, with all hashes made anew: each is refused, and the reason is named."""

# ruff: noqa: S608 (the forger writes SQL, without any input in it)
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from captime.cli import app
from captime.errors import LedgerDamaged
from captime.ledger.schema import TABLES
from captime.skeptic import Trust, audit
from forgery import KINDS, PAID, Change, forge, notes_changed, real_ledger, scenario_changed

HOUR = 3_600_000_000_000
_ANSWERED = "verdict = 'answered'"
_RUNS = ("outcome", "look", "start")


def verified(ledger: Path, *words: str) -> Result:
    """What `captime verify` says."""
    return CliRunner().invoke(app, ["verify", str(ledger), "--json", *words])


@pytest.mark.parametrize("kind", KINDS)
def test_real_ledgers_are_confirmed_and_fresh_hashes_alone_change_nothing(kind: str, tmp_path: Path) -> None:
    """Nothing is taken on trust, and what is refused below is refused for what the rows say."""
    ledger = real_ledger(kind, tmp_path)
    for _ in range(2):
        found = audit(ledger)
        assert (found.verdict, found.why, found.trusted) == ("confirmed", "", ())
        told = "\n".join(found.account)
        for words in ("are those of the scenario", "that the scenario and its seed give", "seconds and dates"):
            assert words in told
        assert "not on record" not in told
        forge(ledger)


def swapped(connection: sqlite3.Connection) -> None:
    """Best and worst get each other's name and settings; on a space, two random draws."""
    one, other = connection.execute("SELECT config, name, settings FROM config ORDER BY config").fetchall()[1:3]
    for config, row in ((one[0], other), (other[0], one)):
        connection.execute("UPDATE config SET name = ?, settings = ? WHERE config = ?", (row[1], row[2], config))


def without_the_last(connection: sqlite3.Connection) -> None:
    """A configuration is deleted with its runs, and the certificate speaks of one less."""
    last = connection.execute("SELECT max(config) FROM config").fetchone()[0]
    for table in (*_RUNS, "config"):
        connection.execute(f"DELETE FROM {table} WHERE config = {last}")
    connection.execute(f"UPDATE certificate SET n_configs = {last}")
    connection.execute(PAID)
    notes_changed("facts", lambda facts: facts.get("ranking", []) and facts["ranking"].remove(last))(connection)  # type: ignore[operator] # a function


EVERYWHERE: dict[str, tuple[Change, str]] = {
    "names and settings of best and worst swapped": (swapped, "but the scenario says"),
    "all seeds are 1": ("UPDATE sample SET seed = 1", "the seed 1, but the scenario's seed gives"),
    "everywhere the same instance": (
        "UPDATE sample SET (instance, digest) = (SELECT instance, digest FROM sample WHERE position = 0)",
        "at position 1, where the scenario and its seed give",
    ),
    "another content": ("UPDATE sample SET digest = ''", "another content at position 0"),
    "answers that count as failures": (
        f"UPDATE outcome SET status = 'failed' WHERE {_ANSWERED}",
        "counts as failed, but its verdict is 'answered'",
    ),
    "answers that are called crashes": (
        f"UPDATE outcome SET status = 'failed', verdict = 'crash' WHERE {_ANSWERED}",
        "is a crash, but its exit code 0 is none",
    ),
    "crashes that are called answers": (
        "UPDATE outcome SET status = 'completed', verdict = 'answered' WHERE verdict = 'crash'",
        "is answered, but its exit code is 1",
    ),
    "all verdicts wrong": (
        f"UPDATE outcome SET verdict = 'wrong' WHERE {_ANSWERED}",
        "counts as completed, but its verdict is 'wrong'",
    ),
    "right answers that are called wrong": (
        f"UPDATE outcome SET status = 'failed', verdict = 'wrong' WHERE {_ANSWERED}",
        "is a wrong answer, but",
    ),
    "wrong answers that are called right": (
        f"UPDATE outcome SET answer = x'6E6F6E65' WHERE {_ANSWERED}",
        "its answer is not the known one of",
    ),
    "answers without an answer": (f"UPDATE outcome SET answer = NULL WHERE {_ANSWERED}", "but has no answer"),
    "answers that are called unknown": (
        f"UPDATE outcome SET status = 'failed', verdict = 'unknown' WHERE {_ANSWERED}",
        "nothing that was asked of one is missing",
    ),
    "no verdicts": ("UPDATE outcome SET verdict = NULL", "has no verdict"),
    "a verdict of his own": ("UPDATE outcome SET verdict = 'splendid'", "which is unknown"),
    "nothing measured": ("UPDATE outcome SET cpu_ns = NULL", "but nothing was measured"),
    "costs are 0": ("UPDATE outcome SET cost = 0.0", "cost 0.0 s, but the cpu clock says"),
    "costs and CPU times are 0": (
        "UPDATE outcome SET cost = 0.0, cpu_ns = 0",
        "(took|capped).*(the cpu clock says 0.0 s|only 0.0 s were measured)",
    ),
    "no wall-clock time": ("UPDATE outcome SET wall_ns = 0", "of CPU time in no time"),
    "faster than measured": (
        f"UPDATE outcome SET cost = cost + 60, cpu_ns = cpu_ns + 60000000000 WHERE {_ANSWERED}",
        "but used 60[.0-9]* s of the cpu clock",
    ),
    "answered at the captime": (
        "UPDATE outcome SET status = 'completed', verdict = 'answered' WHERE verdict = 'capped'",
        "is 'answered' after .* but its captime is",
    ),
    "cut before the captime": (
        "UPDATE outcome SET runtime = runtime / 2 WHERE verdict = 'capped'",
        "is 'capped' after",
    ),
    "outcomes dated before their starts": (f"UPDATE outcome SET at_ns = at_ns - {HOUR}", "dated .* before a run above"),
    "dates that leave no time for the run": (
        "UPDATE outcome SET wall_ns = wall_ns + 7000000000",
        "after its start, but ran for",
    ),
    "an owner more": ("UPDATE owner SET epoch = 2", "is owner 2, but number 1 comes next"),
    "another owner's runs": ("UPDATE start SET epoch = 7", "written by owner 7, but owner 1"),
    "dearer than it was": ("UPDATE certificate SET cpu_seconds = 1000.0", "is a certificate after 1000.0 s"),
    "a scenario without its SHA-256": (
        "UPDATE campaign SET scenario = replace(scenario, 'uniform(0.05)', 'uniform(0.06)')",
        "another scenario than its SHA-256",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_forgeries_are_refused_and_named(kind: str, tmp_path: Path) -> None:
    """On a list and on a space, in order of arrival and in fixed order, by bets with and without drawn captimes."""
    for what, (change, words) in EVERYWHERE.items():
        ledger = real_ledger(kind, tmp_path)
        forge(ledger, change)
        with pytest.raises(LedgerDamaged, match=words):
            pytest.fail(f"{what}: {audit(ledger)}")


@pytest.mark.parametrize("kind", ["race", "in fixed order", "drawn", "fixed-captimes"])
def test_a_configuration_cannot_vanish_with_its_runs(kind: str, tmp_path: Path) -> None:
    """The scenario still lists it; and one that is in no list cannot appear."""
    ledger = real_ledger(kind, tmp_path)
    forge(ledger, without_the_last)
    with pytest.raises(LedgerDamaged, match="the scenario lists 3: 'worse' is missing"):
        audit(ledger)
    ledger = real_ledger(kind, tmp_path)
    forge(ledger, scenario_changed(lambda told: told["configurations"]["list"].pop()))
    with pytest.raises(LedgerDamaged, match="registers configuration 'worse', which the scenario does not list"):
        audit(ledger)


def test_the_order_of_the_stream_follows_from_the_seed(tmp_path: Path) -> None:
    """The rows and the scenario's list in another order, together: the seed gives neither."""

    def turned(told: dict[str, Any]) -> None:
        listed = told["instances"]["list"]
        listed[0], listed[1] = listed[1], listed[0]

    ledger = real_ledger("race", tmp_path)
    forge(ledger, scenario_changed(turned))
    with pytest.raises(LedgerDamaged, match="stand in another order than the seed gives"):
        audit(ledger)
    ledger = real_ledger("race", tmp_path)
    forge(ledger, scenario_changed(lambda told: told["instances"].update(seed=6)))
    with pytest.raises(LedgerDamaged, match="drawn with seed 6, but the scenario's seed is 5"):
        audit(ledger)
    ledger = real_ledger("race", tmp_path)
    forge(ledger, scenario_changed(lambda told: told.update(length=5)))
    with pytest.raises(LedgerDamaged, match="runs on position 5, but the stream has 5"):
        audit(ledger)


def moved(connection: sqlite3.Connection) -> None:
    """The prior of a race as the forger would like it: another ranking, of every claim that has one."""

    def turned(facts: dict[str, Any]) -> None:
        for terms in (facts, facts.get("set", {}), facts.get("drawn", {})):
            terms.get("ranking", []).reverse()

    notes_changed("facts", turned)(connection)  # type: ignore[operator] # a function


def unordered(order: str) -> Sequence[Change]:
    """All orders are gone, and scenario and notes say in which order outcomes were told."""
    window = 8 if order == "fixed" else None
    return (
        "DELETE FROM ask",
        scenario_changed(lambda told: told.update(order=order, window=window)),
        notes_changed("began", lambda facts: facts.update(order=order)),
    )


@pytest.mark.parametrize("kind", ["race", "in fixed order", "drawn", "drawn in fixed order"])
def test_without_orders_nothing_is_confirmed_unless_they_are_taken_on_trust(kind: str, tmp_path: Path) -> None:
    """In order of arrival every run has an order. In fixed order it had none in earlier releases, which is said."""
    ledger = real_ledger(kind, tmp_path)
    forge(ledger, *unordered("arrival"), moved)
    with pytest.raises(LedgerDamaged, match="which was not ordered"):
        audit(ledger, (Trust.ORDERS,))
    ledger = real_ledger(kind, tmp_path)
    forge(ledger, *unordered("fixed"))
    found = verified(ledger)
    assert found.exit_code == 3
    told = json.loads(found.stdout)
    assert told["verdict"] == "not-verifiable"
    assert "its orders are not on record" in told["problem"]
    assert "--trust orders" in told["problem"]


def test_what_is_taken_on_trust_is_said(tmp_path: Path) -> None:
    """A ledger of fixed order as earlier releases wrote it is accepted with --trust orders, and only with that."""
    ledger = real_ledger("in fixed order", tmp_path)
    forge(ledger, *unordered("fixed"))
    assert verified(ledger, "--trust", "dates").exit_code == 3
    accepted = verified(ledger, "--trust", "orders")
    assert accepted.exit_code == 0
    told = json.loads(accepted.stdout)
    assert told["verdict"] == "confirmed"
    assert "orders are not on record" in told["trusted"][0]
    shown = CliRunner().invoke(app, ["verify", str(ledger), "--trust", "orders"]).stdout
    assert "What was taken on trust:" in shown
    assert verified(ledger, "--trust", "everything").exit_code == 2


@pytest.mark.parametrize("kind", ["race", "drawn", "drawn in fixed order"])
def test_a_moved_prior_is_refused(kind: str, tmp_path: Path) -> None:
    """With all orders in place, another ranking contradicts the warm start, whatever of it had been told by then."""
    ledger = real_ledger(kind, tmp_path)
    forge(ledger, moved)
    with pytest.raises(LedgerDamaged, match="it was changed"):
        audit(ledger)


@pytest.mark.parametrize("section", ["configurations", "instances", "target"])
def test_a_scenario_that_says_less_confirms_nothing(section: str, tmp_path: Path) -> None:
    """A forger cannot leave out what the rows are compared with."""
    ledger = real_ledger("fixed-captimes", tmp_path)
    forge(ledger, scenario_changed(lambda told: told.pop(section)))
    found = audit(ledger)
    assert (found.verdict, "--trust scenario" in found.why) == ("not-verifiable", True)
    assert f"does not say the {section}" in found.why
    assert audit(ledger, (Trust.SCENARIO,)).verdict == "confirmed"


def test_dates_that_contradict_each_other_can_be_trusted(tmp_path: Path) -> None:
    """A clock that was set while an earlier release ran left no note; a reader who knows of it can say so."""
    ledger = real_ledger("race", tmp_path)
    forge(ledger, f"UPDATE outcome SET at_ns = at_ns - {HOUR}")
    refused = verified(ledger)
    assert refused.exit_code == 5
    assert "--trust dates" in json.loads(refused.stdout)["problem"]
    assert verified(ledger, "--trust", "dates").exit_code == 0


def test_another_prior_cannot_hide_behind_a_name_nobody_knows(tmp_path: Path) -> None:
    """The notes of a campaign say in which order outcomes were told, as its scenario does."""
    ledger = real_ledger("race", tmp_path)
    forge(ledger, notes_changed("began", lambda facts: facts.update(order="fixed")))
    with pytest.raises(LedgerDamaged, match="in order 'fixed', but the scenario says 'arrival'"):
        audit(ledger)


def test_a_draw_of_a_space_has_the_name_of_its_number(tmp_path: Path) -> None:
    """The settings are made again from the seed, the name from the number."""
    ledger = real_ledger("pool", tmp_path)
    forge(ledger, "UPDATE config SET name = x'62657374' WHERE config = 3")
    with pytest.raises(LedgerDamaged, match=r"as 'best' with .* but the scenario says 'random-3'"):
        audit(ledger)


def test_a_certificate_that_costs_less_than_its_runs_is_refused(tmp_path: Path) -> None:
    """In order of arrival every outcome on record had been told."""
    ledger = real_ledger("race", tmp_path)
    forge(ledger, "UPDATE certificate SET cpu_seconds = 0.0")
    with pytest.raises(LedgerDamaged, match=r"is a certificate after 0\.0 s, but the runs that count cost"):
        audit(ledger)


@pytest.mark.parametrize(
    ("seconds", "words"), [("captime + 1", "but its captime is"), ("captime * 0.99", "was seen unfinished after")]
)
def test_invented_looks_are_refused(seconds: str, words: str, tmp_path: Path) -> None:
    """A run that was seen unfinished late is worth little: not later than its captime, nor than its own end."""

    def looked(connection: sqlite3.Connection) -> None:
        row = connection.execute(
            f"SELECT start.seq FROM start JOIN outcome USING (config, position, attempt) WHERE {_ANSWERED} LIMIT 1"
        ).fetchone()[0]
        for table in TABLES:
            connection.execute(f"UPDATE {table.name} SET seq = seq + 1000000 WHERE seq > {row}")
        connection.execute(
            f"INSERT INTO look SELECT seq + 1, config, position, attempt, {seconds}, seq, zeroblob(32) FROM start "
            f"WHERE seq = {row}"
        )

    ledger = real_ledger("race", tmp_path)
    forge(ledger, looked)
    with pytest.raises(LedgerDamaged, match=words):
        audit(ledger)


@pytest.mark.parametrize(
    "edit",
    [
        lambda told: told.update(configurations={"list": 7}),
        lambda told: told.update(configurations={}),
        lambda told: told["instances"].update(list=[7]),
        lambda told: told.update(seed="five"),
        lambda told: told.pop("seed"),
        lambda told: told.update(clock="sundial"),
        lambda told: told.update(delta=None),
        lambda told: told.update(listed={"by": "name"}, options=[1]),
        lambda told: told["instances"].update(answers={"00.txt": "no hexadecimal digits"}),
    ],
)
def test_a_scenario_that_is_none_is_refused_in_a_sentence(edit: Any, tmp_path: Path) -> None:
    """Whatever a forger writes there, there is no traceback and nothing is confirmed."""
    ledger = real_ledger("race", tmp_path)
    forge(ledger, scenario_changed(edit))
    found = verified(ledger)
    assert found.exit_code in (3, 5), found.output
    assert json.loads(found.stdout)["verdict"] in ("refuted", "not-verifiable")


OUT_OF_RANGE: dict[str, Change] = {
    "delta": scenario_changed(lambda told: told.update(delta=1.0)),
    "boost": scenario_changed(lambda told: told["options"].update(boost=0.5)),
    "boost below 0": scenario_changed(lambda told: told["options"].update(boost=-1)),
    "pilot": scenario_changed(lambda told: told["options"].update(pilot=-5)),
    "captime_first": scenario_changed(lambda told: told.update(captime_first="nan")),
    "target.ceiling": scenario_changed(lambda told: told["target"].update(ceiling=-1.0)),
    "window": scenario_changed(lambda told: told.update(window=-1)),
}


@pytest.mark.parametrize("term", OUT_OF_RANGE)
def test_terms_under_which_no_bound_holds_are_refused(term: str, tmp_path: Path) -> None:
    """`captime run` would not ask such a question; a negative boost or pilot was confirmed or was a traceback."""
    ledger = real_ledger("pool", tmp_path)
    forge(ledger, OUT_OF_RANGE[term], "UPDATE certificate SET delta = 1.0" if term == "delta" else "SELECT 1")
    with pytest.raises(
        LedgerDamaged, match=f"its scenario says {term.partition(' ')[0]} = .* which captime would not run"
    ):
        audit(ledger)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("race", r"terms that are not documented: .*gamma=0\.001"),
        ("drawn", r"leaves out a share of 0\.001"),
        ("fixed-captimes", r"leaves out a share of 0\.001"),
    ],
)
def test_a_list_has_no_gamma(kind: str, words: str, tmp_path: Path) -> None:
    """A share of a space that may be missed says nothing about a list, and would be read as a claim about more."""
    ledger = real_ledger(kind, tmp_path)
    forge(ledger, "UPDATE certificate SET gamma = 0.001")
    with pytest.raises(LedgerDamaged, match=words):
        audit(ledger)


@pytest.mark.parametrize("change", ["mode = 'simultaneous'", """shares = '[["intervals",1.0]]'"""])
def test_a_certificate_cannot_cover_more_than_its_procedure_does(change: str, tmp_path: Path) -> None:
    """Fixed captimes pay for the upper bound of the best alone, not for all intervals at once."""
    ledger = real_ledger("fixed-captimes", tmp_path)
    forge(ledger, f"UPDATE certificate SET {change}")
    with pytest.raises(LedgerDamaged, match="documented are selection"):
        audit(ledger)


def test_an_empty_section_says_as_little_as_none(tmp_path: Path) -> None:
    """Otherwise a forger empties it, and nothing is compared with it any more."""
    ledger = real_ledger("race", tmp_path)
    forge(ledger, scenario_changed(lambda told: told["configurations"].update(list=[])), swapped)
    with pytest.raises(LedgerDamaged, match="which the scenario does not list"):
        audit(ledger)
    ledger = real_ledger("race", tmp_path)
    forge(ledger, scenario_changed(lambda told: told.update(target={})), "UPDATE outcome SET exit_code = 5")
    found = audit(ledger)
    assert (found.verdict, "does not say the target" in found.why) == ("not-verifiable", True)


def other_order(connection: sqlite3.Connection) -> None:
    """Another order of the stream, and nothing on record from which the right one would follow."""

    def turned(told: dict[str, Any]) -> None:
        told.pop("listed", None)
        told["instances"]["list"].reverse()
        told["instances"]["answers"] = {}

    change = scenario_changed(turned)
    assert callable(change)
    change(connection)
    listed = json.loads(connection.execute("SELECT scenario FROM campaign").fetchone()[0])["instances"]["list"]
    for (place,) in connection.execute("SELECT position FROM sample").fetchall():
        name, digest = listed[place]
        connection.execute(
            "UPDATE sample SET instance = ?, digest = ? WHERE position = ?", (name.encode(), digest, place)
        )


def test_an_order_that_does_not_follow_from_the_seed_is_taken_on_trust(tmp_path: Path) -> None:
    """A ledger that does not say how instances were listed is confirmed only if a usual order gives its stream."""
    ledger = real_ledger("race", tmp_path)
    forge(ledger, scenario_changed(lambda told: told.pop("listed")))
    assert audit(ledger).verdict == "confirmed"
    ledger = real_ledger("race", tmp_path)
    forge(ledger, other_order)
    found = audit(ledger)
    assert (found.verdict, "--trust listing" in found.why) == ("not-verifiable", True)
    assert audit(ledger, (Trust.LISTING,)).verdict == "confirmed"


def test_an_instance_cannot_stand_in_a_stream_twice(tmp_path: Path) -> None:
    """One that all configurations solve, listed again and again, would be no independent sample."""
    ledger = real_ledger("race", tmp_path)
    forge(ledger, scenario_changed(lambda told: told["instances"]["list"].__setitem__(7, told["instances"]["list"][3])))
    with pytest.raises(LedgerDamaged, match="names an instance twice"):
        audit(ledger)


def second_chance(connection: sqlite3.Connection) -> None:
    """A run that was cut is called lost, and made again with a better end."""
    for table in TABLES:
        connection.execute(f"UPDATE {table.name} SET seq = seq + 1000000")
        connection.execute(f"UPDATE {table.name} SET seq = (seq - 1000000) * 10")
    row, config, place = connection.execute(
        "SELECT seq, config, position FROM outcome WHERE verdict = 'capped' ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    connection.execute("UPDATE outcome SET status = 'lost', verdict = 'lost', runtime = 0.0 WHERE seq = ?", (row,))
    connection.execute(
        "INSERT INTO start SELECT ?, config, position, 1, captime, epoch, at_ns, 1, hash FROM start "
        "WHERE config = ? AND position = ?",
        (row + 1, config, place),
    )


def test_a_program_that_does_not_repeat_itself_has_no_second_chance(tmp_path: Path) -> None:
    """Its luck would be drawn anew: bad runs, called lost, could be tried until they are good."""
    ledger = real_ledger("race", tmp_path)
    forge(ledger, scenario_changed(lambda told: told["target"].update(repeatable=False)), second_chance)
    with pytest.raises(LedgerDamaged, match="attempt 1 of a program that does not repeat itself"):
        audit(ledger)


def test_a_scenario_without_a_model_has_no_proposals_of_one(tmp_path: Path) -> None:
    """Without a model, draws have a larger share of delta."""
    ledger = real_ledger("pool", tmp_path)
    forge(
        ledger,
        scenario_changed(lambda told: told["space"].update(model=False)),
        "UPDATE config SET origin = 'model', name = CAST('model-' || config AS BLOB) "
        "WHERE config = (SELECT max(config) FROM config)",
    )
    with pytest.raises(LedgerDamaged, match="a proposal of a model, but the scenario has no model"):
        audit(ledger)


def test_clocks_that_were_set_are_told(tmp_path: Path) -> None:
    """A forger who notes them himself loosens what is said about dates: the account says how often."""

    def stepped(connection: sqlite3.Connection) -> None:
        row = connection.execute("SELECT max(seq) FROM note").fetchone()[0]
        connection.execute("INSERT INTO note SELECT ? + 1, 'clock-step', '{}', at_ns, hash FROM note LIMIT 1", (row,))

    ledger = real_ledger("race", tmp_path)
    forge(ledger, stepped)
    assert "dates before and after 1 settings of a clock are not compared" in audit(ledger).account


def test_a_campaign_that_ended_in_a_contradiction_is_not_confirmed(tmp_path: Path) -> None:
    """`captime run` says that nothing is certified; what was certified before that rests on a wrong answer, perhaps."""

    def contradicted(connection: sqlite3.Connection) -> None:
        row = connection.execute("SELECT max(seq) FROM note").fetchone()[0]
        facts = json.dumps({"configs": ["better", "default"], "instance": "07.txt"})
        connection.execute("INSERT INTO note SELECT ? + 1, 'conflict', ?, at_ns, hash FROM note LIMIT 1", (row, facts))

    ledger = real_ledger("race", tmp_path)
    forge(ledger, contradicted)
    found = verified(ledger)
    assert found.exit_code == 3
    assert "'better' and 'default' contradict each other on '07.txt'" in json.loads(found.stdout)["problem"]
    told = CliRunner().invoke(app, ["best", str(ledger), "--as", "json"])
    assert told.exit_code == 0
    assert "contradicted each other" in told.stderr
