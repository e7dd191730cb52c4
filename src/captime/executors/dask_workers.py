"""The workers of a cluster, as far as runs can be given to them: which have a station, which were refused, and why."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Literal

from captime.executors import dask_worker as station
from captime.executors.dask_client import DaskClient
from captime.executors.local_slots import REMEASURE_SECONDS

# Unlike machines: which may take part, and what their seconds are worth.
#
# Every machine does the same fixed piece of work when it joins, and again every few minutes. `same`: only machines
# that take equally long for it take part. `any`: all do, and which one a run gets is left to chance. `normalised`:
# all do, and their seconds are counted as those of a machine for which the piece of work takes a stated time.

Rule = Literal["same", "any", "normalised"]


@dataclass(frozen=True, slots=True)
class SpeedTerms:
    """What is demanded of machines.

    Attributes:
        rule: See above.
        tolerance: By which share the piece of work may take longer or shorter.
        reference: CPU seconds it takes on the machine that counts. With `same`, that of the first machine if it is
            left out.
    """

    rule: Rule = "same"
    tolerance: float = 0.1
    reference: float | None = None


class HostSpeeds:
    """The machines that take part, by host.

    Args:
        terms: What is demanded.

    Attributes:
        seconds: What the piece of work took on each host: the least that was seen, which is the least disturbed.
    """

    def __init__(self, terms: SpeedTerms) -> None:
        self._terms = terms
        self._reference = terms.reference
        self.seconds: dict[str, float] = {}

    def admit(self, host: str, seconds: float) -> str:
        """Let a machine join; why not, if it may not."""
        best = min(seconds, self.seconds.get(host, seconds))
        if self._terms.rule == "same":
            if self._reference is None:
                self._reference = best
            off = best / self._reference - 1.0
            if abs(off) > self._terms.tolerance:
                return (
                    f"the reference took {best * 1e3:.1f} ms on {host} and {self._reference * 1e3:.1f} ms on the first "
                    f"machine, which is more than {self._terms.tolerance:.0%} apart"
                )
        self.seconds[host] = best
        return ""

    def drifted(self, host: str, seconds: float) -> float | None:
        """By which share a machine is slower or faster than when it joined, if that is more than is allowed."""
        off = seconds / self.seconds[host] - 1.0
        return off if abs(off) > self._terms.tolerance else None

    def factor(self, host: str) -> float:
        """Return how many seconds of this machine make one that counts."""
        if self._terms.rule != "normalised" or self._terms.reference is None:
            return 1.0
        return self.seconds[host] / self._terms.reference

    def described(self) -> str:
        """For the certificate: on which machines time was measured."""
        many = len(self.seconds)
        machines = f"{many} machine{'' if many == 1 else 's'}"
        match self._terms.rule:
            case "same":
                within = f"{self._terms.tolerance:.0%}"
                return f"on {machines} that took equally long for a fixed piece of work, within {within}"
            case "any":
                return f"on whichever of {machines} was free; the mix of machines is part of what is certified"
            case "normalised":
                reference = 1e3 * (self._terms.reference or 0.0)
                return f"on {machines}, counted as on one where a fixed piece of work takes {reference:.1f} ms"


Note = Callable[..., None]
GREET, OPEN, MEASURE = "greet", "open", "measure"
# Asked first, in words that any Python understands: a worker that cannot load our functions would die of the question.
_VERSION = '__import__("importlib.metadata", fromlist=["version"]).version("captime")'
GREETING = (eval, f'[__import__("captime.executors.dask_worker"), {_VERSION}][1]')
# After this many calls in a row that a worker could not even begin, it gets no more.
_MOST_FAILURES = 3


@dataclass(slots=True)
class WorkerRecord:
    """A worker with a station.

    Attributes:
        address: Dask's name of the worker.
        station: The station's own.
        host: The machine.
        slots: Runs at once.
        factor: How many seconds there make one that counts.
        measured_at: When the reference was last asked for.
        held: Leases that are made out to it.
        failures: Calls in a row that it could not begin.
        shut: Why it gets no more leases; "" if it does.
    """

    address: str
    station: str
    host: str
    slots: int
    factor: float
    measured_at: float
    held: dict[int, None] = field(default_factory=dict)
    failures: int = 0
    shut: str = ""


class WorkerPool:
    """Opens a station on every worker that comes, and forgets those that go.

    Args:
        link: To the scheduler.
        session: Of the coordinator.
        opening: Tag, isolation and scratch folder of the stations.
        machines: What is demanded of machines.
        note: Writes an event down, as `note(kind, **facts)`.

    Attributes:
        workers: Workers with a station, by address.
        refused: Why a worker may not take part, by address.
        isolation: The levels that hold.
    """

    def __init__(
        self,
        link: DaskClient,
        session: str,
        opening: tuple[str, str | None, str | None],
        machines: SpeedTerms,
        note: Note,
    ) -> None:
        self._link = link
        self._session = session
        self._opening_with = opening
        self._note = note
        self._chance = random.Random()  # noqa: S311 (which machine a run gets; nothing secret, and nothing decided)
        self._calls = 0
        self._opening: set[str] = set()
        self.machines = HostSpeeds(machines)
        self.workers: dict[str, WorkerRecord] = {}
        self.refused: dict[str, str] = {}
        self.refused_at = 0.0
        self.isolation: set[str] = set()

    @property
    def slots(self) -> int:
        """Runs at once, on all that take part."""
        return sum(worker.slots for worker in self.workers.values() if not worker.shut)

    @property
    def hopeless(self) -> bool:
        """Whether all workers were refused."""
        return not self.slots and not self._opening and bool(self.refused)

    def choose(self, most: int) -> WorkerRecord | None:
        """Pick a random least-loaded worker with fewer than `most` leases per slot; None if all are full."""
        best: list[WorkerRecord] = []
        least = float(most)
        for worker in self.workers.values():
            if worker.shut:
                continue
            load = len(worker.held) // worker.slots
            if load < least:
                best, least = [worker], load
            elif load == least and load < most:
                best.append(worker)
        return self._chance.choice(best) if best else None

    # ------------------------------------------------------------------ coming and going

    def update_workers(self, threads: Mapping[str, int]) -> list[WorkerRecord]:
        """Compare with the workers that are present; return those that have gone."""
        for address in [*self.refused, *self._opening]:
            if address not in threads:
                self._forget(address)
        for address, number in threads.items():
            if number and not (address in self.workers or address in self.refused or address in self._opening):
                self._open_station(address)
        return [self.workers.pop(address) for address in list(self.workers) if address not in threads]

    def release(self, address: str) -> WorkerRecord | None:
        """Forget a worker that has gone; return its record, if it had one."""
        self._forget(address)
        return self.workers.pop(address, None)

    def release_all(self) -> list[WorkerRecord]:
        """Forget all workers: none can be reached any more."""
        gone, self.workers = list(self.workers.values()), {}
        for address in [*self.refused, *self._opening]:
            self._forget(address)
        return gone

    def _forget(self, address: str) -> None:
        self.refused.pop(address, None)
        if address in self._opening:
            self._opening.discard(address)
            self._link.forget([(GREET, address), (OPEN, address)])

    def _open_station(self, address: str) -> None:
        self._opening.add(address)
        self._link.call((GREET, address), address, *GREETING, key=self.key_for(GREET))

    def station_opening(self, address: str, captime: str) -> None:
        """A worker tells which captime it has; the right one is asked to open a station."""
        if address not in self._opening:
            return
        if captime != version("captime"):
            self.refuse(address, f"it has captime {captime}, and the coordinator has {version('captime')}")
            return
        key = self.key_for(OPEN)
        self._link.call((OPEN, address), address, station.open_station, self._session, *self._opening_with, key=key)

    def key_for(self, what: str) -> str:
        """Return a name for a call that no other has."""
        self._calls += 1
        return f"captime-{self._session[:12]}-{what}-{self._calls}"

    def opened(self, address: str, facts: Mapping[str, Any]) -> None:
        """A station answers for the first time."""
        if address not in self._opening:
            return
        self._opening.discard(address)
        host, seconds = str(facts["host"]), float(facts["reference"])
        why = self.machines.admit(host, seconds)
        told = {name: facts[name] for name in ("host", "slots", "isolation", "overhead", "reference", "python")}
        self._note("machine", worker=address, accepted=not why, why=why, **told)
        if why:
            self.refuse(address, why)
            return
        self.isolation.add(str(facts["isolation"]))
        factor = self.machines.factor(host)
        self.workers[address] = WorkerRecord(
            address, str(facts["station"]), host, int(facts["slots"]), factor, time.monotonic()
        )

    def refuse(self, address: str, why: str) -> None:
        """This worker gets nothing, or nothing more."""
        self._opening.discard(address)
        if address in self.workers:
            self.workers[address].shut = why
        self.refused[address] = why
        self.refused_at = time.monotonic()
        self._note("refused", worker=address, why=why)

    def failed(self, worker: WorkerRecord, why: str) -> None:
        """A call came to nothing although the worker is there."""
        worker.failures += 1
        if worker.failures >= _MOST_FAILURES and not worker.shut:
            self.refuse(worker.address, why)

    # ------------------------------------------------------------------ drift

    def measure_again(self) -> None:
        """Ask for the reference where that was long ago."""
        now = time.monotonic()
        for worker in self.workers.values():
            if now - worker.measured_at >= REMEASURE_SECONDS:
                worker.measured_at = now
                key = self.key_for(MEASURE)
                self._link.call(
                    (MEASURE, worker.address), worker.address, station.measure_again, self._session, key=key
                )

    def measured(self, address: str, seconds: float | None) -> None:
        """A machine has done its piece of work again."""
        worker = self.workers.get(address)
        if worker is None or seconds is None:
            return
        off = self.machines.drifted(worker.host, seconds)
        if off is not None:
            self._note("drift", worker=address, host=worker.host, reference=seconds, share=off)
