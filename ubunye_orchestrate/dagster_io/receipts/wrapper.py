"""Receipts around any IO manager, without a change to it.

Invariants: the inner IO manager gets the user's value and the context unchanged; an eager frame is hashed
and held against the asset's rules before it gets it (it may change it), and the receipt is written after its
store succeeded; its error is the step's error.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ContextDecorator, contextmanager, nullcontext
from functools import wraps
from typing import Any, cast

from dagster import (
    AssetMaterialization,
    ConfigurableIOManagerFactory,
    InitResourceContext,
    InputContext,
    IOManager,
    IOManagerDefinition,
    OutputContext,
    ResourceDefinition,
)

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.closing import GroupOf, close_run, open_run
from ubunye_orchestrate.dagster_io.receipts.expecting import check_input, check_output
from ubunye_orchestrate.dagster_io.receipts.panel import harmless
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.values import combined
from ubunye_orchestrate.dagster_io.receipts.writer import (
    OpenInput,
    OpenOutput,
    ReceiptWriter,
    Scope,
    TableRead,
    TableStored,
)
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.records.settings import ReceiptSettings
from ubunye_orchestrate.records.values import (
    Value,
    columns_in_order,
    fingerprint_value,
    inspect_value,
    not_hashed,
)

__all__ = ["ReceiptsIOManager", "ReceiptsIOManagerDefinition", "ReceiptsMixin", "WritesReceipts"]

_INPUTS_OFF = "not hashed: hash_inputs is off"
# Where IO managers say in metadata where they put a table.
_LOCATION_KEYS = ("dagster/uri", "uri", "path", "dagster/table_name", "table_name")


class WritesReceipts:
    """Marks what writes receipts by itself: nothing is wrapped around it a second time."""


class ReceiptsIOManager(IOManager, WritesReceipts):
    """An IO manager at work, with receipts around it."""

    def __init__(self, inner: IOManager, settings: ReceiptSettings, name: str | None = None) -> None:
        """``name`` is how records call the inner IO manager; by default its class."""
        self._inner = inner
        self._name = name or type(inner).__name__
        self._writer = ReceiptWriter(settings, self._name)

    def __getattr__(self, name: str) -> Any:
        # An asset may use its IO manager as a resource too.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def handle_output(self, context: OutputContext, obj: Any) -> Any:
        """Store the value through the inner IO manager, then write its receipt."""
        begun: OpenOutput | None = None
        parts: Mapping[str | None, Fingerprint] = {}
        with harmless(context.log, "beginning a receipt"):
            begun = self._writer.begin_output(context)
        check_output(context, None if begun is None else begun.entry, obj)
        if begun is not None:
            with harmless(context.log, "hashing the output"):
                parts = self._hash_output(context, obj)
        known = 0 if begun is None else len(begun.entry.stored)
        started = time.perf_counter()
        yielded, returned = _drain(context, self._inner.handle_output(context, obj))
        seconds = time.perf_counter() - started
        # Nothing new was stored, unless the inner one hands on to one that writes receipts.
        if begun is not None and len(begun.entry.stored) == known:
            with harmless(context.log, "writing the receipt"):
                stored = TableStored(
                    parts=parts or {None: not_hashed("hashing failed; the run's log says why")},
                    format=self._name,
                    scope=self._output_scope(context),
                    location=_location_in({**context.get_logged_metadata(), **yielded}),
                    backend=inspect_value(obj).backend,
                    columns=columns_in_order(obj),
                    taken=yielded,
                )
                self._writer.end_output(context, begun, seconds, stored)
        return yielded or returned

    def load_input(self, context: InputContext) -> Any:
        """Load the value through the inner IO manager, and note what was read."""
        begun: OpenInput | None = None
        with harmless(context.log, "noting an input"):
            begun = self._writer.begin_input(context)
        known = 0 if begun is None else len(begun.entry.inputs)
        started = time.perf_counter()
        value = self._inner.load_input(context)
        seconds = time.perf_counter() - started
        if begun is not None and any(one.name == begun.name for one in begun.entry.inputs[known:]):
            return value  # the inner one hands on to one that has noted and checked it
        if begun is not None:
            with harmless(context.log, "noting an input"):
                read = TableRead(
                    fingerprint=self._hash_input(begun, value),
                    format=self._name,
                    scope=self._input_scope(context, value),
                    backend=_first_frame(begun.partitions, value).backend,
                )
                self._writer.end_input(begun, seconds, read)
        by_partition = begun is not None and begun.partitions and isinstance(value, Mapping)
        check_input(context, None if begun is None else begun.entry, value if by_partition else {None: value})
        return value

    def _hash_output(self, context: OutputContext, obj: Any) -> Mapping[str | None, Fingerprint]:
        if isinstance(obj, Mapping) and context.has_asset_partitions:
            keys = {str(key) for key in context.asset_partition_keys}
            if len(keys) > 1 and keys == {str(key) for key in obj}:
                return {str(key): self._hash(part) for key, part in obj.items()}
        return {None: self._hash(obj)}

    def _hash_input(self, begun: OpenInput, value: Any) -> Fingerprint:
        if not self._writer.settings.hash_inputs:
            return not_hashed(_INPUTS_OFF)
        keys = {str(key) for key in value} if isinstance(value, Mapping) else None
        if begun.partitions and keys is not None and keys <= set(begun.partitions):
            return combined({str(key): self._hash(part) for key, part in value.items()})
        return self._hash(value)

    def _hash(self, value: object) -> Fingerprint:
        settings = self._writer.settings
        return fingerprint_value(value, settings.naive_timestamps, settings.budget)

    def _output_scope(self, context: OutputContext) -> Scope:
        if not upstream.keeps_values_whole(self._inner):
            return "passed_rows"
        return "stored_partition" if context.has_asset_partitions else "stored_table"

    def _input_scope(self, context: InputContext, value: Any) -> Scope:
        # Database IO managers read a selection of columns where the input's metadata names some.
        if (context.definition_metadata or {}).get("columns"):
            return "projection"
        if not upstream.keeps_values_whole(self._inner):
            return "passed_rows"
        return "stored_partition" if context.has_asset_partitions else "stored_table"


class ReceiptsIOManagerDefinition(IOManagerDefinition, WritesReceipts):
    """An IO manager's definition with receipts around it, of the same configuration and requirements."""

    def __init__(
        self,
        inner: IOManagerDefinition,
        settings: Callable[[], ReceiptSettings],
        name: str | None,
        group_of: GroupOf,
    ) -> None:
        """``settings`` is called when the resource starts, since they may come from the environment."""
        self._inner = inner
        self._settings = settings
        self._name = name
        self._group_of = group_of
        super().__init__(
            resource_fn=cast("Any", _resource_function(inner, settings, name, group_of)),
            config_schema=inner.config_schema,
            description=inner.description,
            required_resource_keys=inner.required_resource_keys,
            input_config_schema=inner.input_config_schema,
            output_config_schema=inner.output_config_schema,
        )

    def copy_for_configured(self, description: str | None, config_schema: Any) -> ReceiptsIOManagerDefinition:
        """Return the same around the configured inner definition (``configured`` calls this)."""
        inner = self._inner.copy_for_configured(description, config_schema)
        return ReceiptsIOManagerDefinition(inner, self._settings, self._name, self._group_of)

    def get_required_resource_keys(self, resource_defs: Mapping[str, ResourceDefinition]) -> Any:
        """Return what the inner definition needs: its nested resources too."""
        return self._inner.get_required_resource_keys(resource_defs)

    def get_resource_requirements(self, source_key: Any) -> Any:
        """Return the inner definition's requirements."""
        return self._inner.get_resource_requirements(source_key)


