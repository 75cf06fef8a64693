"""``with_receipts``: from an IO manager in any form, or a whole project, to the same with receipts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, overload

from dagster import (
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    ConfigurableIOManagerFactory,
    Definitions,
    IOManager,
    IOManagerDefinition,
    JobDefinition,
    ResourceDefinition,
    ScheduleDefinition,
    SensorDefinition,
    SourceAsset,
)

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.closing import GroupOf
from ubunye_orchestrate.dagster_io.receipts.code_links import with_code_link
from ubunye_orchestrate.dagster_io.receipts.input_names import (
    refuse_unknown_inputs,
    refuse_unknown_inputs_of,
)
from ubunye_orchestrate.dagster_io.receipts.policies import policy_in
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapper import (
    ReceiptsIOManagerDefinition,
    ReceiptsMixin,
    WritesReceipts,
)
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.expectations.rules import Rule, rules_in, rules_of_function

__all__ = ["with_receipts"]

_DEFAULT_KEY = "io_manager"


@overload
def with_receipts(target: Definitions, receipts: Receipts | None = None) -> Definitions: ...
@overload
def with_receipts(
    target: type[ConfigurableIOManagerFactory[Any]], receipts: Receipts | None = None
) -> type[ConfigurableIOManagerFactory[Any]]: ...
@overload
def with_receipts(target: Any, receipts: Receipts | None = None) -> IOManagerDefinition: ...
def with_receipts(target: Any, receipts: Receipts | None = None) -> Any:
    """Return an IO manager with receipts, of the same configuration; of ``Definitions``, every one in it.

    ``target`` is an IO manager as an instance, a configurable class, ``configure_at_launch(…)``, or a
    definition (``@io_manager``); or a project's ``Definitions``, where a missing default IO manager is added.
    ``receipts`` says where records go, by default what the environment says; of a project also its own
    ``Receipts`` resource, and each asset's page gets a link to its code. What writes receipts already is
    returned as it is. Raises ConfigurationError for anything else, for a second ``receipts`` around the
    first, and for rules or a policy in an asset's metadata that no run could use.
    """
    if isinstance(target, Definitions):
        return _wrap_project(target, receipts)
    if isinstance(target, type) and issubclass(target, ConfigurableIOManagerFactory):
        return _wrap_class(target, receipts)
    return _wrap(target, receipts, lambda key: None)


def _wrap(target: object, receipts: Receipts | None, group_of: GroupOf) -> Any:
    if _writes_receipts(target):
        if receipts is not None:
            raise ConfigurationError(
                f"{_name_of(target)} writes receipts already; expected an IO manager without. Give the "
                "receipts where it is made, and take with_receipts(…, receipts=…) away"
            )
        return target
    definition = _definition_of(target)
    if definition is None:
        raise ConfigurationError(
            f"with_receipts got {_name_of(target)}; expected an IO manager (an instance, a configurable "
            "class, a definition) or Definitions; for a class that is not configurable write "
            "with_receipts(ThatClass(...))"
        )
    return ReceiptsIOManagerDefinition(
        definition, (receipts or Receipts()).settings, _format_of(target), group_of
    )


def _wrap_class(
    target: type[ConfigurableIOManagerFactory[Any]], receipts: Receipts | None
) -> type[ConfigurableIOManagerFactory[Any]]:
    if issubclass(target, WritesReceipts):
        return target
    body = {
        "__module__": target.__module__,
        "__doc__": target.__doc__,
        "receipts_settings": lambda self: receipts or Receipts(),
    }
    return type(target.__name__, (ReceiptsMixin, target), body)


def _wrap_project(project: Definitions, receipts: Receipts | None) -> Definitions:
    assets = _assets_of(project)
    resources = dict(project.resources or {})
    receipts_keys = {key for key, value in resources.items() if _is_receipts(value)}
    for asset in assets:
        if isinstance(asset, AssetsDefinition | AssetSpec):
            _refuse_what_no_run_could_use(asset, receipts_keys)
    chosen = receipts or next((r for r in resources.values() if isinstance(r, Receipts)), None)
    resources.setdefault(_DEFAULT_KEY, upstream.default_io_manager())

    # The groups are looked up when a step fails before anything else is known of it.
    @cache
    def groups() -> Mapping[AssetKey, str]:
        return {spec.key: spec.group_name or "default" for spec in wrapped.resolve_all_asset_specs()}

    def group_of(key: AssetKey) -> str | None:
        return groups().get(key)

    # Assets of one job must share one definition, by identity: each is wrapped once.
    made: dict[int, Any] = {}

    def wrap_all(given: Mapping[str, Any]) -> dict[str, Any]:
        for value in given.values():
            if id(value) not in made:
                made[id(value)] = _wrap_resource(value, chosen, group_of)
        return {name: made[id(value)] for name, value in given.items()}

    jobs: dict[int, JobDefinition] = {}

    def wrapped_job(job: JobDefinition) -> JobDefinition:
        # A job may be listed, scheduled and started by sensors: Dagster wants one and the same everywhere.
        if id(job) not in jobs:
            _refuse_rules_of_ops(job)
            jobs[id(job)] = _with_own_resources(job, wrap_all)
        return jobs[id(job)]

    wrapped = upstream.replace_definitions(
        project,
        resources=wrap_all(resources),
        assets=[with_code_link(_with_own_resources(asset, wrap_all)) for asset in assets],
        asset_checks=[_with_own_resources(check, wrap_all) for check in project.asset_checks or ()],
        jobs=[wrapped_job(job) if isinstance(job, JobDefinition) else job for job in project.jobs or ()],
        schedules=[_with_wrapped_jobs(one, wrapped_job) for one in project.schedules or ()],
        sensors=[_with_wrapped_jobs(one, wrapped_job) for one in project.sensors or ()],
    )
    return wrapped


def _assets_of(project: Definitions) -> list[Any]:
    """Return the assets of a project, with those that bring resources and only a schedule or a sensor has."""
    assets: list[Any] = list(project.assets or ())
    known = {key for one in assets if isinstance(one, AssetsDefinition) for key in one.keys}
    for automation in (*(project.schedules or ()), *(project.sensors or ())):
        if isinstance(automation, ScheduleDefinition | SensorDefinition):
            for asset in upstream.started_assets(automation):
                if asset.resource_defs and known.isdisjoint(asset.keys):
                    assets.append(asset)
                    known |= set(asset.keys)
    return assets


def _refuse_what_no_run_could_use(asset: AssetsDefinition | AssetSpec, receipts_keys: set[str]) -> None:
    """Raise ConfigurationError for rules or a policy that a run would fail at, or pass over."""
    specs = [asset] if isinstance(asset, AssetSpec) else asset.specs
    rules: list[Rule] = []
    for spec in specs:
        rules += rules_in(spec.metadata, spec.key.to_user_string())
        policy_in(spec.metadata, spec.key)
    if isinstance(asset, AssetsDefinition):
        own = {key for key, value in asset.resource_defs.items() if _is_receipts(value)}
        refuse_unknown_inputs_of(asset, [*_rules_above(asset), *rules], receipts_keys | own)


def _refuse_rules_of_ops(job: JobDefinition) -> None:
    """Raise ConfigurationError for a rule above an op of a job about an input that the op does not have."""
    for op in upstream.ops_of(job):
        function = upstream.rules_function_of(op)
        if function is not None:
            refuse_unknown_inputs(f"op {op.name}", rules_of_function(function), upstream.names_of_inputs(op))


def _rules_above(asset: AssetsDefinition) -> tuple[Rule, ...]:
    function = upstream.function_of(asset)
    return () if function is None else rules_of_function(function)


def _is_receipts(value: object) -> bool:
    made_by = getattr(value, "resource_cls", None) or getattr(value, "configurable_resource_cls", None)
    return isinstance(value, Receipts) or (inspect.isclass(made_by) and issubclass(made_by, Receipts))


def _wrap_resource(value: Any, receipts: Receipts | None, group_of: GroupOf) -> Any:
    if isinstance(value, type) or _writes_receipts(value) or _definition_of(value) is None:
        return value
    return _wrap(value, receipts, group_of)


def _with_own_resources(definition: Any, wrap_all: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    """Wrap the IO managers that an asset, check or job brings along itself, which win over the project's."""
    if not isinstance(definition, AssetsDefinition | SourceAsset | JobDefinition):
        return definition
    own = upstream.own_resources(definition)
    wrapped = wrap_all(own)
    if all(wrapped[name] is own[name] for name in own):
        return definition
    # Each kind by itself: the function gives back the kind that it got.
    if isinstance(definition, JobDefinition):
        return upstream.replace_resources(definition, wrapped)
    if isinstance(definition, SourceAsset):
        return upstream.replace_resources(definition, wrapped)
    return upstream.replace_resources(definition, wrapped)


