"""Receipts around IO managers that know nothing of them, in every form in which users have them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dagster import (
    AssetIn,
    AssetKey,
    AssetMaterialization,
    ConfigurableIOManager,
    ConfigurableIOManagerFactory,
    Definitions,
    EnvVar,
    FilesystemIOManager,
    InMemoryIOManager,
    InputContext,
    IOManager,
    IOManagerDefinition,
    MetadataValue,
    Out,
    Output,
    OutputContext,
    asset,
    build_output_context,
    define_asset_job,
    fs_io_manager,
    io_manager,
    job,
    mem_io_manager,
    op,
)
from dagster._core.storage.fs_io_manager import PickledObjectFilesystemIOManager
from dagster_duckdb_pandas import DuckDBPandasIOManager
from dagster_duckdb_polars import DuckDBPolarsIOManager

from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapper import ReceiptsMixin
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project
from .nested import Database, OverDatabase

FRAME = pd.DataFrame({"id": [1, 2, 3], "name": ["a", "b", None]})
FRAME_HASH = fingerprint(FRAME).data_hash


@asset
def numbers() -> pd.DataFrame:
    return FRAME.copy()


@asset
def doubled(numbers: pd.DataFrame) -> pd.DataFrame:
    return numbers.assign(id=numbers["id"] * 2)


class Folder(ConfigurableIOManager):
    """A configurable IO manager as users write them."""

    folder: str

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        Path(self.folder).mkdir(exist_ok=True)
        obj.to_pickle(Path(self.folder) / f"{context.asset_key.path[-1]}.pkl")

    def load_input(self, context: InputContext) -> Any:
        return pd.read_pickle(Path(self.folder) / f"{context.asset_key.path[-1]}.pkl")


@io_manager(config_schema={"folder": str})
def folder_io_manager(context: Any) -> IOManager:
    return Folder(folder=context.resource_config["folder"])


class MixedFolder(ReceiptsMixin, Folder):
    """The same by inheritance. ``mirror`` shows that a subclass may have fields of its own."""

    mirror: str

    def receipts_settings(self) -> Receipts:
        return Receipts(root=self.mirror)


FORMS = ["instance", "configurable", "env_var", "at_launch", "definition", "configured", "class", "mixin"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_io_manager_writes_a_receipt(
    form: str, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, mirror = str(tmp_path / "stored"), str(project.root)
    monkeypatch.setenv("THE_FOLDER", folder)
    config: dict[str, Any] = {"resources": {"io_manager": {"config": {"folder": folder}}}}
    in_config = form in ("at_launch", "definition")
    manager: Any = {
        "instance": lambda: with_receipts(InMemoryIOManager(), project.receipts),
        "configurable": lambda: with_receipts(Folder(folder=folder), project.receipts),
        "env_var": lambda: with_receipts(Folder(folder=EnvVar("THE_FOLDER")), project.receipts),
        "at_launch": lambda: with_receipts(Folder.configure_at_launch(), project.receipts),
        "definition": lambda: with_receipts(folder_io_manager, project.receipts),
        "configured": lambda: with_receipts(folder_io_manager, project.receipts).configured(
            {"folder": folder}
        ),
        "class": lambda: with_receipts(Folder, project.receipts)(folder=folder),
        "mixin": lambda: MixedFolder(folder=folder, mirror=mirror),
    }[form]()
    project.run([numbers, doubled], manager, run_config=config if in_config else None)
    receipt = project.receipt("doubled")
    assert [step.data_hash for step in receipt.inputs] == [FRAME_HASH]
    assert receipt.outputs[0].data_hash == fingerprint(FRAME.assign(id=FRAME["id"] * 2)).data_hash
    assert [record.run_id for record in project.mirrored("doubled")] == [receipt.run_id]
    if form != "instance":
        assert sorted(path.name for path in Path(folder).iterdir()) == ["doubled.pkl", "numbers.pkl"]


class TestOrderOfTheMixin:
    """Behind the IO manager's class the mixin would do nothing, and nobody would see it."""

    def test_behind_the_io_manager_it_is_refused(self) -> None:
        wanted = r"Wrong has .* before ReceiptsMixin.*class Wrong\(ReceiptsMixin, FilesystemIOManager\)"
        with pytest.raises(ConfigurationError, match=wanted):

            class Wrong(FilesystemIOManager, ReceiptsMixin):
                pass

    def test_behind_one_that_is_its_own_io_manager_it_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match=r"class Wrong\(ReceiptsMixin, Folder\)"):

            class Wrong(Folder, ReceiptsMixin):
                pass

    def test_behind_a_subclass_and_by_a_subclass_of_the_mixin_it_is_refused(self) -> None:
        class Elsewhere(ReceiptsMixin):
            pass

        class Child(Folder):
            pass

        with pytest.raises(ConfigurationError, match=r"class Wrong\(Elsewhere, Child\)"):

            class Wrong(Child, Elsewhere):
                pass

    def test_an_io_manager_that_is_not_configurable_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match=r"without the mixin: with_receipts\(Wrong\(\)\)"):

            class Wrong(ReceiptsMixin, InMemoryIOManager):
                pass

    @pytest.mark.parametrize("way", ["made", "yielded", "yielded_by_itself", "class"])
    def test_however_it_starts_its_io_manager(self, way: str, project: Project, tmp_path: Path) -> None:
        ended: list[str] = []

        class Connected(Folder):
            @contextmanager
            def yield_for_execution(self, context: Any) -> Iterator[Any]:
                yield self
                ended.append("disconnected")

        class Mixed(ReceiptsMixin):
            def receipts_settings(self) -> Receipts:
                return project.receipts

        class Made(Mixed, ConfigurableIOManagerFactory[Any]):
            folder: str

            def create_io_manager(self, context: Any) -> IOManager:
                return Folder(folder=self.folder)

            def teardown_after_execution(self, context: Any) -> None:
                ended.append("disconnected")

        class Yielded(Mixed, Connected):
            pass

        class YieldedByItself(Mixed, Folder):
            @contextmanager
            def yield_for_execution(self, context: Any) -> Iterator[Any]:
                with super().yield_for_execution(context) as manager:
                    yield manager
                ended.append("disconnected")

        classes: dict[str, Any] = {
            "made": Made,
            "yielded": Yielded,
            "yielded_by_itself": YieldedByItself,
            "class": with_receipts(Connected, project.receipts),
        }
        project.run([numbers, doubled], classes[way](folder=str(tmp_path / "stored")))
        (record,) = project.mirrored("doubled")
        assert record.outputs[0].row_count == record.inputs[0].row_count == 3
        assert record.outputs[0].format == classes[way].__name__
        assert (record.dagster or {})["step_status"] == "success"
        assert ended == ["disconnected"]

    def test_one_that_starts_asynchronously_is_refused(self, project: Project) -> None:
        class Later(ReceiptsMixin, Folder):
            @asynccontextmanager
            async def yield_for_execution(self, context: Any) -> Any:  # type: ignore[override]
                yield self

        with pytest.raises(Exception, match="resource") as raised:
            project.run([numbers], Later(folder="x"))
        assert "with_receipts(Later(…))" in str(raised.value.__cause__)

    def test_what_else_stands_first_may(self, project: Project, tmp_path: Path) -> None:
        class Named:
            def name_of(self) -> str:
                return "named"

        class Elsewhere(ReceiptsMixin):
            def receipts_settings(self) -> Receipts:
                return project.receipts

        class Right(Named, Elsewhere, Folder):
            def create_io_manager(self, context: Any) -> IOManager:
                return super().create_io_manager(context)

        class Child(Right):
            pass

        project.run([numbers], Child(folder=str(tmp_path / "stored")))
        assert project.receipt("numbers").outputs[0].format == "Child"


