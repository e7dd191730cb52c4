"""Report and dashboard in a real browser: marks are counted, payloads do not run, news arrive, phones can read."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsers import Page, browser
from captime.ledger import ConfigRow, Ledger, LedgerReader, SampleRow
from captime.ledger.ownership import SlotBoard, SlotId
from captime.report.ledger_data import LedgerData, read_story
from captime.report.page import report_page, write_report
from captime.report.views import FIGURES, figures_of
from captime.report.views.duel import duel
from captime.runs import RunOutcome, RunRequest, Status, Verdict
from dashboard_server import served
from report_ledgers import PAYLOADS, RACE_CONFIGS, SCENARIO, hand_written, hostile, raced_ledger, shared_memory

# Importance needs a space of parameters; these campaigns have a list of configurations.
LISTED = [name for name in FIGURES if name != "importance"]

# Set by every payload that runs.
# Milliseconds until a test that hangs is ended; long enough for a busy machine.
PATIENCE = 120_000
OWNED = "window.owned === 1 || document.title === 'owned'"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for all tests here."""
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def story() -> LedgerData:
    """A race."""
    return read_story(raced_ledger())


@pytest.fixture(scope="module")
def report(story: LedgerData) -> str:
    """Address of its report."""
    path = shared_memory() / "race.html"
    write_report(report_page(story, figures_of(story)), path)
    return path.as_uri()


def test_the_report_opens_without_complaint_and_has_every_mark(chromium: Any, report: str, story: LedgerData) -> None:
    """As many marks as the ledger has rows for them."""
    seen = Page(chromium)
    seen.page.goto(report)
    assert seen.troubles == []
    with LedgerReader(raced_ledger()) as reader:
        certificates = len(reader.certificates())
    assert seen.count("section.figure") == len(LISTED)
    assert seen.count(".wide .chart-epsilon circle.hit") == certificates
    assert seen.count(".wide .chart-epsilon .points path") == len(story.progress.out)
    assert seen.count(".wide .chart-intervals .spans > g") == RACE_CONFIGS
    assert seen.count(".wide .chart-spending .points path") == RACE_CONFIGS
    assert seen.count(".wide .chart-parallel path.line[data-tip]") == RACE_CONFIGS
    assert seen.count(".chart-effect") == 3
    # Six configurations and the utility; nine of the legend are lines too, but not paths.
    assert seen.count(".wide .chart-runtimes .marks path.line") == 7
    assert seen.count("#duel .chart-box") == 1
    assert seen.count("#duel select.versus") == 2
    assert seen.count("#whatif .chart-box") == 6
    assert seen.count("#whatif .chart-box:not(.later)") == 3
    seen.page.close()


def test_words_appear_under_the_pointer(chromium: Any, report: str) -> None:
    """An interval says whose it is; a cell of the heat map says what became of the run."""
    seen = Page(chromium)
    seen.page.goto(report)
    seen.page.locator(".chart-intervals .spans > g .hit-line").first.hover(force=True)
    assert "utility in [" in seen.page.locator("#tip").inner_text()
    seen.page.locator(".chart-heat .cell").first.scroll_into_view_if_needed()
    box = seen.page.locator(".wide .chart-heat .cells").bounding_box()
    seen.page.mouse.move(box["x"] + 3, box["y"] + 3)
    words = seen.page.locator("#tip").inner_text()
    assert "position" in words
    assert "answered" in words or "cut" in words
    assert seen.troubles == []
    seen.page.close()


def test_any_two_can_be_compared_on_the_page(chromium: Any, report: str, story: LedgerData) -> None:
    """Marks, interval and axes are those of the pair; turned around, the interval turns; a pair is two."""
    seen = Page(chromium)
    seen.page.goto(report)
    lists = seen.page.locator("#duel select.versus")
    names = lists.nth(0).locator("option").all_inner_texts()
    assert len(names) == RACE_CONFIGS
    marks, counted = seen.page.locator("#duel .wide .points"), "all => all.map(each => each.childElementCount)"
    drawn_first = marks.evaluate_all(counted)
    start = [lists.nth(side).input_value() for side in (0, 1)]
    for one, other in ((2, 5), (5, 2), (11, 0)):
        lists.nth(0).select_option(str(one))
        lists.nth(1).select_option(str(other))
        fought = duel(story, story.names.index(names[one]), story.names.index(names[other]))
        assert fought is not None
        for copy in ("wide", "narrow"):
            assert seen.count(f"#duel .{copy} .points path") == len(fought.position)
        title = seen.page.locator("#duel h3").first.inner_text()
        low, high = (float(end) for end in title.partition("[")[2].partition("]")[0].split(", "))
        # Rounded outward, to three digits.
        assert fought.lower - 0.0011 <= low <= fought.lower
        assert fought.upper <= high <= fought.upper + 0.0011
        assert f"{len(fought.position):,} common instances" in title
        labels = seen.page.locator("#duel .axis-label").all_text_contents()
        assert labels == 2 * [f"time of {names[other]}", f"time of {names[one]}"]
    lists.nth(0).select_option("0")
    assert [lists.nth(side).input_value() for side in (0, 1)] == ["0", "11"]
    seen.page.locator("#duel svg .points path").first.dispatch_event("pointermove", {"clientX": 5, "clientY": 5})
    assert names[0] in seen.page.locator("#tip").inner_text()
    for side in (0, 1):
        lists.nth(side).select_option(start[side])
    # Drawn by the script, the first pair has the marks that it came with.
    assert marks.evaluate_all(counted) == drawn_first
    assert seen.troubles == []
    seen.page.close()


