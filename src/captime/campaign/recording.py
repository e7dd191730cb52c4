"""What a procedure has come to, written into the ledger whenever it has changed: certificate, candidates, facts."""

import numpy as np

from captime.arrays import BoolArray
from captime.certificate import Certificate
from captime.evidence import Evidence
from captime.ledger import Ledger
from captime.ledger.crash_points import reached
from captime.procedures.protocol import Procedure


class Recorder:
    """Writes down what is new, and nothing twice.

    Args:
        ledger: The one that is written to.
        n_configs: How many configurations there are at first.
        clock: Wall-clock seconds of earlier calls; those of this one are counted from there.
    """

    def __init__(self, ledger: Ledger, n_configs: int, clock: float) -> None:
        self._ledger = ledger
        self._clock = clock
        self._certified: Certificate | None = None
        self._facts: object = None
        self._in_the_race: BoolArray = np.ones(n_configs, dtype=np.bool_)

    def certificate(self, procedure: Procedure, evidence: Evidence, now: float) -> None:
        """Write the certificate down, if another one is held.

        Args:
            procedure: The procedure that made it.
            evidence: Knows what was spent.
            now: Wall-clock seconds of this call.
        """
        held = procedure.certificate()
        if held is self._certified or held == self._certified:
            return
        self._certified = held
        self.facts(procedure)
        left, spent = int(procedure.candidates.sum()), float(evidence.tally.seconds.sum())
        self._ledger.certified(held, procedure.rounds, spent, self._clock + now, left)
        reached("certified")

    def candidates(self, procedure: Procedure, evidence: Evidence) -> None:
        """Record which configurations were cleared, and which became candidates again; no decision needs it."""
        now = procedure.candidates.copy()
        before = np.ones(len(now), dtype=np.bool_)
        before[: len(self._in_the_race)] = self._in_the_race
        if np.array_equal(before, now):
            return
        self._in_the_race = now
        out, back = np.flatnonzero(before & ~now).tolist(), np.flatnonzero(now & ~before).tolist()
        self._ledger.noted("candidates", out=out, back=back, cpu_seconds=float(evidence.tally.seconds.sum()))

    def facts(self, procedure: Procedure) -> None:
        """Write down what an independent check needs to know beside the rows."""
        tell = getattr(procedure, "facts", None)
        facts = None if tell is None else tell()
        if facts is not None and facts != self._facts:
            self._facts = facts
            self._ledger.noted("facts", **facts)
