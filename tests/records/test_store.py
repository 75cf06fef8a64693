"""The mirror, by one suite for every kind of place: local, file URL, memory, folders on a server."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.records.samples import GENUINE, GENUINE_FILES, a_record
from ubunye_orchestrate.errors import (
    ConfigurationError,
    InvalidRecordError,
    RecordError,
    RecordNotFoundError,
    StoreError,
)
from ubunye_orchestrate.records import folders
from ubunye_orchestrate.records.codec import encode
from ubunye_orchestrate.records.folders import RemoteFolder
from ubunye_orchestrate.records.paths import may_hold_partition, stored_run_id
from ubunye_orchestrate.records.store import RecordStore, parse_time

TASK = ("shop", "sales", "totals")


class ServerStore(RecordStore):
    """A store on a file system that is a folder on a server: what is put there can be seen half."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._folder = RemoteFolder(f"file://{root}", ".ubunye/lineage")


@pytest.fixture(params=["local", "file", "memory", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RecordStore:
    places: dict[str, Callable[[], RecordStore]] = {
        "local": lambda: RecordStore(tmp_path),
        "file": lambda: RecordStore(f"file://{tmp_path}"),
        "memory": lambda: RecordStore(f"memory://{uuid.uuid4()}"),
        "server": lambda: ServerStore(tmp_path),
    }
    return places[request.param]()


def put(store: RecordStore, name: str, data: bytes, task: tuple[str, str, str] = TASK) -> str:
    return store._folder.write("/".join((*task, name)), data, None)


class Invalid:
    """Collects what a store reports."""

    def __init__(self) -> None:
        self.found: list[tuple[str, RecordError]] = []

    def __call__(self, path: str, error: RecordError) -> None:
        self.found.append((path, error))

    @property
    def names(self) -> list[str]:
        return sorted(path.rpartition("/")[2] for path, _ in self.found)


class TestEveryPlace:
    def test_a_record_comes_back_equal(self, store: RecordStore) -> None:
        record = a_record()
        path = store.save(record)
        assert path.endswith(".ubunye/lineage/shop/sales/totals/run-1.json")
        assert store.load(*TASK, "run-1") == record

    def test_a_genuine_record_is_kept_byte_for_byte(self, store: RecordStore) -> None:
        for source in GENUINE_FILES:
            put(store, source.name, source.read_bytes(), ("shop", "sales", "daily_totals"))
        for record in store.list_runs("shop", "sales", "daily_totals", limit=100):
            store.save(record)
        for source in GENUINE_FILES:
            path = f"shop/sales/daily_totals/{source.name}"
            assert store._folder.read(path, 10**9) == source.read_bytes()

    def test_a_later_state_of_a_record_replaces_it(self, store: RecordStore) -> None:
        store.save(a_record())
        store.save(a_record(status="error", error="ValueError: late"))
        assert store.load(*TASK, "run-1").error == "ValueError: late"
        assert len(store.list_runs(*TASK)) == 1

    def test_an_empty_mirror_has_no_runs_and_no_tasks(self, store: RecordStore) -> None:
        assert store.list_runs(*TASK) == []
        assert list(store.tasks()) == []
        assert list(store.search()) == []

    def test_a_missing_record_says_where_it_was_expected(self, store: RecordStore) -> None:
        store.save(a_record())
        with pytest.raises(RecordNotFoundError) as caught:
            store.load(*TASK, "run-2")
        assert "run 'run-2' of 'shop/sales/totals'" in str(caught.value)
        assert "totals/run-2.json" in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("run_id", ["../../../secret", "/etc/passwd", "..", "", "a\0b", "x\n"])
    def test_a_run_id_never_leads_out_of_the_mirror(self, store: RecordStore, run_id: str) -> None:
        store.save(a_record())
        with pytest.raises(RecordNotFoundError):
            store.load(*TASK, run_id)
        with pytest.raises(RecordNotFoundError):
            store.load("..", "..", "..", run_id)

    def test_a_record_whose_names_are_no_file_names_is_stored_and_found(self, store: RecordStore) -> None:
        record = a_record("run/1", task_name="to tals", package="..", usecase="con")
        path = store.save(record)
        assert path.endswith("/%63on/%2E%2E/to%20tals/run%2F1.json")
        found = store.load("con", "..", "to tals", "run/1")
        assert found.run_id == "run%2F1"  # the file's stem
        assert store.list_runs("con", "..", "to tals") == [found]
        assert list(store.search(task="to tals")) == [found]

    def test_a_bad_file_is_reported_and_passed_over(self, store: RecordStore) -> None:
        store.save(a_record("good"))
        bad = {
            "empty.json": b"",
            "cut.json": encode(a_record("cut"))[:200],
            "binary.json": b"\x89PNG\r\n",
            "list.json": b"[]",
            "foreign.json": b'{"name": "x"}',
            "newer.json": encode(a_record("newer").model_copy(update={"record_version": 3})),
        }
        for name, data in bad.items():
            put(store, name, data)
        put(store, "notes.txt", b"not looked at")
        put(store, ".good.json.0123.tmp", b"left by a process that was killed")
        invalid = Invalid()
        assert [record.run_id for record in store.list_runs(*TASK, on_invalid=invalid)] == ["good"]
        assert invalid.names == sorted(bad)
        for path, error in invalid.found:
            assert isinstance(error, InvalidRecordError)
            assert str(error).startswith(path + ": found ")
        again = Invalid()
        assert [record.run_id for record in store.search(on_invalid=again)] == ["good"]
        assert again.names == invalid.names
        with pytest.raises(InvalidRecordError, match=r"newer\.json: found a record of version 3"):
            store.load(*TASK, "newer")

    def test_without_a_callback_a_bad_file_is_logged(
        self, store: RecordStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        put(store, "cut.json", b"{")
        with caplog.at_level(logging.WARNING):
            assert store.list_runs(*TASK) == []
        assert "cut.json: found JSON that ends too early" in caplog.text

    def test_a_copy_that_claims_another_files_run_id_is_reported(self, store: RecordStore) -> None:
        store.save(a_record("run-1"))
        put(store, "run-1 (copy).json", encode(a_record("run-1")))
        put(store, "any name.json", encode(a_record("run-9")))
        invalid = Invalid()
        runs = store.list_runs(*TASK, on_invalid=invalid)
        # A file of another name is read; the claim of a run id that has its own file is not believed.
        assert sorted(record.run_id for record in runs) == ["run-1", "run-9"]
        assert invalid.names == ["run-1 (copy).json"]
        assert "found run id 'run-1', which has a file of its own" in str(invalid.found[0][1])
        assert store.load(*TASK, "any name").run_id == "run-9"

    def test_folders_of_an_engine_that_does_not_encode_are_read(self, store: RecordStore) -> None:
        put(store, "r.json", encode(a_record("r", task_name="my task")), ("shop", "sales", "my task"))
        assert list(store.tasks()) == [("shop", "sales", "my task")]
        assert store.load("shop", "sales", "my task", "r").run_id == "r"
        assert len(store.list_runs("shop", "sales", "my task")) == 1
        assert len(list(store.search(task="my task"))) == 1

    def test_tasks_are_sorted_and_narrowed(self, store: RecordStore) -> None:
        for usecase, package, task in (
            ("b", "x", "t2"),
            ("a", "y", "t1"),
            ("a", "x", "t1"),
            ("a", "x", "t0"),
        ):
            store.save(a_record(usecase=usecase, package=package, task_name=task))
        put(store, "r.json", b"{}", (".hidden", "x", "t"))
        assert list(store.tasks()) == [
            ("a", "x", "t0"),
            ("a", "x", "t1"),
            ("a", "y", "t1"),
            ("b", "x", "t2"),
        ]
        assert list(store.tasks(package="x", task="t1")) == [("a", "x", "t1")]
        assert list(store.tasks(usecase="c")) == []

    def test_search_filters(self, store: RecordStore) -> None:
        store.save(a_record("r0", 0))
        store.save(a_record("r1", 1, status="error", error="E"))
        store.save(a_record("r2", 2, profile="branch"))
        store.save(a_record("r3", 3, task_name="other"))
        store.save(a_record("r4", 4, started_at=None, ended_at=None))

        def found(**filters: Any) -> set[str]:
            return {record.run_id for record in store.search(**filters)}

        assert found() == {"r0", "r1", "r2", "r3", "r4"}
        assert found(task="totals", status="success") == {"r0", "r2", "r4"}
        assert found(status="error") == {"r1"}
        assert found(profile="branch") == {"r2"}
        assert found(since="2024-01-01T10:01:00.25") == {"r1", "r2", "r3"}
        assert found(since=datetime(2024, 1, 1, 10, 2)) == {"r2", "r3"}
        assert found(since="2024-01-01T12:01:30+02:00", until="2024-01-01T10:02:59Z") == {"r2"}
        assert found(until="2024-01-01") == set()
        with pytest.raises(ConfigurationError, match="since is 'yesterday'"):
            store.search(since="yesterday")

    def test_the_limit_is_kept(self, store: RecordStore) -> None:
        for minute in range(3):
            store.save(a_record(f"r{minute}", minute))
        assert len(store.list_runs(*TASK, limit=2)) == 2
        assert store.list_runs(*TASK, limit=0) == []
        assert store.list_runs(*TASK, limit=-1) == []

    def test_a_record_that_json_cannot_hold_leaves_nothing(self, store: RecordStore) -> None:
        with pytest.raises(InvalidRecordError):
            store.save(a_record(variables={"x": float("nan")}))
        assert store.list_runs(*TASK) == []

    def test_nothing_but_the_record_is_left(self, store: RecordStore) -> None:
        store.save(a_record())
        store.save(a_record())
        names = [entry.name for entry in store._folder.entries("shop/sales/totals")]
        assert names == ["run-1.json"]


class Counting(RecordStore):
    """Counts the listings and the bodies that are read."""

    def __init__(self, store: RecordStore) -> None:
        self._folder = store._folder
        self.listings: list[str] = []
        self.bodies: list[str] = []
        entries, read = self._folder.entries, self._folder.read

        def counted_entries(path: str) -> Any:
            self.listings.append(path)
            return entries(path)

        def counted_read(path: str, limit: int) -> Any:
            self.bodies.append(path)
            return read(path, limit)

        self._folder.entries = counted_entries  # type: ignore[method-assign]
        self._folder.read = counted_read  # type: ignore[method-assign]


def test_the_newest_runs_of_many_cost_one_listing_and_as_many_bodies(store: RecordStore) -> None:
    for minute in range(30):
        store.save(a_record(f"r{minute:02}", minute))
    put(store, "zz.json", b"broken and newest")
    counted = Counting(store)
    assert len(counted.list_runs(*TASK, limit=3, on_invalid=Invalid())) == 3
    assert counted.listings == ["shop/sales/totals"]
    assert len(counted.bodies) == 4  # three records, and the broken file


def test_run_ids_cost_one_listing_and_no_body(store: RecordStore) -> None:
    for minute in range(3):
        store.save(a_record(f"r{minute}", minute))
    put(store, "notes.txt", b"")
    counted = Counting(store)
    assert counted.run_ids(*TASK) == ["r2", "r1", "r0"]
    assert (len(counted.listings), counted.bodies) == (1, [])
    assert store.run_ids("shop", "sales", "unknown") == []


def test_runs_that_a_name_rules_out_are_not_read(store: RecordStore) -> None:
    for minute in range(4):
        store.save(a_record(stored_run_id(f"r{minute}", [f"p{minute % 2}"]), minute))
    counted = Counting(store)
    runs = counted.iter_runs(*TASK, wanted=lambda run_id: may_hold_partition(run_id, "p1"))
    assert [record.run_id for record in runs] == ["r3--p1", "r1--p1"]
    assert len(counted.bodies) == 2


@pytest.mark.parametrize(
    ("partitions", "asked", "may"),
    [
        (["a"], "a", True),
        (["a"], "b", False),
        (["a|b"], "a|b", True),
        (["a.retry-1"], "a.retry-1", True),
        (["a", "b", "c"], "b", True),
        (["x" * 300], "x" * 300, True),
        ([], "a", True),
        ([""], "", True),
    ],
)
def test_a_name_rules_out_no_run_that_holds_the_partition(
    partitions: list[str], asked: str, may: bool
) -> None:
    for attempt in (0, 1):
        assert may_hold_partition(stored_run_id("r", partitions, attempt), asked) is may


def test_a_record_is_deleted_once(store: RecordStore) -> None:
    store.save(a_record("r0"))
    store.save(a_record("r1"))
    store.delete(*TASK, "r0")
    store.delete(*TASK, "r0")
    store.delete("shop", "sales", "unknown", "r0")
    assert store.run_ids(*TASK) == ["r1"]
    for outside in ("../totals/r1", "/r1", ".."):
        store.delete(*TASK, outside)
    assert store.run_ids(*TASK) == ["r1"]


def test_a_missing_bucket_is_not_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # Memory has no buckets; asked as if it had.
    monkeypatch.setattr(folders, "_WITH_BUCKETS", frozenset(["memory"]))
    bucket = str(uuid.uuid4())
    with pytest.raises(StoreError, match=f"there is no bucket '{bucket}'"):
        RecordStore(f"memory://{bucket}/x").list_runs(*TASK)
    RecordStore(f"memory://{bucket}/y").save(a_record())
    assert RecordStore(f"memory://{bucket}/x").list_runs(*TASK) == []


def test_search_reads_as_it_is_asked(store: RecordStore) -> None:
    for task in ("a", "b", "c"):
        store.save(a_record(task_name=task))
    counted = Counting(store)
    runs = counted.search()
    assert counted.bodies == []
    assert next(runs).task_name == "a"
    assert len(counted.bodies) == 1


def test_runs_are_listed_by_the_end_of_the_run_and_not_by_when_they_were_written(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    for minute in (2, 0, 3, 1):
        store.save(a_record(f"r{minute}", minute))
    assert [record.run_id for record in store.list_runs(*TASK)] == ["r3", "r2", "r1", "r0"]


def test_a_local_files_time_is_the_end_of_its_run(tmp_path: Path) -> None:
    path = Path(RecordStore(tmp_path).save(a_record()))
    ended = datetime(2024, 1, 1, 10, 0, 5, 750_000, tzinfo=timezone.utc)
    assert path.stat().st_mtime == ended.timestamp()


@pytest.mark.parametrize("ended", [None, "soon", "9999-99-99"])
def test_a_record_without_a_readable_end_is_still_written(tmp_path: Path, ended: str | None) -> None:
    store = RecordStore(tmp_path)
    store.save(a_record(ended_at=ended))
    assert store.load(*TASK, "run-1").ended_at == ended


def test_a_remote_listing_goes_by_the_stores_times() -> None:
    store = RecordStore(f"memory://{uuid.uuid4()}")
    for minute in (2, 0, 1):
        store.save(a_record(f"r{minute}", minute))
    assert [record.run_id for record in store.list_runs(*TASK)] == ["r1", "r0", "r2"]


def test_a_listing_is_never_an_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    # File systems keep their listings; another process may have written since.
    store = RecordStore(f"memory://{uuid.uuid4()}")
    store.save(a_record())
    memory = fsspec.filesystem("memory")
    events: list[str] = []
    ls = memory.ls
    monkeypatch.setattr(memory, "invalidate_cache", lambda path=None: events.append(f"forget {path[-6:]}"))
    monkeypatch.setattr(memory, "ls", lambda path, **more: (events.append("list"), ls(path, **more))[1])
    assert len(store.list_runs(*TASK)) == 1
    assert events == ["forget totals", "list"]


def test_where_a_listing_has_no_times_the_records_say_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    store = RecordStore(f"memory://{uuid.uuid4()}")
    for minute in (2, 0, 1):
        store.save(a_record(f"r{minute}", minute))
    memory = fsspec.filesystem("memory")
    ls = memory.ls

    def without_times(path: str, detail: bool = True, **more: Any) -> Any:
        return [{k: v for k, v in info.items() if k != "created"} for info in ls(path, detail=True)]

    monkeypatch.setattr(memory, "ls", without_times)
    assert [record.run_id for record in store.list_runs(*TASK, limit=2)] == ["r2", "r1"]
    assert store.run_ids(*TASK) == ["r2", "r1", "r0"]


def test_the_engines_records_are_all_read() -> None:
    for case in sorted(path for path in GENUINE.iterdir() if (path / ".ubunye").exists()):
        store = RecordStore(case)
        assert list(store.tasks()) == [("shop", "sales", "daily_totals")]
        runs = store.list_runs("shop", "sales", "daily_totals")
        assert len(runs) == 2
        assert {run.run_id for run in runs} == {run.run_id for run in store.search()}


def test_another_lineage_folder_can_be_named(tmp_path: Path) -> None:
    store = RecordStore(tmp_path, lineage_dir="elsewhere/lineage")
    store.save(a_record())
    assert (tmp_path / "elsewhere/lineage/shop/sales/totals/run-1.json").is_file()
    assert len(RecordStore("/nowhere", str(tmp_path / "elsewhere/lineage")).list_runs(*TASK)) == 1


def test_credentials_in_the_root_are_never_shown(tmp_path: Path) -> None:
    store = RecordStore("memory://user:pa55word@host/x?token=t0ken")
    shown = [repr(store), store.save(a_record())]
    with pytest.raises(RecordNotFoundError) as caught:
        store.load(*TASK, "nothing")
    assert "pa55word" not in "".join([*shown, str(caught.value)])
    assert "t0ken" not in "".join([*shown, str(caught.value)])


@pytest.mark.parametrize("url", ["nosuchthing://x", "hdfs://host/x", "s3::memory://x"])
def test_a_url_that_cannot_be_opened_is_one_line(url: str) -> None:
    store = RecordStore(url)  # nothing is touched yet
    for action in (lambda: store.list_runs(*TASK), lambda: store.save(a_record())):
        with pytest.raises(StoreError) as caught:
            action()
        assert "cannot be" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.__cause__ is not None


def test_a_remote_failure_of_any_kind_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    class OutOfReachError(Exception):
        """As client libraries raise them: no OSError, several lines, a secret."""

    def fail(*args: object, **kwargs: object) -> None:
        raise OutOfReachError("connection to https://u:pa55@host failed\nsecond line")

    store = RecordStore(f"memory://{uuid.uuid4()}")
    store.save(a_record())
    memory = fsspec.filesystem("memory")
    for name in ("ls", "cat_file", "pipe_file"):
        monkeypatch.setattr(memory, name, fail)
    for action in (
        lambda: store.list_runs(*TASK),
        lambda: list(store.tasks()),
        lambda: list(store.search()),
        lambda: store.load(*TASK, "run-1"),
        lambda: store.save(a_record()),
    ):
        with pytest.raises(StoreError) as caught:
            action()
        assert "connection to https://u:***@host failed (OutOfReachError)" in str(caught.value)
        assert "second" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-31", datetime(2024, 1, 31, tzinfo=timezone.utc)),
        ("2024-01-31T12:00:00Z", datetime(2024, 1, 31, 12, tzinfo=timezone.utc)),
        ("2024-01-31T12:00:00.5+02:00", datetime(2024, 1, 31, 10, 0, 0, 500_000, tzinfo=timezone.utc)),
        ("2024-01-31T12:00:00.1234567z", datetime(2024, 1, 31, 12, 0, 0, 123_456, tzinfo=timezone.utc)),
        ("x", None),
        ("", None),
    ],
)
def test_times_are_read(text: str, expected: datetime | None) -> None:
    assert parse_time(text) == expected


def test_what_is_stored_is_what_the_codec_writes(tmp_path: Path) -> None:
    path = Path(RecordStore(tmp_path).save(a_record()))
    assert path.read_bytes() == encode(a_record())
    assert json.loads(path.read_bytes())["run_id"] == path.stem