def test_other_utilities_are_shown_for_usual_and_for_measured_times(chromium: Any, report: str) -> None:
    """One list changes all charts of the figure."""
    seen = Page(chromium)
    seen.page.goto(report)
    assert "1 h" in seen.page.locator("#whatif .chart-box:not(.later) .tick").all_text_contents()
    seen.page.locator("#whatif select.choose").select_option("1")
    kinds = seen.page.locator("#whatif .chart-box:not(.later) .wide svg").evaluate_all(
        "all => all.map(each => each.getAttribute('class').split('whatif-')[1])"
    )
    assert kinds == ["deadline", "log-laplace", "parc"]
    assert seen.troubles == []
    seen.page.close()


def test_tables_can_be_saved(chromium: Any, report: str) -> None:
    """As CSV with every number unrounded."""
    seen = Page(chromium)
    seen.page.goto(report)
    seen.page.locator("#intervals summary").click()
    with seen.page.expect_download() as waiting:
        seen.page.locator("#intervals button[data-save]").click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8-sig")
    rows = text.strip().splitlines()
    assert rows[0] == "rank,configuration,utility,lower,upper,runs,cpu_seconds,standing"
    assert len(rows) == RACE_CONFIGS + 1
    assert seen.troubles == []
    seen.page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_fits_a_phone_in_light_and_dark(chromium: Any, report: str, scheme: str) -> None:
    """Nothing sticks out sideways, and the background follows the reader's wish."""
    seen = Page(chromium, width=380, height=780, scheme=scheme)
    seen.page.goto(report)
    assert seen.overflow() <= 0
    # Every chart is drawn for this width, none is cut off, and text has its size.
    shown = seen.page.locator("svg.chart:visible")
    assert shown.count() >= len(LISTED)
    assert max(shown.nth(place).bounding_box()["width"] for place in range(shown.count())) <= 380
    least = seen.page.evaluate(
        "Math.min(...[...document.querySelectorAll('svg.chart')].filter(each => each.clientWidth)"
        ".map(each => each.getBoundingClientRect().width / each.viewBox.baseVal.width))"
    )
    assert least >= 0.9
    paper = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(15, 20, 25)")
    assert seen.troubles == []
    seen.page.close()


def test_the_report_prints(chromium: Any, report: str) -> None:
    """As a PDF of some pages, without buttons."""
    seen = Page(chromium)
    seen.page.goto(report)
    content = seen.page.pdf()
    assert content.startswith(b"%PDF")
    assert content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") + content.count(b"/Type /Page/") >= 3
    seen.page.emulate_media(media="print")
    assert not seen.page.locator("header").is_visible()
    seen.page.close()


def test_sixty_payloads_in_every_field_run_nowhere(chromium: Any) -> None:
    """In the report and in the dashboard: no dialog, no mutation, no complaint of our own policy (W14)."""
    path = shared_memory() / "hostile.ledger"
    hostile(path)
    told = read_story(path)
    page = path.with_suffix(".html")
    write_report(report_page(told, figures_of(told)), page)
    seen = Page(chromium)
    seen.page.goto(page.as_uri())
    for details in seen.page.locator("details").all():
        details.evaluate("node => { node.open = true; }")
    for mark in seen.page.locator("[data-tip]").all()[:60]:
        mark.dispatch_event("pointermove", {"clientX": 5, "clientY": 5})
    assert not seen.page.evaluate(OWNED)
    assert seen.count("script") == 1
    assert seen.troubles == []
    seen.page.close()
    with served(path) as running:
        live = Page(chromium)
        live.page.goto(running.address)
        live.page.wait_for_selector("#recent td:nth-child(2)", timeout=PATIENCE)
        live.page.wait_for_selector("#intervals svg", timeout=PATIENCE)
        for mark in live.page.locator("[data-tip]").all()[:60]:
            mark.dispatch_event("pointermove", {"clientX": 5, "clientY": 5})
        time.sleep(0.3)
        assert not live.page.evaluate(OWNED)
        assert live.count("script") == 1
        assert live.count("img, iframe, object, embed") == 0
        assert live.troubles == []
        live.page.close()


