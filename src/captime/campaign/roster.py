"""Who takes part in a campaign on a space: configurations are made when the procedure first asks for them.

A procedure knows indices only. When it orders a configuration that does not exist yet, it is proposed, written down,
and given to the program, in this order. What is on record stays as it is: going on later never proposes it anew.
"""

from collections.abc import Callable, Sequence

from captime.campaign.goals import set_goal, set_length
from captime.evidence import Evidence
from captime.ledger.rows import ConfigRow
from captime.procedures.around import AroundProcedure
from captime.procedures.protocol import Procedure
from captime.programs.configurations import Configuration
from captime.programs.protocol import GrowingProgram
from captime.scenario.pools import name_of
from captime.spaces import Proposer, Settings, lessons
from captime.targets import Targets

Write = Callable[[Sequence[ConfigRow]], None]


class Roster:
    """The configurations that exist.

    Args:
        proposer: Makes configurations by index.
        program: Has to be told of each.
        rows: Those that exist; the list grows.
        recorded: Those on record, which may be more: they are taken as they are, and not written again.
        write: Writes new ones down.
    """

    def __init__(
        self,
        proposer: Proposer,
        program: GrowingProgram,
        rows: list[ConfigRow],
        recorded: Sequence[ConfigRow],
        write: Write,
    ) -> None:
        self._proposer = proposer
        self._program = program
        self._recorded = list(recorded)
        self._write = write
        self.rows = rows

    def grow(self, size: int, evidence: Evidence) -> None:
        """There have to be so many configurations now."""
        while len(self.rows) < size:
            index = len(self.rows)
            # Asked even if the answer is on record: what a model proposes next depends on having been asked before.
            known = []
            if self._proposer.origin(index) == "model":
                known = lessons(evidence.tally, [settings_of(row) for row in self.rows])
            settings = self._proposer.propose(index, known, float(evidence.tally.seconds.sum()))
            if index < len(self._recorded):
                row = self._recorded[index]
            else:
                origin = self._proposer.origin(index)
                row = ConfigRow(index, name_of(self._proposer, index), {"settings": settings}, origin)
                self._write([row])
            self.rows.append(row)
            self._program.extend([configuration_of(row)])


def settings_of(row: ConfigRow) -> Settings:
    """As the space knows it."""
    settings: Settings = row.settings["settings"]  # type: ignore[assignment] # written by `grow`, or by the scenario
    return settings


def configuration_of(row: ConfigRow) -> Configuration:
    """As programs know it."""
    return Configuration(row.name, dict(settings_of(row)), origin=row.origin)


class Growing(AroundProcedure):
    """A procedure whose new configurations come into being when it asks for them.

    Args:
        procedure: Decides.
        roster: Who exists.
        evidence: What a model may learn from.
    """

    def __init__(self, procedure: Procedure, roster: Roster, evidence: Evidence) -> None:
        super().__init__(procedure)
        self._roster = roster
        self._evidence = evidence

    def retarget(self, epsilon: float) -> None:
        """From now on this is the goal."""
        set_goal(self._procedure, {"epsilon": epsilon})

    def more_instances(self, length: int) -> None:
        """From now on the stream has so many positions."""
        set_length(self._procedure, {"length": length})

    def ask(self, slots: int) -> Targets:
        """See the protocol."""
        targets = super().ask(slots)
        if len(targets):
            self._roster.grow(int(targets.config.max()) + 1, self._evidence)
        return targets
