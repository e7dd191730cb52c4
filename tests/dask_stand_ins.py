"""A Dask cluster that is not there: workers, leases and losses by the word of a test, without a clock or a process."""

import socket
from collections.abc import Callable, Hashable, Sequence
from importlib.metadata import version
from typing import Any

from captime.executors import dask_worker as station
from captime.executors.dask import DaskExecutor, DaskTerms
from captime.executors.dask_client import CallAnswered, CallFailed, News, WorkersPresent
from captime.executors.dask_workers import GREETING, SpeedTerms
from captime.programs.protocol import Program
from captime.runs import RunOutcome
from captime.supervision.messages import Launch, Report

ANY = DaskTerms(machines=SpeedTerms("any"))


class ScriptedLink:
    """Keeps what is called, and says what a test wants to be heard.

    Attributes:
        leases: Orders of leases that have not been answered, by number.
        at: Where they were sent.
        shouted: What was called beside the tasks.
        keys: Dask's names of all calls.
        forgotten: Calls that are not waited for any more.
    """

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.leases: dict[int, dict[str, Any]] = {}
        self.at: dict[int, str] = {}
        self.shouted: list[tuple[tuple[str, ...], Callable[..., Any], tuple[Any, ...], Hashable]] = []
        self.keys: list[str] = []
        self.forgotten: list[Hashable] = []
        self.facts: dict[str, dict[str, Any]] = {}
        self._threads: dict[str, int] = {}
        self._inbox: list[News] = []
        self._heard, self._bell = socket.socketpair()
        self._heard.setblocking(False)

    # ------------------------------------------------------------------ what the executor calls

    def fileno(self) -> int:
        """Readable when there is news."""
        return self._heard.fileno()

    def news(self) -> list[News]:
        """What the test has said."""
        if self._inbox:
            self._heard.recv(1 << 20)
        found, self._inbox = self._inbox, []
        return found

    def call(self, call: Hashable, address: str, function: Callable[..., Any], *arguments: Any, key: str) -> None:
        """Stations open at once; leases wait for the test."""
        self.keys.append(key)
        if function is GREETING[0]:
            facts = self.facts.get(address, {})
            if "greeting" in facts:
                self.say(CallFailed(call, facts["greeting"]))
            else:
                self.say(CallAnswered(call, facts.get("captime", version("captime"))))
        elif function is station.open_station:
            facts = self.facts.get(address, {})
            if "raises" in facts:
                self.say(CallFailed(call, facts["raises"]))
            else:
                self.say(CallAnswered(call, {**self._plain(address), **facts}))
        elif function is station.run_lease:
            assert isinstance(call, int)
            self.leases[call], self.at[call] = arguments[0], address

    def forget(self, calls: Sequence[Hashable]) -> None:
        """Written down; a careless network may still deliver them."""
        self.forgotten.extend(calls)

    def shout(
        self, addresses: Sequence[str], function: Callable[..., Any], *arguments: Any, call: Hashable = None
    ) -> None:
        """Written down."""
        self.shouted.append((tuple(addresses), function, arguments, call))

    def close(self, addresses: Sequence[str], function: Callable[..., Any], *arguments: Any) -> None:
        """Nothing more."""
        self.shout(addresses, function, *arguments)
        self._heard.close()
        self._bell.close()

    # ------------------------------------------------------------------ what a test says

    def say(self, *news: News) -> None:
        """Let this be heard."""
        self._inbox.extend(news)
        self._bell.send(b"!")

    def workers(self, **threads: int) -> None:
        """These are there now."""
        self._threads = threads
        self.say(WorkersPresent(dict(threads)))

    def answer(self, number: int, seconds: float = 0.5, *, slot: int = 0, ended: str = "exit") -> None:
        """A run has ended after this many CPU seconds."""
        spent = round(seconds * 1e9)
        exit_code = 0 if ended == "exit" else None
        report = Report(number, ended, exit_code=exit_code, cpu_ns=spent, wall_ns=spent, runtime_ns=spent)  # type: ignore[arg-type] # a test names a real one
        self.leases.pop(number, None)
        self.say(CallAnswered(number, ("report", report.to_json(), slot)))

    def launch(self, number: int) -> Launch:
        """What a lease says."""
        return Launch.from_json(self.leases[number]["launch"])

    def _plain(self, address: str) -> dict[str, Any]:
        return {
            "station": f"station-{address}",
            "host": f"host-{address}",
            "slots": self._threads.get(address, 1),
            "isolation": "subreaper",
            "overhead": [0.001, 0.001, 0.002],
            "reference": 0.05,
            "python": "3.11.0",
            "captime": version("captime"),
            "pid": 1,
        }


class Watched:
    """An executor on a scripted link, and everything it has told.

    Args:
        program: What is run.
        terms: How.

    Attributes:
        events: What was noted, as pairs of kind and facts.
        late: Outcomes of attempts that had been given up.
    """

    def __init__(self, program: Program, terms: DaskTerms = ANY) -> None:
        self.links: list[ScriptedLink] = []
        self.executor = DaskExecutor(program, self._connect, tag="test", terms=terms)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.late: list[RunOutcome] = []
        self.executor.tell_events(lambda kind, **facts: self.events.append((kind, facts)), self.late.extend)

    def _connect(self, topic: str) -> Any:
        self.links.append(ScriptedLink(topic))
        return self.links[0]

    @property
    def link(self) -> ScriptedLink:
        """The link."""
        return self.links[0]

    def kinds(self) -> list[str]:
        """Kinds of what was noted."""
        return [kind for kind, _ in self.events]
