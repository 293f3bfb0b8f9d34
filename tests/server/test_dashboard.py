"""The dashboard in headless Chromium, against a live server."""

import itertools
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from specserve.config.policy import BatchThresholdPolicy
from specserve.server.dashboard_routes import page_parts
from specserve.testing.script import count_up
from tests.server.browser import chromium, page_without_errors
from tests.server.live import MODEL, LiveServer, live_server, make_engine, server_config

THRESHOLD = BatchThresholdPolicy(
    kind="batch_threshold", disable_above=4, resume_at=2, min_dwell_rounds=1, while_off="warm"
)
LETTERS = count_up(start=ord("a"), stop=ord("z") + 1, run_length=3)
BAD_REQUEST = "400 (Bad Request)"
UNAUTHORIZED = "401 (Unauthorized)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@contextmanager
def serving(**options: Any) -> Iterator[LiveServer]:  # noqa: ANN401
    engine = make_engine(LETTERS, policy=THRESHOLD, round_seconds=0.005)
    with live_server(engine, watch_seconds=0.1, **options) as live:
        yield live


@pytest.fixture
def live() -> Iterator[LiveServer]:
    with serving() as server:
        yield server


@contextmanager
def load(live: LiveServer, num_clients: int) -> Iterator[None]:
    """So many clients that generate all the time, until the block ends."""
    done = threading.Event()

    def client() -> None:
        while not done.is_set():
            live.post("/v1/completions", {"model": MODEL, "prompt": "x", "max_tokens": 60})

    clients = [threading.Thread(target=client) for _ in range(num_clients)]
    for thread in clients:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in clients:
            thread.join(10)


def open_page(page: Page, live: LiveServer) -> None:
    page.goto(f"{live.base_url}/dashboard")
    expect(page.locator("#status-word")).to_have_text("ready")
    expect(page.locator("[id='policy.disable_above']")).to_have_value("4")


def field(page: Page, key: str) -> Any:  # noqa: ANN401
    return page.locator(f"[id='{key}']")


def figure(page: Page, name: str) -> Callable[[], float]:
    def read() -> float:
        text = page.locator(f"#figures div:has(dt:text-is('{name}')) dd").inner_text()
        return float(re.sub(r"[ ,]|of.*", "", text).replace("–", "nan"))

    return read


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("width", "color_scheme"), [*itertools.product([1280, 400], ["light", "dark"])]
)
def test_it_loads_without_a_word_on_the_console_and_fits_its_width(
    browser: Browser, live: LiveServer, width: int, color_scheme: str
) -> None:
    with page_without_errors(browser, width=width, color_scheme=color_scheme) as page:
        open_page(page, live)
        expect(page.locator("svg.plot")).to_have_count(4)

        assert width >= page.evaluate("document.documentElement.scrollWidth")


def test_it_follows_the_load_while_requests_run(browser: Browser, live: LiveServer) -> None:
    with page_without_errors(browser) as page:
        open_page(page, live)
        assert 0 == figure(page, "tokens/s")()
        expect(page.locator("#now-word")).to_have_text("Speculating, 3 steps")
        with load(live, num_clients=6):
            expect(page.locator("#now-word")).to_have_text("Plain decoding")
            expect(page.locator("#now-reason")).to_contain_text("more than disable_above=4")
            wait_until(lambda: figure(page, "tokens/s")() > 50)
            wait_until(lambda: figure(page, "running decodes")() > 2)
        wait_until(lambda: figure(page, "running decodes")() == 0)
        with load(live, num_clients=1):
            expect(page.locator("#now-word")).to_have_text("Speculating, 3 steps")
            wait_until(lambda: figure(page, "acceptance length, last minute")() == 3)
            expect(page.locator("#positions tbody tr")).to_have_count(3)


def test_a_switch_is_told_with_its_reason(browser: Browser, live: LiveServer) -> None:
    with page_without_errors(browser) as page:
        open_page(page, live)
        switch = {
            "from_num_steps": 3,
            "to_num_steps": 0,
            "reason": "5 running decodes are more than <b>disable_above=4</b>",
            "left_out": 12,
        }
        live.call(lambda: live.history.note_event("policy.switch", switch))

        row = page.locator("#events tr").first
        expect(row).to_contain_text("3 draft steps → plain: 5 running decodes are more than <b>")
        expect(row).to_contain_text("12 more before it")
        expect(page.locator("svg.plot title", has_text="disable_above=4")).to_have_count(1)