def test_the_file_system_one_is_known_to_store_values_whole(project: Project, tmp_path: Path) -> None:
    manager = with_receipts(FilesystemIOManager(base_dir=str(tmp_path / "stored")), project.receipts)
    project.run([numbers, doubled], manager)
    receipt = project.receipt("doubled")
    assert receipt.inputs[0].hash_scope == "stored_table"
    assert receipt.outputs[0].hash_scope == "stored_table"
    assert receipt.outputs[0].format == "FilesystemIOManager"
    assert receipt.outputs[0].location == str(tmp_path / "stored" / "doubled")


def test_a_subclass_of_one_is_not_known_to(project: Project, tmp_path: Path) -> None:
    """It may keep what it likes of a value."""

    class FirstRow(InMemoryIOManager):
        def handle_output(self, context: OutputContext, obj: Any) -> None:
            super().handle_output(context, obj.head(1))

    class Elsewhere(FilesystemIOManager):
        def create_io_manager(self, context: Any) -> PickledObjectFilesystemIOManager:
            return FirstRowOnDisk(base_dir=self.base_dir)

    class FirstRowOnDisk(PickledObjectFilesystemIOManager):
        def dump_to_path(self, context: OutputContext, obj: Any, path: Any) -> None:
            super().dump_to_path(context, obj.head(1), path)

    for manager in (FirstRow(), Elsewhere(base_dir=str(tmp_path / "stored"))):
        project.run([numbers, doubled], with_receipts(manager, project.receipts))
        receipt = project.receipt("doubled")
        assert receipt.inputs[0].row_count == 1
        assert receipt.inputs[0].hash_scope == receipt.outputs[0].hash_scope == "passed_rows"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (lambda folder: fs_io_manager.configured({"base_dir": folder}), "fs_io_manager"),
        (lambda folder: folder_io_manager.configured({"folder": folder}), "folder_io_manager"),
        (lambda folder: fs_io_manager, "fs_io_manager"),
        (lambda folder: Folder(folder=folder).get_resource_definition(), "Folder"),
        (lambda folder: IOManagerDefinition.hardcoded_io_manager(Folder(folder=folder)), "Folder"),
        (lambda folder: IOManagerDefinition(lambda context: Folder(folder=folder)), "Folder"),
    ],
    ids=["configured", "configured_of_mine", "definition", "class", "hardcoded", "lambda"],
)
@pytest.mark.filterwarnings("ignore:Function `fs_io_manager` is superseded")
def test_a_definition_is_called_by_the_users_name(
    given: Any, name: str, project: Project, tmp_path: Path
) -> None:
    project.run([numbers], with_receipts(given(str(tmp_path / "stored")), project.receipts))
    receipt = project.receipt("numbers")
    assert receipt.outputs[0].format == name
    assert receipt.timings[-1]["step"] == f"Writer:{name}"


