"""What a person clicks in Dagster's UI, in a real headless browser: backfill, failed and missing only, retry from the
backfill's page, lineage of one segment, automation on. The tests build on each other, in this order."""

import contextlib
from collections.abc import Callable

import dagster as dg
import pytest
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    NoSuchElementException,
    StaleElementReferenceException,
    WebDriverException,
)
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By

from tests.fault_server import FaultServer
from tests.orchestration.checkout import status_lines
from tests.orchestration.stack import Stack, wait_until
from tests.report.conftest import chromium  # noqa: F401 -- the fixture

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.timeout(400)]

SEGMENTS = 12


@pytest.fixture(scope="module")
def stack(deployment: Stack, busy_server: FaultServer) -> Stack:
    checkout = deployment.checkout
    checkout.write_corpus(status_lines(SEGMENTS))
    checkout.write_sweep(planning={"segment_chars": 43}, schedule={"cron": "0 3 * * *"})
    with dg.DagsterInstance.from_config(str(checkout.project.dagster_home)) as instance:
        assert checkout.run(instance, "corpus").success
    for ticket in (2, 3, 9):
        busy_server.script({"match": f"ticket {ticket:05}", "fault": "400-other", "times": None})
    deployment.start()
    return deployment


class Page:
    """The UI as a person sees it: things are found by their words."""

    def __init__(self, browser: WebDriver, stack: Stack) -> None:
        self._browser, self._stack = browser, stack

    def open(self, path: str) -> None:
        self._browser.get(f"http://127.0.0.1:{self._stack.port}{path}")

    def click(self, words: str, *, kind: str = "button") -> None:
        """Click the first enabled element of a kind that shows exactly these words, once it can be clicked."""
        path = f"//{kind}[normalize-space(.)={words!r} and not(@disabled)]"

        def click() -> bool | None:
            with contextlib.suppress(
                NoSuchElementException, StaleElementReferenceException, ElementClickInterceptedException
            ):
                self._browser.find_element(By.XPATH, path).click()
                return True
            return None

        wait_until(click, timeout_s=60, what=f"{words!r} to click; the page shows {self.text()[:1500]!r}")

    def choose(self, words: str) -> None:
        """Click an entry of a menu behind one of the page's buttons without words."""

        def choose() -> bool | None:
            for button in self._browser.find_elements(By.XPATH, "//button[normalize-space(.)='']"):
                with contextlib.suppress(WebDriverException):
                    button.click()
                    self._browser.find_element(By.XPATH, f"//*[normalize-space(.)={words!r}]").click()
                    return True
            return None

        wait_until(choose, timeout_s=60, what=f"{words!r} in a menu")

    def shows(self, *words: str) -> None:
        try:
            wait_until(
                lambda: all(word in self.text() for word in words), timeout_s=60, what=f"the page to show {words}"
            )
        except TimeoutError as error:
            raise AssertionError(f"{error}; it shows {self.text()[:3000]!r}") from None

    def text(self) -> str:
        with contextlib.suppress(NoSuchElementException, StaleElementReferenceException):
            return self._browser.find_element(By.TAG_NAME, "body").text
        return ""


@pytest.fixture
def page(chromium: WebDriver, stack: Stack) -> Page:  # noqa: F811
    return Page(chromium, stack)


def backfills(stack: Stack) -> list[dict[str, str]]:
    """Return id and status of every backfill, the newest first."""
    found = stack.query("{ partitionBackfillsOrError { ... on PartitionBackfills { results { id status } } } }")
    return found["partitionBackfillsOrError"]["results"]


def launched(stack: Stack, *, before: int) -> str:
    """Return the id of the backfill that a click started."""
    wait_until(lambda: len(backfills(stack)) > before or None, timeout_s=60, what="a backfill to be launched")
    return backfills(stack)[0]["id"]


def settled(stack: Stack, expected: Callable[[dict[str, list[str]]], bool]) -> None:
    wait_until(lambda: expected(stack.partitions()) or None, timeout_s=180, what="the partitions to settle")