class ReceiptsMixin(WritesReceipts):
    """Adds receipts to a configurable IO manager by inheritance, keeping its configuration.

    ``class Mine(ReceiptsMixin, DuckDBPandasIOManager): ...``: the mixin comes first; the other way round
    raises ConfigurationError, since nothing would be recorded. Override ``receipts_settings`` to say where
    records go.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _refuse_what_would_hide_the_mixin(cls)
        own = vars(cls).get("yield_for_execution")
        if own is not None:
            cls.yield_for_execution = _recorded(own)  # type: ignore[assignment, method-assign]  # it is called alike

    def receipts_settings(self) -> Receipts:
        """Return where records go and how runs are hashed; by default what the environment says."""
        return Receipts()

    def create_io_manager(self, context: InitResourceContext) -> IOManager:
        """Return the user's IO manager with receipts around it."""
        inner: IOManager = super().create_io_manager(context)  # type: ignore[misc]  # the class it is mixed into
        return ReceiptsIOManager(inner, self.receipts_settings().settings(), type(self).__name__)

    @contextmanager
    def yield_for_execution(self, context: InitResourceContext) -> Iterator[IOManager]:
        """Start the user's IO manager with receipts around it; close the steps that ended at its end."""
        inner = super().yield_for_execution(context)  # type: ignore[misc]  # the class it is mixed into
        with _with_receipts(self, context, inner) as manager:
            yield manager