class TestDuckDB:
    """DbIOManager reads ``resource_config``, dispatches on types and adds metadata of its own."""

    @pytest.fixture(params=["wrapped", "mixed"])
    def manager(self, request: pytest.FixtureRequest, project: Project, tmp_path: Path) -> Any:
        database = str(tmp_path / "db.duckdb")
        if request.param == "wrapped":
            return with_receipts(DuckDBPandasIOManager(database=database), project.receipts)

        class Mixed(ReceiptsMixin, DuckDBPandasIOManager):
            def receipts_settings(self) -> Receipts:
                return project.receipts

        return Mixed(database=database)

    def test_stores_and_loads_with_receipts(self, manager: Any, project: Project, tmp_path: Path) -> None:
        project.run([numbers, doubled], manager)
        with duckdb.connect(str(tmp_path / "db.duckdb")) as connection:
            assert connection.sql("select sum(id) from public.doubled").fetchall() == [(12,)]
        metadata = project.metadata("doubled")
        # Its own keys stay as they are, ours are added.
        assert metadata["dagster/table_name"].endswith("public.doubled")
        assert metadata["ubunye/data_hash"].startswith("sha256:")
        receipt = project.receipt("doubled")
        assert receipt.outputs[0].hash_scope == "passed_rows"
        assert receipt.inputs[0].row_count == 3
        assert receipt.backend == "pandas"

    def test_a_selection_of_columns_is_a_projection(self, manager: Any, project: Project) -> None:
        @asset(ins={"numbers": AssetIn(metadata={"columns": ["id"]})})
        def ids(numbers: pd.DataFrame) -> pd.DataFrame:
            assert list(numbers) == ["id"]
            return numbers

        project.run([numbers, ids], manager)
        step = project.receipt("ids").inputs[0]
        assert step.hash_scope == "projection"
        assert step.columns == [("id", "int64")]


