"""Running an asset only when the rows of an input changed: the data hash is Dagster's data version."""

from __future__ import annotations

from dagster import AssetCheckKey, AssetKey, AutomationCondition

__all__ = ["on_changed_data"]


def on_changed_data() -> AutomationCondition[AssetKey | AssetCheckKey]:
    """Return the automation condition of an asset that is to run when the data of an input changed.

    Use it as ``@asset(automation_condition=on_changed_data())``. It is Dagster's ``eager()`` with another
    reason to run: not that an input was materialized, but that its data version, which is the hash of its
    rows, is another one. An input whose rows have no hash changes with every run, since Dagster then makes up
    a version.
    """
    reason = AutomationCondition.newly_missing() | AutomationCondition.any_deps_match(
        AutomationCondition.data_version_changed()
    )
    return (
        reason.since_last_handled()
        & ~AutomationCondition.any_deps_missing()
        & ~AutomationCondition.any_deps_in_progress()
        & ~AutomationCondition.in_progress()
    ).with_label("on_changed_data")