def test_sixty_payloads_on_the_board_of_slots_run_nowhere(chromium: Any, tmp_path: Path) -> None:
    """As names of configurations, instances, machines and workers of runs that are under way (W14)."""
    path = tmp_path / "hostile.ledger"
    configs = [ConfigRow(index, payload) for index, payload in enumerate(PAYLOADS)]
    with Ledger.create(path, SCENARIO, configs) as ledger, SlotBoard(path, ledger.campaign_id) as board:
        for index, payload in enumerate(PAYLOADS):
            ledger.started([RunRequest(index, index, 60.0)], {index: SampleRow(index, payload, "", 1)})
            board.running(SlotId(index, payload[:70], payload[:70]), RunRequest(index, index, 60.0))
        with served(path) as running:
            seen = Page(chromium)
            seen.page.goto(running.address)
            seen.page.wait_for_selector("#slots .slot", timeout=PATIENCE)
            time.sleep(0.3)
            assert seen.count("#slots .slot") == len(PAYLOADS)
            assert "<script>" in seen.page.locator("#slots").inner_text()
            assert not seen.page.evaluate(OWNED)
            assert seen.count("script") == 1
            assert seen.troubles == []
            seen.page.close()


def test_the_trap_for_payloads_catches_those_that_run(chromium: Any) -> None:
    """On a page without our care the same payloads are noticed: by what they set, and by their dialog."""
    for payload in ("<script>window.owned=1</script>", "<img src=x onerror=window.owned=1>"):
        seen = Page(chromium)
        seen.page.set_content(f"<title>careless</title>{payload}")
        seen.page.wait_for_function(OWNED, timeout=PATIENCE)
        seen.page.close()
    seen = Page(chromium)
    seen.page.set_content("<script>alert(1)</script>")
    assert seen.troubles == ["dialog: 1"]
    seen.page.close()


def test_the_dashboard_shows_a_new_run_by_itself(chromium: Any, tmp_path: Path) -> None:
    """A run that starts, and its outcome; without loading the page again, and the token leaves the address."""
    path = tmp_path / "hand.ledger"
    with hand_written(path) as ledger, served(path) as running:
        seen = Page(chromium)
        seen.page.goto(running.address)
        seen.page.wait_for_selector("#epsilon svg", timeout=PATIENCE)
        assert seen.page.url == f"http://127.0.0.1:{running.port}/"
        assert "fast is within 0.2500" in seen.page.locator("#statement").inner_text()
        assert seen.page.locator("#state").inner_text() == "running"
        assert seen.page.locator("#slots .slot .name").all_inner_texts() == ["slow"]
        assert seen.count("#epsilon circle.hit") == 3
        assert seen.count("#intervals .spans > g") == 3
        for position in (4, 5, 6):
            request = RunRequest(0, position, 60.0)
            ledger.started([request], {position: SampleRow(position, f"news-{position}", "", 1)})
            seen.page.wait_for_selector(f"#slots .place:has-text('news-{position}')", timeout=PATIENCE)
            ledger.observed([RunOutcome(request, Status.COMPLETED, 1.0, 1.0, "", Verdict.ANSWERED)])
            seen.page.wait_for_selector(f"#recent td:has-text('news-{position}')", timeout=PATIENCE)
        assert seen.troubles == []
        seen.page.close()


FILLED = """() => {
    const tile = document.querySelector("#slots .slot");
    const [bar, rail] = [".bar", ".rail"].map((part) => tile.querySelector(part).getBoundingClientRect().width);
    return bar / rail;
}"""


@pytest.mark.parametrize("width", [360, 1100])
def test_the_dashboard_shows_what_runs_on_which_slot(chromium: Any, tmp_path: Path, width: int) -> None:
    """A tile per slot, with a bar that grows towards the captime; news come by themselves; it fits a phone."""
    path = tmp_path / "hand.ledger"
    with hand_written(path) as ledger, SlotBoard(path, ledger.campaign_id) as board, served(path) as running:
        board.running(SlotId(0, "here"), RunRequest(1, 3, 60.0), 30.0)
        board.idle(SlotId(1, "here"))
        seen = Page(chromium, width=width)
        seen.page.goto(running.address)
        seen.page.wait_for_selector("#slots .slot.idle", timeout=PATIENCE)
        assert seen.count("#slots .slot") == 2
        tile = seen.page.locator("#slots .slot").first
        assert "slot 0" in tile.inner_text()
        assert "slow" in tile.inner_text()
        assert " of 1 min" in tile.inner_text()
        # In one go: tiles are drawn anew with every piece of news.
        assert 0.45 <= seen.page.evaluate(FILLED) <= 1.0
        request = RunRequest(0, 9, 60.0)
        ledger.started([request], {9: SampleRow(9, "brand-new", "", 1)})
        board.running(SlotId(1, "here"), request)
        seen.page.wait_for_selector("#slots .place:has-text('brand-new')", timeout=PATIENCE)
        assert seen.count("#slots .slot.idle") == 0
        assert seen.overflow() <= 0
        assert seen.troubles == []
        seen.page.close()


