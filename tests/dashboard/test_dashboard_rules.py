"""The dashboard's rules, on a real port: what is refused, with what, and what every answer carries (W8 to W13, W16)."""

import json
import random
import resource
import string
import threading
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from captime.cli import app
from captime.dashboard import server
from captime.dashboard.access import HEAD, HEADERS, LINE, RESPONSE_HEADERS
from captime.dashboard.server import Address, listening
from captime.errors import ScenarioError
from captime.ledger import ConfigRow, Ledger
from dashboard_server import Served, read_answer, served
from report_ledgers import hand_written, shared_memory

# The registry of HTTP methods at IANA.
METHODS = (
    *"""ACL BASELINE-CONTROL BIND CONNECT COPY DELETE LABEL LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL MKREDIRECTREF
    MKWORKSPACE MOVE OPTIONS ORDERPATCH PATCH POST PRI PROPFIND PROPPATCH PUT REBIND REPORT SEARCH TRACE UNBIND
    UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL""".split(),  # noqa: SIM905 (a list of words)
    *(f"CHECK{way}" for way in ("IN", "OUT")),
)


@pytest.fixture(scope="module")
def dashboard() -> Iterator[Served]:
    """One dashboard for all tests here; the ledger stays open, as during a campaign."""
    path = shared_memory() / "hand.ledger"
    with hand_written(path), served(path) as running:
        yield running


def test_whoever_has_the_cookie_sees_the_state(dashboard: Served) -> None:
    """The certificate, what runs now, the newest outcomes and the log, as JSON."""
    status, headers, body = dashboard.get("/state?width=600")
    assert (status, headers["content-type"]) == (200, "application/json")
    state = json.loads(body)
    assert state["statement"].startswith("With probability at least 90 %, fast is within 0.2500 of the best of these 3")
    assert [(run["config"], run["instance"]) for run in state["live"]["slots"]] == [("slow", "instance-3")]
    assert [run["verdict"] for run in state["recent"]][:3] == ["lost", "answered", "memout"]
    assert {figure["name"] for figure in state["figures"]} == {"epsilon", "intervals"}
    same = json.loads(dashboard.get(f"/state?width=600&seen={state['version']}")[2])
    assert (same["version"], same["same"]) == (state["version"], True)
    assert set(same) == {"version", "same", "live"}


def test_every_answer_carries_our_headers(dashboard: Served) -> None:
    """Pages, data and refusals of every kind; never a word that lets other sites in."""
    answers = [
        dashboard.get("/"),
        dashboard.get("/app.js"),
        dashboard.get("/state"),
        dashboard.get("/nothing"),
        dashboard.get("/", method="POST"),
        dashboard.get("/state", ("Host", "evil.example")),
        dashboard.get("/state?width=x"),
        dashboard.talk(b"GET /" + b"a" * (LINE + 10) + b" HTTP/1.1\r\n\r\n"),
    ]
    assert [status for status, _, _ in answers] == [200, 200, 200, 404, 405, 403, 400, 414]
    for _, headers, _ in answers:
        for name, value in RESPONSE_HEADERS:
            assert headers[name.decode("ascii")] == value.decode("ascii")
        assert not [name for name in headers if name.startswith("access-control") or name == "server"]


@pytest.mark.parametrize("method", METHODS)
def test_only_get_and_head_are_answered(dashboard: Served, method: str) -> None:
    """405 for every other method of the registry, with and without a right to look (W9)."""
    assert dashboard.get("/state", method=method)[0] == 405
    assert dashboard.get("/nothing", ("Cookie", ""), method=method)[0] == 405


def test_made_up_methods_are_refused_and_head_has_no_body(dashboard: Served) -> None:
    """Random tokens, lower case too; the allow-list is what the answer says (W9)."""
    rng = random.Random(9)  # noqa: S311 (words for a test)
    for _ in range(20):
        word = "".join(rng.choices(string.ascii_letters, k=rng.randint(2, 12)))
        assert dashboard.get("/state", method=word)[0] == 405
    assert dashboard.get("/state", method="get")[0] == 405
    status, headers, body = dashboard.get("/", method="HEAD")
    assert (status, body) == (200, b"")
    assert dashboard.get("/", method="PUT")[1]["allow"] == "GET, HEAD"
    assert int(headers["content-length"]) > 100


def hosts(port: int) -> list[str | None]:
    """Twelve hosts that are not ours."""
    return [
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        f"127.0.0.1.:{port}",
        f"localhost.:{port}",
        f"user@127.0.0.1:{port}",
        f"LOCALHOST:{port}",
        f"localhost.evil.example:{port}",
        f"0.0.0.0:{port}",
        f"127.1:{port}",
        "",
        None,
    ]