def test_the_arrow_keys_read_the_charts(browser: Browser, live: LiveServer) -> None:
    with page_without_errors(browser) as page:
        open_page(page, live)
        page.locator(".surface").focus()
        page.keyboard.press("ArrowLeft")

        expect(page.locator(".told")).to_contain_text("3 draft steps · 0 running decodes")


def test_a_change_in_the_form_arrives(browser: Browser, live: LiveServer) -> None:
    with page_without_errors(browser) as page:
        open_page(page, live)
        expect(page.get_by_role("button", name="Apply")).to_be_disabled()
        field(page, "policy.while_off").select_option("skip")
        field(page, "policy.disable_above").fill("6")
        page.keyboard.press("Enter")
        expect(page.locator(".said")).to_have_text("In force.")

        wanted = {**THRESHOLD.model_dump(), "disable_above": 6, "while_off": "skip"}
        assert wanted == live.get("/v1/policy").json["policy"]
        assert wanted == live.events[-1][1]["after"]
        expect(page.locator("#events tr").first).to_contain_text("disable_above 4 → 6")


def test_another_kind_with_a_table_arrives(browser: Browser, live: LiveServer) -> None:
    with page_without_errors(browser) as page:
        open_page(page, live)
        page.get_by_label("kind").select_option("depth_schedule")
        for name, value in (("hysteresis", "1"), ("min_dwell_rounds", "8")):
            page.get_by_label(name, exact=True).fill(value)
        rows = page.locator(".steps tbody tr")
        while rows.count():
            rows.first.get_by_role("button").click()
        for up_to, num_steps in (("2", "3"), ("8", "1")):
            page.get_by_role("button", name="Add a line").click()
            rows.last.locator("[data-column=up_to]").fill(up_to)
            rows.last.locator("[data-column=num_steps]").fill(num_steps)
        page.get_by_role("button", name="Apply").click()
        expect(page.locator(".said")).to_have_text("In force.")

    policy = live.get("/v1/policy").json["policy"]
    assert [{"up_to": 2, "num_steps": 3}, {"up_to": 8, "num_steps": 1}] == policy["schedule"]


def test_an_invalid_change_shows_the_servers_words_at_each_field(
    browser: Browser, live: LiveServer
) -> None:
    with page_without_errors(browser, expected=BAD_REQUEST) as page:
        open_page(page, live)
        field(page, "policy.disable_above").fill("many")
        field(page, "policy.resume_at").fill("")
        page.get_by_role("button", name="Apply").click()

        expect(field(page, "policy.disable_above-problem")).to_have_text(
            "Expected an integer of at least 1. Set policy.disable_above=1."
        )
        expect(field(page, "policy.resume_at-problem")).to_contain_text("it is missing")
        expect(field(page, "policy.while_off-problem")).to_be_empty()
        expect(field(page, "policy.disable_above")).to_be_focused()
        expect(field(page, "policy.disable_above")).to_have_attribute("aria-invalid", "true")
        assert THRESHOLD.model_dump() == live.get("/v1/policy").json["policy"]
        assert [] == live.events

        page.get_by_role("button", name="Discard edits").click()
        expect(field(page, "policy.disable_above")).to_have_value("4")
        expect(field(page, "policy.disable_above-problem")).to_be_empty()


def test_what_was_not_built_is_refused_in_the_engines_words(
    browser: Browser, live: LiveServer
) -> None:
    with page_without_errors(browser, expected=BAD_REQUEST) as page:
        open_page(page, live)
        field(page, "policy.resume_at").fill("9")
        page.get_by_role("button", name="Apply").click()

        expect(field(page, "policy.resume_at-problem")).to_contain_text(
            "Expected at most policy.disable_above"
        )