def _with_wrapped_jobs(automation: Any, wrapped_job: Callable[[JobDefinition], JobDefinition]) -> Any:
    """Give a schedule or a sensor its jobs with receipts; raises ConfigurationError where that cannot be."""
    if not isinstance(automation, ScheduleDefinition | SensorDefinition):
        # Of an asset job that is found when the project is loaded: it has the project's resources.
        return automation
    jobs = [job for job in upstream.jobs_started_by(automation) if isinstance(job, JobDefinition)]
    changed = [job for job in jobs if wrapped_job(job) is not job]
    if not changed:
        return automation
    replaced = upstream.replace_jobs(automation, wrapped_job)
    if replaced is None:
        job = changed[0]
        own, wrapped = upstream.own_resources(job), upstream.own_resources(wrapped_job(job))
        key = next(name for name in own if wrapped[name] is not own[name])
        raise ConfigurationError(
            f"with_receipts got {type(automation).__name__} {automation.name}, a class of its own, to which "
            f"Dagster cannot give job {job.name} with receipts; expected a schedule or a sensor of "
            f'Dagster\'s, or in the job: resource_defs={{"{key}": with_receipts({_name_of(own[key])}(…))}}'
        )
    return replaced


def _definition_of(target: object) -> IOManagerDefinition | None:
    """Return the definition of an IO manager in any form; None for what is none."""
    if isinstance(target, IOManagerDefinition):
        return target
    make = getattr(target, "get_resource_definition", None)
    if make is not None and not isinstance(target, type):
        definition = make()
        return definition if isinstance(definition, IOManagerDefinition) else None
    if isinstance(target, IOManager):
        return IOManagerDefinition.hardcoded_io_manager(target)
    return None


def _writes_receipts(target: object) -> bool:
    if isinstance(target, WritesReceipts):
        return True
    made_by = getattr(target, "resource_cls", None) or getattr(target, "configurable_resource_cls", None)
    return inspect.isclass(made_by) and issubclass(made_by, WritesReceipts)


def _format_of(target: object) -> str | None:
    """Return how records call an IO manager; None where only the one at work can tell.

    A definition that was configured has lost its name, but not its function.
    """
    if isinstance(target, ResourceDefinition) and not hasattr(target, "__name__"):
        found = _name_of(target)
        if found != type(target).__name__:
            return found
        name = getattr(target.resource_fn, "__name__", "")
        return name if name.isidentifier() else None
    return _name_of(target)


def _name_of(target: object) -> str:
    """Return how messages call an IO manager: the class of the user, not Dagster's around it."""
    for attribute in ("resource_cls", "configurable_resource_cls"):
        made_by = getattr(target, attribute, None)
        if inspect.isclass(made_by):
            return made_by.__name__
    if isinstance(target, type):
        return target.__name__
    if isinstance(target, ResourceDefinition):
        return getattr(target, "__name__", type(target).__name__)
    return type(target).__name__
