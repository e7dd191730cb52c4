"""An ASlib scenario: a folder with `description.txt` and `algorithm_runs.arff`.

`ok` runs took their runtime; `timeout` runs lasted at least the cutoff, whatever penalised time is written
beside them; `memout`, `crash`, `other` and `not_applicable` never finish. Each (instance, repetition) is a
column of the table.
"""

from collections.abc import Sequence
from pathlib import Path

from captime.errors import TableError
from captime.sources.formats.arff import read_arff
from captime.sources.formats.cells import CellError, Ending, read_number, read_run, read_status
from captime.sources.formats.description import Description, read_description
from captime.sources.formats.long_form import LongForm
from captime.sources.locations import shown
from captime.sources.table import RuntimeTable

DESCRIPTION = "description.txt"
RUNS = "algorithm_runs.arff"

_MISSING = "it is missing ('?'); expected"


def read_aslib(path: Path, timeout: float | None) -> RuntimeTable:
    """Read a scenario folder."""
    for name in (DESCRIPTION, RUNS):
        if not (path / name).is_file():
            raise TableError(
                f"{path.name}: there is no {name} in the folder; expected an ASlib scenario with "
                f"{DESCRIPTION} and {RUNS}. Name the scenario's own folder."
            )
    description = read_description(path / DESCRIPTION)
    runs = _read_runs(path / RUNS, description)
    notes = [f"runtimes are the measure {shown(description.measure)}"] if description.measure != "runtime" else []
    if description.other_measures:
        notes.append(f"measures of runtime not used: {', '.join(map(shown, description.other_measures))}")
    name = description.scenario or path.resolve().name
    return runs.table(name, timeout=timeout, recorded_limit=description.cutoff, notes=notes)


def _read_runs(path: Path, description: Description) -> LongForm:
    arff = read_arff(path)
    at = [
        _find(arff.attributes, name, path)
        for name in ("instance_id", "repetition", "algorithm", description.measure, "runstatus")
    ]
    runs = LongForm(path.name)
    for number, values in arff.rows:
        instance, repetition, algorithm, runtime, status = (values[column] for column in at)
        role = "runstatus"
        try:
            ending = read_status(_known(status, "a status"))
            role = description.measure
            seconds, capped = _run(runtime, ending, cutoff_known=description.cutoff is not None)
            role = "repetition"
            again = _repetition(_known(repetition, "a whole number"))
            role = "algorithm"
            config = _known(algorithm, "a name")
            role = "instance_id"
            row = _known(instance, "a name")
        except CellError as flaw:
            raise flaw.at(f"{path.name}, line {number}, {role}") from None
        runs.add(number, config, row, seconds=seconds, capped=capped, repetition=again)
    return runs


def _run(runtime: str | None, ending: Ending, *, cutoff_known: bool) -> tuple[float, bool]:
    if runtime is None and ending is Ending.FINISHED:
        raise CellError(f"{_MISSING} seconds, because the run is ok. Correct the status or the time.")
    if ending is Ending.TIMED_OUT and cutoff_known:
        # The cutoff says it all; what is written here may be penalised, or when the process was finally gone.
        runtime = None
    return read_run(runtime or "", ending)


def _known(value: str | None, expected: str) -> str:
    if value is None:
        raise CellError(f"{_MISSING} {expected}. Fill it in.")
    return value


def _repetition(text: str) -> str:
    """Declared numeric, so 1 and 1.0 are the same repetition."""
    number = read_number(text)
    if not number.is_integer():
        raise CellError(f"found {shown(text)}; expected a whole number")
    return str(int(number))


def _find(attributes: Sequence[str], name: str, path: Path) -> int:
    exact = [number for number, attribute in enumerate(attributes) if attribute == name]
    alike = [number for number, attribute in enumerate(attributes) if attribute.lower() == name.lower()]
    found = exact or alike
    if len(found) != 1:
        listed = ", ".join(map(shown, attributes[:20]))
        raise TableError(
            f"{path.name}: found {len(found)} attributes named {shown(name)} among {listed}; expected one. "
            f"Compare the header with performance_measures in {DESCRIPTION}."
        )
    return found[0]