def test_a_campaign_that_is_not_running_shows_nothing_running(chromium: Any) -> None:
    """And says so."""
    with served(raced_ledger()) as running:
        seen = Page(chromium)
        seen.page.goto(running.address)
        seen.page.wait_for_selector("#intervals svg", timeout=PATIENCE)
        assert seen.count("#slots .slot") == 0
        assert "not running" in seen.page.locator("#board").inner_text()
        assert seen.page.locator("#state").inner_text() == "closed"
        seen.page.close()


def test_the_dashboard_fits_a_phone(chromium: Any) -> None:
    """One column, nothing sticks out, charts are drawn for the width there is."""
    with served(raced_ledger()) as running:
        seen = Page(chromium, width=360, height=740, scheme="dark")
        seen.page.goto(running.address)
        seen.page.wait_for_selector("#intervals svg", timeout=PATIENCE)
        assert seen.overflow() <= 0
        width = seen.page.locator("#epsilon svg").bounding_box()["width"]
        assert 280 <= width <= 360
        tick = seen.page.evaluate("parseFloat(getComputedStyle(document.querySelector('#epsilon .tick')).fontSize)")
        assert tick >= 11.0
        assert seen.troubles == []
        seen.page.close()


def test_outcomes_can_be_read_on_a_phone_without_scrolling_sideways(chromium: Any, tmp_path: Path) -> None:
    """Verdict, time and last words are inside the window, and a name is not cut into a column of syllables."""
    path = tmp_path / "phone.ledger"
    configs = [ConfigRow(0, "restarts-of-the-luby-sequence"), ConfigRow(1, "plain")]
    with Ledger.create(path, SCENARIO, configs) as ledger:
        runs = [RunRequest(config, 0, 56.3) for config in (0, 1)]
        ledger.started(runs, {0: SampleRow(0, "instances/industrial/verification-0815.cnf", "", 1)})
        crash = RunOutcome(runs[0], Status.FAILED, 27.1, 27.1, "exit code 3, accepted: 10, 20", Verdict.CRASH)
        ledger.observed([crash, RunOutcome(runs[1], Status.COMPLETED, 8.56, 8.56, "", Verdict.ANSWERED)])
    with served(path) as running:
        seen = Page(chromium, width=390, height=844)
        seen.page.goto(running.address)
        seen.page.wait_for_selector("#recent .of-verdict", timeout=PATIENCE)
        assert seen.overflow() <= 0
        holder = seen.page.locator("#recent").evaluate("all => [all.scrollWidth, all.parentElement.clientWidth]")
        assert holder[0] <= holder[1]
        cells = seen.page.locator("#recent td:visible")
        boxes = [cells.nth(place).bounding_box() for place in range(cells.count())]
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
        assert "exit code 3" in seen.page.locator("#recent .of-more").all_inner_texts()[-1]
        assert max(box["height"] for box in boxes) < 50
        assert seen.troubles == []
        seen.page.close()


@pytest.mark.parametrize("width", [1280, 1024])
def test_the_bar_of_the_report_fits_the_window(chromium: Any, report: str, width: int) -> None:
    """Every figure can be reached from it; eleven questions in full were 1957 pixels wide, and the last six hidden."""
    seen = Page(chromium, width=width, height=800)
    seen.page.goto(report)
    links = seen.page.locator("nav a")
    assert links.count() == len(LISTED)
    ends = [links.nth(place).bounding_box() for place in range(links.count())]
    assert max(box["x"] + box["width"] for box in ends) <= width
    assert seen.page.locator("header").bounding_box()["height"] < 50
    seen.page.close()


def test_without_the_token_the_page_says_how_to_get_in(chromium: Any) -> None:
    """No data, and a sentence that helps; a request from another site is refused by the browser's own words."""
    with served(raced_ledger()) as running:
        # A context of its own: cookies of other tests stay outside.
        context = chromium.new_context()
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{running.port}/")
        page.wait_for_selector("#state.trouble", timeout=PATIENCE)
        assert "Open the address" in page.locator("#statement").inner_text()
        assert page.locator("#recent td").count() == 0
        context.close()