def test_polars_frames_are_stored_in_duckdb(project: Project, tmp_path: Path) -> None:
    """Loading fails in dagster-duckdb-polars 0.29 itself: it calls a name that DuckDB 2 no longer has."""

    @asset
    def cities() -> pl.DataFrame:
        return pl.DataFrame({"id": [1, 2], "name": ["a", None]})

    manager = DuckDBPolarsIOManager(database=str(tmp_path / "db.duckdb"))
    assert project.run([cities], with_receipts(manager, project.receipts)).success
    receipt = project.receipt("cities")
    assert (
        receipt.outputs[0].data_hash
        == fingerprint(pl.DataFrame({"id": [1, 2], "name": ["a", None]})).data_hash
    )
    assert (receipt.backend, receipt.outputs[0].format) == ("polars", "DuckDBPolarsIOManager")
    with duckdb.connect(str(tmp_path / "db.duckdb")) as connection:
        assert connection.sql("select name from public.cities order by id").fetchall() == [("a",), (None,)]


class Yielding(IOManager):
    """A generator as ``handle_output``."""

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}

    def handle_output(self, context: OutputContext, obj: Any) -> Iterator[Any]:  # type: ignore[override]
        self.values[tuple(context.get_identifier())] = obj
        yield {"stored_by": MetadataValue.text("generator"), "ubunye/data_hash": MetadataValue.text("theirs")}
        yield AssetMaterialization(asset_key="side_product")

    def load_input(self, context: InputContext) -> Any:
        return self.values[tuple(context.get_identifier())]


@pytest.mark.filterwarnings("ignore:Yielding metadata from an IOManager")
def test_a_generator_is_drained_and_what_it_yields_counts(project: Project) -> None:
    project.run([numbers, doubled], with_receipts(Yielding(), project.receipts))
    metadata = project.metadata("doubled")
    assert metadata["stored_by"] == "generator"
    assert metadata["ubunye/data_hash"] == "theirs"
    assert metadata["ubunye/data_hash (receipt)"] == project.receipt("doubled").outputs[0].data_hash
    assert len(project.events("side_product")) == 2


class Mutating(InMemoryIOManager):
    """Changes the user's frame before it stores it."""

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        obj["id"] = 0
        super().handle_output(context, obj)


def test_a_frame_is_hashed_before_the_inner_io_manager_gets_it(project: Project) -> None:
    project.run([numbers], with_receipts(Mutating(), project.receipts))
    assert project.receipt("numbers").outputs[0].data_hash == FRAME_HASH


class Failing(InMemoryIOManager):
    def handle_output(self, context: OutputContext, obj: Any) -> None:
        raise OSError("the disk is full")


def test_the_inner_error_is_the_steps_error_and_leaves_no_success(project: Project) -> None:
    manager = with_receipts(Failing(), project.receipts)
    result = project.run([numbers], manager, raise_on_error=False)
    assert not result.success
    assert "OSError: the disk is full" in str(result.failure_data_for_node("numbers"))
    assert [record.status for record in project.mirrored("numbers")] == ["error"]
    assert project.mirrored("numbers")[0].error == "OSError: the disk is full"


class ByHand(IOManager):
    def __init__(self, value: Any) -> None:
        self.value = value

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        # Reads a reader to its end, as a real one would.
        self.stored = obj.read_all() if isinstance(obj, pa.RecordBatchReader) else obj

    def load_input(self, context: InputContext) -> Any:
        return self.value() if callable(self.value) else self.value


