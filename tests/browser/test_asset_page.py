"""The page of an asset over several runs: columns, row count, plots, the link to its code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from dagster import DagsterInstance

from . import shop

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "asset_page.png"
HOME = """\
telemetry:
  enabled: false
nux:
  enabled: false
compute_logs:
  module: dagster.core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""
ROWS = (1_000, 1_500, 1_800, 3_000, 2_900, 4_200)


@pytest.fixture(scope="module")
def page(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The asset's page after six runs."""
    folder = tmp_path_factory.mktemp("shop")
    home = folder / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text(HOME)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOP_FOLDER", str(folder))
        job = shop.project(str(folder)).resolve_implicit_global_asset_job_def()
        with DagsterInstance.from_config(str(home)) as instance:
            for rows in ROWS:
                patch.setenv("SHOP_ROWS", str(rows))
                assert job.execute_in_process(instance=instance).success
        with (
            script.webserver(home, folder / "webserver.log", "tests.browser.shop") as url,
            script.opened(
                f"{url}/assets/orders", "Source code", "ubunye/data_hash", width=1300, height=1300
            ) as page,
        ):
            yield page


def test_it_shows_rows_columns_and_the_link_to_the_code(page: Page) -> None:
    text = page.inner_text("body")
    assert "4,200" in text.split("Row count")[1][:20]
    table = page.locator("table", has=page.get_by_text("Column name", exact=True)).first
    assert [row.split()[:2] for row in table.locator("tbody tr").all_inner_texts()] == [
        ["id", "int64"],
        ["amount", "float64"],
    ]
    link = page.locator("a", has_text="in editor").first
    assert "shop.py" in link.inner_text()
    line = Path(shop.__file__).read_text().splitlines().index('@asset(group_name="shop")') + 1
    assert (link.get_attribute("href") or "").endswith(f"{shop.__file__}:{line}")


def test_it_plots_the_rows_and_the_seconds_of_the_runs(page: Page) -> None:
    page.get_by_text("Plots", exact=True).click()
    page.get_by_text("dagster/row_count", exact=True).first.wait_for()
    names = page.inner_text("body")
    for name in ("dagster/row_count", "ubunye/seconds", "ubunye/hash_seconds"):
        assert name in names
    assert page.locator("canvas").count() >= 3
    if os.environ.get("UPDATE_DOCS"):
        page.wait_for_timeout(2_000)  # the lines are drawn with an animation
        page.screenshot(path=PICTURE, clip={"x": 240, "y": 0, "width": 1060, "height": 1260})