def test_pin_and_revert(browser: Browser, live: LiveServer) -> None:
    with page_without_errors(browser) as page:
        open_page(page, live)
        page.get_by_role("button", name="Pin off").click()
        expect(page.locator("#pinned")).to_have_text("pinned off")
        expect(page.locator("#pin-off")).to_have_attribute("aria-pressed", "true")
        expect(page.get_by_label("kind")).to_have_value("off")
        assert "off" == live.get("/v1/policy").json["pinned"]
        page.get_by_role("button", name="Revert").click()
        expect(page.locator("#pinned")).to_be_hidden()

        assert {"kind": "always"} == live.get("/v1/policy").json["policy"]


def test_edits_do_not_overwrite_what_somebody_else_has_set(
    browser: Browser, live: LiveServer
) -> None:
    with page_without_errors(browser, expected="412 (Precondition Failed)") as page:
        open_page(page, live)
        field(page, "policy.disable_above").fill("7")
        live.send("PUT", "/v1/policy", {"resume_at": 1})
        expect(page.locator(".said")).to_contain_text("The policy has changed meanwhile")
        page.get_by_role("button", name="Apply").click()
        expect(page.locator("#policy-problem")).to_contain_text("the policy has changed since")

        assert {**THRESHOLD.model_dump(), "resume_at": 1} == live.get("/v1/policy").json["policy"]


def test_with_a_key_nothing_is_shown_before_it_is_given(browser: Browser) -> None:
    with (
        serving(config=server_config(api_key="clé-1")) as live,
        page_without_errors(browser, expected=UNAUTHORIZED) as page,
    ):
        page.goto(f"{live.base_url}/dashboard")
        expect(page.get_by_label("API key")).to_be_focused()
        assert MODEL not in page.locator("body").inner_text()
        page.get_by_label("API key").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#gate-problem")).to_have_text("The server does not know this key.")
        page.get_by_label("API key").fill("clé-1")
        page.keyboard.press("Enter")
        expect(page.locator("#status-word")).to_have_text("ready")
        page.get_by_role("button", name="Pin off").click()
        expect(page.locator("#pinned")).to_have_text("pinned off")

        assert "off" == live.events[-1][1]["pinned"]
        page.reload()  # the tab keeps it, and only the tab
        expect(page.locator("#pinned")).to_have_text("pinned off")
        assert 0 == page.evaluate("localStorage.length + document.cookie.length")


def test_a_server_that_starts_shows_its_phases_as_they_come(browser: Browser) -> None:
    with serving(ready=False) as live, page_without_errors(browser) as page:
        live.call(lambda: live.history.note_phase("load_target", "start", time.time(), 0.0, {}))
        page.goto(f"{live.base_url}/dashboard")
        expect(page.locator("#status-word")).to_have_text("starting")
        expect(page.locator("#phases")).to_contain_text("load_target")
        expect(page.locator("#policy")).to_be_hidden()
        cause = {"cause": "OSError: no such file"}
        live.call(lambda: live.history.note_phase("load_target", "failed", time.time(), 1.5, cause))
        live.call(lambda: live.state.fail("phase load_target failed: OSError"))

        expect(page.locator("#phases")).to_contain_text("OSError: no such file")
        expect(page.locator("#status-word")).to_have_text("failed")


def test_every_input_has_a_name(browser: Browser, live: LiveServer) -> None:
    with page_without_errors(browser) as page:
        open_page(page, live)
        for kind in page.locator("[id='policy.kind'] option").all_inner_texts():
            page.get_by_label("kind").select_option(kind)
            unnamed = page.locator("input, select, button").evaluate_all(
                "all => all.filter(each => !each.labels?.length && !each.ariaLabel"
                " && !each.textContent.trim()).map(each => each.outerHTML)"
            )
            assert [] == unnamed


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(scheme: str) -> None:
    """WCAG 2, level AA: a contrast of 4.5 for text of any size."""
    style = page_parts()["/dashboard/style.css"][0].decode()
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    block = blocks[["light", "dark"].index(scheme)]
    colors = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
    pairs = [
        *itertools.product(("ink", "quiet", "accent", "second", "warn"), ("paper", "card")),
        ("accent-ink", "accent"),
    ]
    for text, ground in pairs:
        low, high = sorted(luminance(colors[name]) for name in (text, ground))
        assert (high + 0.05) / (low + 0.05) >= 4.5, f"{text} on {ground}"