def _refuse_what_would_hide_the_mixin(cls: type[ReceiptsMixin]) -> None:
    """Raise ConfigurationError for a class of which Dagster would never ask the mixin for anything."""
    if issubclass(cls, IOManager) and not issubclass(cls, ConfigurableIOManagerFactory):
        raise ConfigurationError(
            f"{cls.__name__} is an IO manager that is not configurable, so ReceiptsMixin would write no "
            "receipts; expected a ConfigurableIOManager, or without the mixin: "
            f"with_receipts({cls.__name__}())"
        )
    order = cls.__mro__[: cls.__mro__.index(ReceiptsMixin)]
    configurable = (one for one in order if issubclass(one, ConfigurableIOManagerFactory))
    first = next((one for one in configurable if not issubclass(one, ReceiptsMixin)), None)
    if first is not None:
        mixin = next(base for base in cls.__bases__ if issubclass(base, ReceiptsMixin))
        bases = [mixin, *(base for base in cls.__bases__ if base is not mixin)]
        raise ConfigurationError(
            f"{cls.__name__} has {first.__name__} before {mixin.__name__}, so it would write no receipts; "
            f"expected the mixin first: class {cls.__name__}({', '.join(one.__name__ for one in bases)})"
        )


def _recorded(
    started: Callable[[Any, InitResourceContext], AbstractContextManager[IOManager]],
) -> Callable[[Any, InitResourceContext], AbstractContextManager[IOManager]]:
    """Return a user's ``yield_for_execution`` with receipts around what it yields."""

    @wraps(started)
    def yield_for_execution(
        self: ReceiptsMixin, context: InitResourceContext
    ) -> AbstractContextManager[IOManager]:
        return _with_receipts(self, context, started(self, context))

    return yield_for_execution


@contextmanager
def _with_receipts(
    mixin: ReceiptsMixin, context: InitResourceContext, started: AbstractContextManager[IOManager]
) -> Iterator[IOManager]:
    """Put receipts around what a resource starts, unless they are there already."""
    if not isinstance(started, AbstractContextManager):
        name = type(mixin).__name__
        raise ConfigurationError(
            f"{name}.yield_for_execution is asynchronous, which ReceiptsMixin cannot be around; expected a "
            f"class without the mixin: with_receipts({name}(…))"
        )
    open_run(context, lambda: mixin.receipts_settings().settings())
    with started as manager:
        if not isinstance(manager, ReceiptsIOManager):
            settings = mixin.receipts_settings().settings()
            manager = ReceiptsIOManager(manager, settings, type(mixin).__name__)
        try:
            yield manager
        finally:
            close_run(context, mixin.receipts_settings().settings)


def _resource_function(
    inner: IOManagerDefinition, settings: Callable[[], ReceiptSettings], name: str | None, group_of: GroupOf
) -> Callable[[InitResourceContext], Iterator[IOManager]]:
    def io_manager_with_receipts(context: InitResourceContext) -> Iterator[IOManager]:
        resolved = settings()
        open_run(context, lambda: resolved)
        with _entered(inner, context) as manager:
            if isinstance(manager, WritesReceipts):
                yield manager
                return
            try:
                yield ReceiptsIOManager(manager, resolved, name)
            finally:
                close_run(context, lambda: resolved, group_of)

    return io_manager_with_receipts


def _entered(
    definition: IOManagerDefinition, context: InitResourceContext
) -> AbstractContextManager[IOManager]:
    """Start the inner resource as Dagster does: a function of one argument or none; a value, a generator or a
    context manager."""
    function = cast("Callable[..., Any]", definition.resource_fn)
    made = function(context) if inspect.signature(function).parameters else function()
    if inspect.isgenerator(made):
        return contextmanager(lambda: cast("Iterator[IOManager]", made))()
    if isinstance(made, ContextDecorator):
        return cast("AbstractContextManager[IOManager]", made)
    return nullcontext(made)


def _drain(context: OutputContext, result: Any) -> tuple[dict[str, Any], Any]:
    """Run the inner ``handle_output`` to its end.

    Returns the metadata that it yielded, which Dagster takes from our own return value as it would have from
    the generator, and whatever else it returned, for Dagster to judge.
    """
    if result is None:
        return {}, None
    metadata: dict[str, Any] = {}
    rest = None
    for item in result if inspect.isgenerator(result) else (result,):
        if isinstance(item, dict):
            metadata.update(item)
        elif isinstance(item, AssetMaterialization):
            context.log_event(item)
        else:
            rest = item
    return metadata, rest


def _location_in(metadata: Mapping[str, Any]) -> str | None:
    for key in _LOCATION_KEYS:
        value = metadata.get(key)
        text = getattr(value, "value", value)
        if isinstance(text, str) and text:
            return text
    return None


def _first_frame(partitions: tuple[str, ...], value: Any) -> Value:
    if partitions and isinstance(value, Mapping) and value:
        return inspect_value(next(iter(value.values())))
    return inspect_value(value)