def test_another_host_name_is_refused_before_the_cookie_is_looked_at(dashboard: Served) -> None:
    """DNS rebinding: 403 and an empty body for twelve kinds, and for two hosts at once (W11)."""
    refused = 0
    for host in hosts(dashboard.port):
        lines = ["GET /state HTTP/1.1", f"Cookie: {dashboard.cookie.decode('ascii')}"]
        lines += [] if host is None else [f"Host: {host}"]
        status, _, body = dashboard.talk("\r\n".join([*lines, "", ""]).encode("latin-1"))
        refused += (status, body) == (403, b"")
    assert refused == 12
    ours = f"Host: 127.0.0.1:{dashboard.port}\r\n"
    assert dashboard.talk(f"GET / HTTP/1.1\r\n{ours}{ours}\r\n".encode("ascii"))[0] == 403
    for name in ("127.0.0.1", "localhost", "[::1]"):
        assert dashboard.get("/state", ("Host", f"{name}:{dashboard.port}"))[0] == 200


def test_thirty_ways_of_asking_from_another_site(dashboard: Served) -> None:
    """Fetch metadata decide; where a browser sends none, the origin has to be absent or ours (W10)."""
    ours, port = f"http://127.0.0.1:{dashboard.port}", dashboard.port
    origins = (None, ours, "http://evil.example", "null", f"http://localhost:{port + 1}", f"https://127.0.0.1:{port}")
    tried = wrong = 0
    for site in (None, "same-origin", "none", "same-site", "cross-site"):
        for origin in origins:
            asked = [("Sec-Fetch-Site", site)] if site else []
            asked += [("Origin", origin)] if origin else []
            asked += [("Sec-Fetch-Mode", "no-cors" if tried % 2 else "navigate")] if site else []
            allowed = site in {None, "same-origin", "none"} and origin in {None, ours}
            tried += 1
            wrong += dashboard.get("/state", *asked)[0] != (200 if allowed else 403)
    assert (tried, wrong) == (30, 0)


def test_without_the_right_cookie_there_is_no_state(dashboard: Served) -> None:
    """None, wrong, truncated, another port's, twice: 403; and the page itself holds no data (W12)."""
    name, value = dashboard.rules.cookie_name, dashboard.rules.session
    jars = [
        "",
        f"{name}=wrong",
        f"{name}={value[:-1]}",
        f"captime-{dashboard.port + 1}={value}",
        f"{name}={value}; {name}=other",
        f"x{name}={value}",
        f"{name}={dashboard.rules.token}",
    ]
    assert [dashboard.get("/state", ("Cookie", jar))[0] for jar in jars] == [403] * len(jars)
    assert dashboard.get("/", ("Cookie", ""))[0] == 200
    assert b"fast" not in dashboard.get("/", ("Cookie", ""))[2]


def test_the_token_is_exchanged_for_a_strict_cookie(dashboard: Served) -> None:
    """Only the right one, whole and once; the cookie is HttpOnly and SameSite=Strict (W12)."""
    token = dashboard.rules.token
    for shown in ([], [token[:-1]], ["x"], [token, token], [dashboard.rules.session]):
        asked = [("X-Captime-Token", each) for each in shown]
        assert dashboard.get("/enter", ("Cookie", ""), *asked)[0] == 403
    status, headers, body = dashboard.get("/enter", ("Cookie", ""), ("X-Captime-Token", token))
    assert (status, body) == (204, b"")
    assert headers["set-cookie"] == f"{dashboard.rules.cookie}"
    assert {"HttpOnly", "SameSite=Strict"} <= set(headers["set-cookie"].split("; "))
    assert len(token) >= 43
    assert token not in repr(dashboard.rules)
    crossed = dashboard.get("/enter", ("X-Captime-Token", token), ("Sec-Fetch-Site", "cross-site"))
    assert crossed[0] == 403


def test_a_ticket_is_good_for_one_use(dashboard: Served) -> None:
    """What a browser is started with stands in the list of processes: the second who shows it is refused."""
    ticket = dashboard.rules.ticket()
    shown = ("X-Captime-Token", ticket)
    assert dashboard.get("/enter", ("Cookie", ""), shown, shown)[0] == 403
    assert dashboard.get("/enter", ("Cookie", ""), shown)[0] == 204
    assert dashboard.get("/enter", ("Cookie", ""), shown)[0] == 403
    assert dashboard.get("/enter", ("Cookie", ""), ("X-Captime-Token", dashboard.rules.token))[0] == 204
    assert ticket not in repr(dashboard.rules)