def test_backfill_of_every_segment(page: Page, stack: Stack) -> None:
    page.open("/assets/census/extraction?view=partitions")
    page.click("Materialize…")
    page.click("All")
    page.click("Launch backfill")
    assert stack.ended_backfill(launched(stack, before=0)) == "COMPLETED_FAILED"
    states = stack.partitions()
    assert (len(states["materialized"]), len(states["failed"])) == (SEGMENTS - 3, 3)
    page.open("/assets/census/extraction?view=partitions")
    page.shows("Failed (3)", f"Materialized ({SEGMENTS - 3})")


def test_failed_and_missing_only(page: Page, stack: Stack, busy_server: FaultServer) -> None:
    busy_server.reset()
    busy_server.script({"match": "ticket 00009", "fault": "400-other", "times": None})
    page.open("/assets/census/extraction?view=partitions")
    page.click("Materialize…")
    page.click("Failed and missing")
    page.shows("3 partitions")
    page.click("Launch backfill")
    stack.ended_backfill(launched(stack, before=1))
    assert busy_server.stats.calls == 3
    assert len(stack.partitions()["failed"]) == 1


def test_retry_from_the_backfill_s_page(page: Page, stack: Stack, busy_server: FaultServer) -> None:
    busy_server.reset()
    page.open(f"/runs/b/{backfills(stack)[0]['id']}")
    page.choose("Re-execute from failure")
    stack.ended_backfill(launched(stack, before=2))
    assert busy_server.stats.calls == 1
    assert len(stack.partitions()["materialized"]) == SEGMENTS


def test_lineage_of_one_segment(page: Page, stack: Stack) -> None:
    with dg.DagsterInstance.from_config(str(stack.checkout.project.dagster_home)) as instance:
        segment = stack.checkout.partitions(instance)[4]
    page.open(f"/assets/census/extraction?view=partitions&partition={segment}")
    page.shows(segment, "source", "corpus.txt:5-5", "ticket 00004", "ollama.scripted_latest.prompt_tokens")
    page.open("/assets/census/extraction?view=lineage")
    page.shows("manifest", "extraction", "tally")


WIDTHS = """
    const table = document.querySelector("table[class*='AssetEventMetadataEntriesTable']");
    return table && [table.offsetWidth, table.parentElement.clientWidth];"""


def test_every_value_of_a_page_is_seen_whole_at_the_width_of_a_desk(
    page: Page,
    stack: Stack,
    chromium: WebDriver,  # noqa: F811
) -> None:
    assert stack.ended(stack.materialize("records", "tally", "answer")) == "SUCCESS"
    with dg.DagsterInstance.from_config(str(stack.checkout.project.dagster_home)) as instance:
        segment = stack.checkout.partitions(instance)[4]
    views = {
        "answer?view=overview": "below the next",
        "tally?view=overview": "prompt_tokens",
        "corpus?view=overview": "by_file",
        f"extraction?view=partitions&partition={segment}": "output_tokens",
    }
    for view, words in views.items():
        page.open(f"/assets/census/{view}")
        page.shows(words)
        table, room = chromium.execute_script(WIDTHS)
        assert table <= room + 1, f"a value of {view} makes all of them too wide"


def test_automation_is_switched_on(page: Page, stack: Stack, chromium: WebDriver) -> None:  # noqa: F811
    page.open("/automation")
    page.shows("census_automation", "census_plan_schedule")
    # A row has two boxes: one selects it, the last is the switch.
    row = "//*[count(.//input[@type='checkbox'])=2 and contains(., 'census_automation')]"
    boxes = wait_until(
        lambda: chromium.find_elements(By.XPATH, f"{row}//input[@type='checkbox']"), timeout_s=30, what="the switch"
    )
    chromium.execute_script("arguments[0].click()", boxes[-1])

    def running() -> bool | None:
        found = stack.query(
            """query($s: SensorSelector!) { sensorOrError(sensorSelector: $s) {
            ... on Sensor { sensorState { status } } } }""",
            s={
                "repositoryLocationName": "ctxstream",
                "repositoryName": "__repository__",
                "sensorName": "census_automation",
            },
        )
        return found["sensorOrError"]["sensorState"]["status"] == "RUNNING" or None

    wait_until(running, timeout_s=30, what="the sensor to run")
