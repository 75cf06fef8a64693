"""The pages of a real ``dagster-webserver`` in a headless Chromium: what a person sees of a receipt."""

from __future__ import annotations

import io
from pathlib import Path
from types import ModuleType

import dagster as dg
import pytest

from example_project.demo.acts import ACTS, perform
from example_project.demo.project import DemoProject
from example_project.demo.screen import Screen
from example_project.demo.watch import Watch

pytestmark = pytest.mark.browser

FIRST, _, _, ONE_LINE_OF_CODE = ACTS
MONTH = "2013-02-01"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> DemoProject:
    """An instance with two runs of the example: a first one, and one after a line of code was edited."""
    project = DemoProject(tmp_path_factory.mktemp("demo"), every=100)
    watch = Watch(project.instance, project.sensor)
    with project.active():
        for act in (FIRST, ONE_LINE_OF_CODE):
            assert perform(act, project, watch, Screen(io.StringIO())).problems == []
    return project


def test_the_panel_shows_hash_rows_and_changes(
    script: ModuleType, project: DemoProject, tmp_path: Path
) -> None:
    home = project.folder / "dagster_home"
    with dg.DagsterInstance.from_config(str(home)) as instance:
        key = dg.AssetKey("carrier_report")
        newest = instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=key, asset_partitions=[MONTH]), limit=1
        )
    materialization = newest.records[0].asset_materialization
    assert materialization is not None
    stored = {name: str(value.value) for name, value in materialization.metadata.items()}

    with (
        script.webserver(home, tmp_path / "webserver.log") as url,
        script.panel(url, "carrier_report", MONTH) as page,
    ):

        def shown(name: str) -> str:
            """The text of a row of the panel, without its name."""
            row = page.locator("tr", has=page.get_by_text(name, exact=True)).last
            return str(row.inner_text()).removeprefix(name).strip()

        assert shown("ubunye/data_hash") == stored["ubunye/data_hash"]
        assert shown("dagster/partition_row_count") == stored["dagster/partition_row_count"]
        assert shown("ubunye/record_path") == stored["ubunye/record_path"]

        table = page.locator("tr", has=page.get_by_text("ubunye/changes", exact=True)).last.locator("table")
        headings = table.locator("th").all_inner_texts()
        assert [heading.lower() for heading in headings] == ["what", "from", "to", "changed with"]
        rows = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
        assert rows[0][0] == "data of carrier_report"
        assert stored["ubunye/data_hash"].startswith(rows[0][2])
        assert rows[0][3] == "code of flights.marts:is_late"
        assert rows[1][0] == "code of flights.marts:is_late"