def test_the_browser_is_opened_with_a_ticket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`--open` does not show the lasting token; the address that is printed has it."""
    opened: list[str] = []

    def announced(path: Path, address: object, announce: Callable[[str, str], None]) -> None:
        announce("lasting", "ticket")

    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(server, "serve", announced)
    ledger = tmp_path / "a.ledger"
    Ledger.create(ledger, {}, [ConfigRow(0, "fast")]).close()
    result = CliRunner().invoke(app, ["dashboard", str(ledger), "--open"])
    assert (result.exit_code, opened) == (0, ["ticket"])
    assert "lasting" in result.stdout


def test_no_path_leads_out(dashboard: Served) -> None:
    """Two hundred ways to say another file: 404 for all of them, because no file is ever looked up (W13)."""
    ups = ["..", "%2e%2e", "%252e%252e", "..;", ".%2e", "..%00", "..\\", "%2e%2e%5c", "%c0%ae%c0%ae", "....//"]
    ends = ["etc/passwd", "app.js", "state", "index.html", "rules.py"]
    starts = ["/", "/app.js/", "//", "/static/"]
    paths = [f"{start}{up}/{end}" for start in starts for up in ups for end in ends]
    assert len(paths) == 200
    statuses = [dashboard.get(path)[0] for path in paths]
    assert set(statuses) == {404}
    for path in ("/state;x", "/%73tate", "/state/", "//state", "/STATE", "/app.js%00", "/state%20"):
        assert dashboard.get(path)[0] == 404


def test_long_heads_and_bodies_are_refused(dashboard: Served) -> None:
    """Request line over 8 KiB: 414; headers over 16 KiB or 100: 431; any body: 413 (W8)."""
    host = f"Host: 127.0.0.1:{dashboard.port}\r\n"
    many = "".join(f"x{number}: y\r\n" for number in range(HEADERS + 1))
    assert dashboard.talk(f"GET /?{'a' * LINE} HTTP/1.1\r\n{host}\r\n".encode("ascii"))[0] == 414
    assert dashboard.talk(b"GET /" + b"a" * (LINE + 1))[0] == 414
    assert dashboard.talk(f"GET / HTTP/1.1\r\n{host}x: {'a' * HEAD}\r\n\r\n".encode("ascii"))[0] == 431
    assert dashboard.talk(f"GET / HTTP/1.1\r\n{host}{many}\r\n".encode("ascii"))[0] == 431
    for announced in ("Content-Length: 1073741824", "Transfer-Encoding: chunked", "Content-Length: 5"):
        assert dashboard.talk(f"GET / HTTP/1.1\r\n{host}{announced}\r\n\r\nhello".encode("ascii"))[0] == 413


def test_nothing_hides_behind_a_request(dashboard: Served) -> None:
    """Pipelined requests get no answer: one request, one connection (W8)."""
    head = f"GET /app.css HTTP/1.1\r\nHost: 127.0.0.1:{dashboard.port}\r\n\r\n".encode("ascii")
    with dashboard.connect() as sock:
        sock.sendall(head * 50)
        status, _, body = read_answer(sock)
    assert status == 200
    assert body.count(b"HTTP/1.1") == 0


def test_slow_and_endless_clients_do_not_keep_others_waiting(dashboard: Served) -> None:
    """Five hundred who never finish, and one who sends without end: a good client is served, memory stays (W8)."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slow = []
    stop = threading.Event()

    def endless() -> None:
        with dashboard.connect() as sock:
            sock.settimeout(2.0)
            try:
                sock.sendall(b"GET / HTTP/1.1\r\nx: ")
                while not stop.is_set():
                    sock.sendall(b"a" * 65536)
            except OSError:
                pass

    flood = threading.Thread(target=endless)
    flood.start()
    for number in range(500):
        try:
            sock = dashboard.connect()
            sock.sendall(b"GET / HTTP/1.1\r\nHost: ")
            slow.append(sock)
        except OSError:
            continue
        if number % 50 == 49:
            # Slow clients stay until the end, so an answer at all is one that did not wait for them.
            assert dashboard.get("/state")[0] == 200
    stop.set()
    flood.join()
    for sock in slow:
        sock.close()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown <= 20 * 1024


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])  # noqa: S104 (refused)
def test_a_public_address_is_refused_without_insisting_and_tls(host: str, tmp_path: Path) -> None:
    """Saying that one knows is not enough, and neither is TLS alone (W16)."""
    for address in (
        Address(host),
        Address(host, public=True),
        Address(host, certificate=tmp_path / "c", key=tmp_path / "k"),
        Address(host, public=True, certificate=tmp_path / "c"),
    ):
        with pytest.raises(ScenarioError, match="i-know-it-is-public"):
            listening(address)


def test_it_listens_on_loopback_at_a_port_of_its_own() -> None:
    """Port 0 by default; a port that is in use is not taken over (W16)."""
    with listening(Address()) as first, listening(Address()) as second:
        assert first.getsockname()[0] == "127.0.0.1"
        assert first.getsockname()[1] != second.getsockname()[1]
        assert first.getsockopt(1, 2) == 0
        with pytest.raises(ScenarioError, match="cannot listen"):
            listening(Address(port=first.getsockname()[1]))