def a_reader() -> pa.RecordBatchReader:
    return pa.table({"x": [1, 2]}).to_reader()


class Proxy:
    """Stands for something that is not there now, and says so whatever it is asked."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("working outside of application context")


UNTOUCHED = {
    "proxy": (Proxy(), "not a table (Proxy)"),
    "dict": ({"a": 1}, "not a table (dict)"),
    "none": (None, "not a table (NoneType)"),
    "series": (pd.Series([1, 2]), "not a table (Series)"),
    "list": ([1, 2], "not a table (list)"),
    "reader": (
        a_reader,
        "not hashed: a RecordBatchReader can be read only once, and hashing would empty it",
    ),
    "lazy": (pl.LazyFrame({"x": [1]}), "not hashed: a Polars LazyFrame is not computed for its hash"),
    "relation": (
        lambda: duckdb.sql("select 1 as x"),
        "not hashed: a DuckDB relation is not computed for its hash",
    ),
}


@pytest.mark.parametrize("kind", UNTOUCHED)
def test_what_is_not_a_table_in_memory_passes_untouched_and_says_so(kind: str, project: Project) -> None:
    value, reason = UNTOUCHED[kind]
    made = value() if callable(value) else value
    seen: list[Any] = []

    @asset
    def first() -> Any:
        return made

    @asset
    def second(first: Any) -> Any:
        seen.append(first)
        return 1

    inner = ByHand(value)
    result = project.run([first, second], with_receipts(inner, project.receipts))
    assert project.receipt("first").outputs[0].data_hash is None
    assert project.receipt("first").outputs[0].hash_error == reason
    assert project.metadata("first")["ubunye/hash_error"] == reason
    assert project.receipt("second").inputs[0].hash_error == reason
    assert "Traceback" not in project.log(result)
    # The asset got what the inner one loaded, and a reader still had its rows.
    if kind == "reader":
        assert seen[0].read_all().num_rows == 2
    else:
        assert seen[0] is value or kind == "relation"


@pytest.mark.parametrize(
    "made", [FRAME, pa.Table.from_pandas(FRAME), pl.from_pandas(FRAME)], ids=["pandas", "arrow", "polars"]
)
def test_frames_in_memory_are_hashed_whatever_their_library(made: Any, project: Project) -> None:
    @asset
    def table() -> Any:
        return made

    project.run([table], with_receipts(mem_io_manager, project.receipts))
    assert project.receipt("table").outputs[0].data_hash == FRAME_HASH


def test_hash_inputs_off_is_said(project: Project) -> None:
    receipts = Receipts(root=str(project.root), hash_inputs=False)
    project.run([numbers, doubled], with_receipts(InMemoryIOManager(), receipts))
    step = project.receipt("doubled").inputs[0]
    assert (step.data_hash, step.hash_error) == (None, "not hashed: hash_inputs is off")


class TestStacked:
    def test_a_wrapper_around_a_wrapper_is_the_first_one(self, project: Project) -> None:
        once = with_receipts(InMemoryIOManager(), project.receipts)
        assert with_receipts(once) is once
        mixed = MixedFolder(folder="x", mirror="y")
        assert with_receipts(mixed) is mixed
        partial = MixedFolder.configure_at_launch()
        assert with_receipts(partial) is partial
        assert with_receipts(MixedFolder) is MixedFolder

    def test_a_second_place_for_receipts_is_refused(self, project: Project) -> None:
        once = with_receipts(InMemoryIOManager(), project.receipts)
        with pytest.raises(ConfigurationError, match="writes receipts already; expected"):
            with_receipts(once, project.receipts)

    def test_hidden_in_a_definition_it_still_writes_one_receipt(self, project: Project) -> None:
        inside = with_receipts(Folder(folder=str(project.root / "stored")), project.receipts)

        @io_manager
        def hidden(context: Any) -> Iterator[Any]:
            with inside_of(inside, context) as manager:
                yield manager

        project.root.mkdir()
        project.run([numbers], with_receipts(hidden, project.receipts))
        record = project.receipt("numbers")
        assert [step["step"] for step in record.timings] == ["Transform:numbers", "Writer:Folder"]

    def test_one_that_hands_on_to_one_with_receipts_adds_none(self, project: Project) -> None:
        seen: list[Any] = []

        class Delegating(IOManager):
            def __init__(self, inner: Any) -> None:
                self.inner = inner

            def handle_output(self, context: OutputContext, obj: Any) -> None:
                self.inner.handle_output(context, obj)

            def load_input(self, context: InputContext) -> Any:
                return self.inner.load_input(context)

        @asset
        @expect.not_null("id").on_input("numbers")
        def copied(numbers: pd.DataFrame) -> pd.DataFrame:
            seen.append(numbers)
            return numbers

        ours = ParquetIOManager(base_path=str(project.root / "stored"), receipts=project.receipts)
        result = project.run([numbers, copied], with_receipts(Delegating(ours), project.receipts))
        record = project.receipt("copied")
        assert [(step.name, step.hash_scope) for step in record.inputs] == [("numbers", "stored_table")]
        assert [(step.name, step.hash_scope) for step in record.outputs] == [("copied", "stored_table")]
        assert [one["rule"] for one in record.expectations] == ["numbers_id_not_null"]
        timed = [step["step"] for step in record.timings if step["step"].endswith("er:ParquetIOManager")]
        assert timed == ["Reader:ParquetIOManager", "Writer:ParquetIOManager"]
        assert "ubunye" not in project.log(result)
        assert len(seen) == 1


def inside_of(definition: IOManagerDefinition, context: Any) -> Any:
    from contextlib import contextmanager

    return contextmanager(definition.resource_fn)(context)  # type: ignore[arg-type]


@pytest.mark.parametrize("target", [42, "io_manager", InMemoryIOManager, Receipts(), None])
def test_what_is_no_io_manager_is_refused(target: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"with_receipts got .*; expected an IO manager"):
        with_receipts(target)


class TestProject:
    @pytest.mark.filterwarnings("ignore:Parameter `resource_defs` of function `asset`")
    def test_every_io_manager_of_a_project_is_wrapped(self, project: Project, tmp_path: Path) -> None:
        @asset(io_manager_key="other")
        def elsewhere(numbers: pd.DataFrame) -> pd.DataFrame:
            return numbers

        @asset(io_manager_key="mine", resource_defs={"mine": mem_io_manager}, group_name="group_of_own")
        def own() -> pd.DataFrame:
            return FRAME

        @asset(io_manager_key="mine", resource_defs={"mine": mem_io_manager})
        def own_too(own: pd.DataFrame) -> pd.DataFrame:
            return own

        defs = with_receipts(
            Definitions(
                assets=[numbers, elsewhere, own, own_too],
                resources={
                    "io_manager": FilesystemIOManager(base_dir=str(tmp_path / "a")),
                    "other": FilesystemIOManager(base_dir=str(tmp_path / "b")),
                    "receipts": project.receipts,
                    "plain": 42,
                },
                jobs=[define_asset_job("everything")],
            )
        )
        defs.resolve_job_def("everything").execute_in_process(instance=project.instance)
        for key in ("numbers", "elsewhere", "own", "own_too"):
            assert project.receipt(key).outputs[0].data_hash == FRAME_HASH
        assert project.receipt("own").package == "group_of_own"
        assert defs.resources is not None
        assert defs.resources["plain"] == 42

    def test_a_project_without_an_io_manager_gets_dagsters_own(self, project: Project) -> None:
        defs = with_receipts(Definitions(assets=[numbers, doubled]), project.receipts)
        defs.resolve_implicit_global_asset_job_def().execute_in_process(instance=project.instance)
        receipt = project.receipt("doubled")
        assert receipt.inputs[0].data_hash == FRAME_HASH
        assert receipt.outputs[0].hash_scope == "stored_table"

    def test_the_group_of_an_asset_that_fails_at_once_is_known(self, project: Project) -> None:
        @asset(group_name="sources")
        def broken() -> None:
            raise ValueError("no")

        defs = with_receipts(Definitions(assets=[broken]), project.receipts)
        job_def = defs.resolve_implicit_global_asset_job_def()
        job_def.execute_in_process(instance=project.instance, raise_on_error=False)
        assert [record.error for record in project.mirrored("broken", "sources")] == ["ValueError: no"]

    def test_a_jobs_own_io_manager_is_wrapped(self, project: Project) -> None:
        @op
        def make() -> pd.DataFrame:
            return FRAME

        @job(resource_defs={"io_manager": mem_io_manager})
        def by_ops() -> None:
            make()

        defs = with_receipts(Definitions(jobs=[by_ops]), project.receipts)
        defs.resolve_job_def("by_ops").execute_in_process(instance=project.instance)
        assert [r.outputs[0].data_hash for r in project.mirrored("by_ops__make__result")] == [FRAME_HASH]


@pytest.mark.parametrize("nested", ["value", "top_level"])
def test_nested_resources_are_still_found(nested: str, project: Project) -> None:
    database = Database(name="prod") if nested == "value" else Database.configure_at_launch()
    manager = with_receipts(OverDatabase(database=database), project.receipts)
    config = None if nested == "value" else {"resources": {"database": {"config": {"name": "prod"}}}}
    resources = {} if nested == "value" else {"database": database}
    project.run([numbers], manager, resources=resources, run_config=config)
    assert project.metadata("numbers")["database"] == "prod"
    assert project.receipt("numbers").outputs[0].format == "OverDatabase"


def test_required_resource_keys_are_kept(project: Project) -> None:
    @io_manager(required_resource_keys={"value"})
    def needy(context: Any) -> IOManager:
        return ByHand(context.resources.value)

    resources = {"value": 42}
    project.run([numbers], with_receipts(needy, project.receipts), resources=resources)
    assert project.receipt("numbers").outputs[0].row_count == 3


def test_op_outputs_are_tasks_of_job_node_and_output(project: Project) -> None:
    @op(out={"left": Out(io_manager_key="m"), "right": Out(io_manager_key="m")})
    def split() -> Any:
        yield Output(FRAME, "left")
        yield Output({"no": "table"}, "right")

    @op(out=Out(io_manager_key="m"))
    def use(left: pd.DataFrame) -> pd.DataFrame:
        return left

    @job(resource_defs={"m": with_receipts(mem_io_manager, project.receipts)})
    def by_ops() -> None:
        left, _ = split()
        use(left)

    by_ops.execute_in_process(instance=project.instance)
    (record,) = project.mirrored("by_ops__use__result")
    assert record.dagster is not None
    assert record.dagster["asset_key"] is None
    assert record.inputs[0].name == "left"
    assert record.inputs[0].data_hash == FRAME_HASH
    assert project.mirrored("by_ops__split__right")[0].outputs[0].hash_error == "not a table (dict)"


def test_a_bare_context_is_passed_through(project: Project) -> None:
    definition = with_receipts(InMemoryIOManager(), project.receipts)
    from dagster import build_resources

    with (
        build_resources({"io": definition}) as resources,
        build_output_context(asset_key=AssetKey("x"), step_key="s", name="n") as context,
    ):
        resources.io.handle_output(context, FRAME)
        assert resources.io.values, "attributes of the inner IO manager are there"
    assert not project.root.exists()


def test_loading_outside_of_a_run_leaves_no_trace(project: Project, tmp_path: Path) -> None:
    manager = with_receipts(FilesystemIOManager(base_dir=str(tmp_path / "stored")), project.receipts)
    defs = Definitions(assets=[numbers], resources={"io_manager": manager})
    project.run([numbers], manager)
    loaded = defs.load_asset_value("numbers", instance=project.instance)
    pd.testing.assert_frame_equal(loaded, FRAME)
    assert len(project.mirrored("numbers")) == 1
