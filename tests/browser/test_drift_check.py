"""What a person sees of drift: the daemon's ticks, the check on the asset, its table and both runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from dagster import AssetKey, DagsterInstance

from . import watched

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "images"
MODULE = "tests.browser.watched"
HOME = """\
telemetry:
  enabled: false
nux:
  enabled: false
compute_logs:
  module: dagster.core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""


class Shop:
    """The project, its instance, and a daemon that looks at it."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, patch
        self.home = folder / "home"
        self.home.mkdir()
        (self.home / "dagster.yaml").write_text(HOME)
        self.instance = DagsterInstance.from_config(str(self.home))
        self.job = watched.project(str(folder)).resolve_implicit_global_asset_job_def()

    def run(self, rows: int, noise: str = "") -> str:
        """Materialize both tables; return the run's id."""
        self.patch.setenv("WATCHED_ROWS", str(rows))
        self.patch.setenv("WATCHED_NOISE", noise)
        tables = [AssetKey("orders"), AssetKey("totals")]
        result = self.job.execute_in_process(instance=self.instance, asset_selection=tables)
        assert result.success
        return result.run_id

    def words(self) -> list[str]:
        """Return what the sensor's ticks said, newest first."""
        states = self.instance.all_instigator_state()
        ticks = [
            tick
            for state in states
            for tick in self.instance.get_ticks(state.instigator_origin_id, state.selector_id)
        ]
        return [tick.tick_data.skip_reason for tick in ticks if tick.tick_data.skip_reason]

    def said(self, what: str, daemon: subprocess.Popen[bytes], patience: float = 120) -> str:
        """Wait until a tick says ``what``; return all that it says."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            for words in self.words():
                if what in words:
                    return words
            assert daemon.poll() is None, (self.folder / "daemon.log").read_text()[-2000:]
            time.sleep(0.3)
        raise AssertionError(f"no tick says {what!r}: {self.words()}")


@contextmanager
def daemon(shop: Shop) -> Iterator[subprocess.Popen[bytes]]:
    """Let Dagster's own daemon tick the sensor."""
    command = [str(Path(sys.executable).parent / "dagster-daemon"), "run", "-m", MODULE]
    with (shop.folder / "daemon.log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "DAGSTER_HOME": str(shop.home)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def seen(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Three runs, what the ticks said of the last two, and the pages after each."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("watched")
        patch.setenv("WATCHED_FOLDER", str(folder))
        shop = Shop(folder, patch)
        runs = [shop.run(1_000)]
        with daemon(shop) as process, script.webserver(shop.home, folder / "web.log", MODULE) as url:
            shop.said("First look", process)

            def page_of(asset: str) -> Any:
                address = f"{url}/assets/{asset}?view=checks&checkDetail=drift"
                return script.opened(address, "Latest execution", "ubunye/run", width=1280, height=860)

            yield Look(shop, process, runs, page_of, url, script)
        shop.instance.dispose()


class Look:
    """What the tests look through."""

    def __init__(
        self,
        shop: Shop,
        process: subprocess.Popen[bytes],
        runs: list[str],
        page_of: Callable[[str], Any],
        url: str,
        script: ModuleType,
    ) -> None:
        self.shop, self.process, self.runs = shop, process, runs
        self.page_of, self.url, self.script = page_of, url, script


def ticks_told(page: Page, results: Any, among: int) -> Iterator[str]:
    """Yield what the history tells of each tick, newest first, when one clicks on its result."""
    for number in range(min(results.count(), among)):
        results.nth(number).get_by_text("0 runs requested").click()
        told = page.get_by_text("Skip reason:")
        told.wait_for()
        yield " ".join(page.locator(".dagster-portal").last.inner_text().split())
        page.get_by_role("button", name="Close").click()
        told.wait_for(state="detached")


def row(page: Page, name: str) -> Any:
    """Return a row of the check's metadata."""
    return page.locator("tr", has=page.get_by_text(name, exact=True)).last


def test_a_warning_shows_what_changed_with_it_and_links_to_both_runs(seen: Look) -> None:
    seen.runs.append(seen.shop.run(2_000))
    words = seen.shop.said("totals: warn: ", seen.process)
    assert words.endswith(
        "totals: warn: output totals changed, together with input orders (not proof of cause); "
        "entered at orders (source changed)."
    )
    # Perhaps in the tick before: the daemon does not wait for a run to end.
    seen.shop.said(
        "orders: warn: output orders has 2000 rows: up from 1000, more than 0.5 of it.", seen.process
    )
    with seen.page_of("totals") as page:
        text = page.inner_text("body")
        assert "together with input orders (not proof of cause)" in text
        assert "input orders" in row(page, "ubunye/changed_with").inner_text()
        assert "entered at orders (source changed)" in row(page, "ubunye/path").inner_text()
        earlier, later = seen.runs
        for name, run_id in (("ubunye/run", later), ("ubunye/baseline_run", earlier)):
            assert (row(page, name).locator("a").get_attribute("href") or "").endswith(f"/runs/{run_id}")
        # A warning, not an error.
        assert page.locator("[aria-label='warning_outline'], [aria-label='warning']").count() > 0
        if os.environ.get("UPDATE_DOCS"):
            page.screenshot(
                path=PICTURES / "drift_check.png", clip={"x": 240, "y": 0, "width": 1040, "height": 705}
            )
        row(page, "ubunye/changes").get_by_text("[Show Markdown]").click()
        table = page.locator(".dagster-portal table, .bp5-dialog table").last
        table.wait_for()
        assert [cell.lower() for cell in table.locator("th").all_inner_texts()] == [
            "what",
            "from",
            "to",
            "changed with",
        ]
        rows = [one.locator("td").all_inner_texts() for one in table.locator("tbody tr").all()]
        assert [(cells[0], cells[3]) for cells in rows] == [
            ("data of totals", "input orders"),
            ("input orders", ""),
            ("rows of input orders", ""),
        ]
        assert rows[2][1:3] == ["1000", "2000"]
        if os.environ.get("UPDATE_DOCS"):
            page.wait_for_timeout(500)
            page.locator(".bp5-dialog").last.screenshot(path=PICTURES / "drift_changes.png")


def test_an_error_and_the_ticks_words_in_the_history_of_the_sensor(seen: Look) -> None:
    seen.shop.run(2_000, noise="yes")
    words = seen.shop.said("totals: error: ", seen.process)
    assert words.startswith("totals: error: output totals changed and the recorded evidence is equal; ")
    seen.shop.said("1 materialization without drift.", seen.process)
    with seen.page_of("totals") as page:
        page.get_by_text("the recorded evidence is equal").first.wait_for()
    with seen.page_of("orders") as page:
        assert "orders: outputs unchanged" in page.inner_text("body")
    with seen.script.opened(f"{seen.url}/locations/{MODULE}/sensors/drift", "Timestamp") as page:
        results = page.locator("table").last.locator("tbody tr td:nth-child(5)")
        results.first.wait_for()
        told: list[str] = []
        for one in ticks_told(page, results, among=20):
            told.append(one)
            if words in one:
                break
        assert words in told[-1], told
