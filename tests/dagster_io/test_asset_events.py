"""Events as they stand in Dagster's tables, beside what Dagster itself makes of them.

The package reads the table and the JSON in it. An upgrade of Dagster that lays either out otherwise fails
here: then every event would be unpacked by Dagster again, which is right and slow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy
from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    DagsterInstance,
    DailyPartitionsDefinition,
    InMemoryIOManager,
    JsonMetadataValue,
    MetadataValue,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    StaticPartitionsDefinition,
    TableColumn,
    TableSchema,
    asset,
)
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.metadata import receipt_of_event
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.upstream import asset_events
from ubunye_orchestrate.errors import InvalidRecordError

from .conftest import Project

Read = Callable[[DagsterInstance], list[upstream.AssetEvent]]


def everything(instance: DagsterInstance) -> list[upstream.AssetEvent]:
    made = upstream.materializations_after(instance, 0, 1_000)
    by_id = upstream.materializations_by_id(instance, [event.storage_id for event in made])
    assert [by_id[event.storage_id] for event in made] == made
    return [*made, *upstream.observations_after(instance, 0, 1_000)]


def as_unpacked(instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> list[upstream.AssetEvent]:
    """Read as from a storage that is no database."""
    with monkeypatch.context() as patched:
        patched.setattr(asset_events, "_database_of", lambda instance: None)
        return everything(instance)


@contextmanager
def nothing_unpacked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail where an event is unpacked by Dagster."""

    def unpack(*args: Any) -> Any:
        raise AssertionError(f"unpacked by Dagster: {args}")

    with monkeypatch.context() as patched:
        patched.setattr(asset_events, "deserialize_value", unpack)
        yield


def history(project: Project) -> None:
    """Leave events of every kind that there is."""
    days = DailyPartitionsDefinition("2024-01-01", end_date="2024-01-04")
    both = MultiPartitionsDefinition({"day": days, "place": StaticPartitionsDefinition(["eu", "us"])})

    @asset
    def plain() -> pd.DataFrame:
        return pd.DataFrame({"größe": [1.5, 2.5], "text": ["ä", "🙂"]})

    @asset(partitions_def=days)
    def daily(plain: pd.DataFrame) -> pd.DataFrame:
        return plain

    @asset(partitions_def=both, key_prefix=["deep", "er"])
    def placed() -> pd.DataFrame:
        return pd.DataFrame({"x": [1]})

    assets = [plain, daily, placed]
    manager = with_receipts(InMemoryIOManager(), project.receipts)
    project.run(assets, manager, selection=[plain])
    project.run(assets, manager, selection=[plain, daily], partition_key="2024-01-02")
    place = MultiPartitionKey({"day": "2024-01-01", "place": "eu"})
    project.run(assets, manager, selection=[placed], partition_key=place)
    metadata = {
        "ubunye/receipt": JsonMetadataValue({"not": "a record", "n": [1, 2.5, None]}),
        "ubunye/text": MetadataValue.text("a text"),
        "ubunye/table": MetadataValue.table_schema(TableSchema([TableColumn("x", "int")])),
        "ubunye/asset": MetadataValue.asset(AssetKey("plain")),
        "theirs": MetadataValue.float(float("nan")),
    }
    report = project.instance.report_runless_asset_event
    for kind in (AssetMaterialization, AssetObservation):
        report(kind(asset_key="reported", metadata=metadata, tags={"a": "b"}, description="said"))
        report(kind(asset_key="reported", partition="p|q"))


class TestBothWaysAreOne:
    def same(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> list[upstream.AssetEvent]:
        history(project)
        assert asset_events._database_of(project.instance) is not None
        with nothing_unpacked(monkeypatch):
            events = everything(project.instance)
        assert events == as_unpacked(project.instance, monkeypatch)
        return events

    def test_in_memory(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        events = self.same(project, monkeypatch)
        assert [(event.asset_key.to_user_string(), event.partition) for event in events[:4]] == [
            ("plain", None),
            ("plain", None),
            ("daily", "2024-01-02"),
            ("deep/er/placed", "2024-01-01|eu"),
        ]
        record = receipt_of_event(events[2])
        assert record is not None
        assert record.inputs[0].columns == [("größe", "float64"), ("text", "string")]

    def test_in_files(self, project_on_disk: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        self.same(project_on_disk, monkeypatch)

    def test_in_an_instance_that_is_configured(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        home = tmp_path / "home"
        home.mkdir()
        (home / "dagster.yaml").write_text(f"storage:\n  sqlite:\n    base_dir: {tmp_path / 'databases'}\n")
        with DagsterInstance.from_config(str(home)) as instance:
            self.same(Project(instance, tmp_path / "mirror"), monkeypatch)


def tampered(project: Project, text: Callable[[dict[str, Any]], str]) -> list[upstream.AssetEvent]:
    """Change the second of three events in the table, and read all of them."""
    for number in range(3):
        metadata = {"ubunye/receipt": JsonMetadataValue({"n": number})}
        project.instance.report_runless_asset_event(AssetMaterialization(f"made_{number}", metadata=metadata))
    overwritten(project, "made_1", text)
    return list(upstream.materializations_after(project.instance, 0, 10))


def overwritten(project: Project, key: str, text: Callable[[dict[str, Any]], str]) -> None:
    """Change the JSON of an asset's events in Dagster's table."""
    database = asset_events._database_of(project.instance)
    assert database is not None
    table = SqlEventLogStorageTable
    with database.index_connection() as connection:
        found = sqlalchemy.select(table.c.id, table.c.event).where(table.c.asset_key == f'["{key}"]')
        rows = connection.execute(found.where(table.c.dagster_event_type == "ASSET_MATERIALIZATION")).all()
        for row in rows:
            changed = table.update().where(table.c.id == row.id)
            connection.execute(changed.values(event=text(json.loads(row.event))))
        connection.commit()


class TestAnEventThatIsNotAsExpected:
    """It is one event's matter: those beside it are read."""

    @pytest.mark.parametrize(
        ("text", "error"),
        [
            (lambda event: "{", "JSONDecodeError"),
            (lambda event: "[]", "DeserializationError"),
            (lambda event: json.dumps({**event, "__class__": "EventOfTomorrow"}), "DeserializationError"),
            (lambda event: json.dumps({**event, "dagster_event": None}), "AssertionError"),
            (lambda event: "[" * 100_000, "RecursionError"),
        ],
        ids=["no JSON", "a list", "a class of tomorrow", "of no asset", "nested too deeply"],
    )
    def test_unreadable(self, text: Any, error: str, project: Project) -> None:
        first, odd, last = tampered(project, text)
        assert (first.metadata, last.metadata) == (
            {"ubunye/receipt": b'{"n":0}'},
            {"ubunye/receipt": b'{"n":2}'},
        )
        assert odd.asset_key == AssetKey("made_1")
        assert odd.error is not None
        assert odd.error.startswith(error)
        with pytest.raises(InvalidRecordError, match=f"of made_1 cannot be read .{error}"):
            receipt_of_event(odd)

    def test_what_dagster_can_unpack_all_the_same(self, project: Project) -> None:
        def of_before(event: dict[str, Any]) -> str:
            # Events of long ago have no such field.
            del event["dagster_event"]["event_specific_data"]["materialization"]["partition"]
            return json.dumps(event)

        odd = tampered(project, of_before)[1]
        assert (odd.error, odd.partition, odd.asset_key) == (None, None, AssetKey("made_1"))
        assert odd.metadata == {"ubunye/receipt": b'{"n":1}'}

    @pytest.mark.parametrize(
        "number", ["NaN", "-Infinity", "1e999", "9" * 4_200], ids=["nan", "infinity", "1e999", "long"]
    )
    def test_a_receipt_with_a_number_that_json_does_not_have(self, number: str, project: Project) -> None:
        odd = tampered(project, lambda event: json.dumps(event).replace('"n": 1', f'"n": {number}'))[1]
        assert odd.error is None
        with pytest.raises(InvalidRecordError, match="number"):
            receipt_of_event(odd)

    def test_a_receipt_with_half_a_character(self, project: Project) -> None:
        odd = tampered(project, lambda event: json.dumps(event).replace('"n": 1', '"n": "\\ud800"'))[1]
        with pytest.raises(InvalidRecordError, match="without run_id"):
            receipt_of_event(odd)


def test_a_storage_of_the_users_own_is_asked_by_its_public_methods(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may hold back events, or keep them elsewhere than in the table."""
    project.instance.report_runless_asset_event(AssetMaterialization("secret"))
    project.instance.report_runless_asset_event(AssetMaterialization("shown"))
    theirs = type(project.instance.event_log_storage)

    class Discreet(theirs):  # type: ignore[valid-type, misc]  # the class is known only when this runs
        def get_event_records(self, *args: Any, **kwargs: Any) -> Any:
            records = super().get_event_records(*args, **kwargs)
            return [one for one in records if one.asset_key != AssetKey("secret")]

    monkeypatch.setattr(project.instance.event_log_storage, "__class__", Discreet)
    events = upstream.materializations_after(project.instance, 0, 10)
    assert [event.asset_key for event in events] == [AssetKey("shown")]
