"""What the user says of a run, refused before the run where its record could not hold it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ubunye_orchestrate.errors import ConfigurationError, InvalidRecordError
from ubunye_orchestrate.masking import mask_variables
from ubunye_orchestrate.records.codec import refuse_foreign_values

__all__ = ["refuse_arguments"]

_MODELS = ("etl", "ml")


def refuse_arguments(
    *,
    task: str | Sequence[str],
    run_id: str | None,
    partition_keys: Sequence[str],
    function: Callable[..., object] | None,
    config: Mapping[str, Any] | None,
    variables: Mapping[str, Any] | None,
    version: str,
    model: str,
) -> None:
    """Raise ConfigurationError for the first argument of ``LineageRecorder.run`` that no record can hold."""
    if not task or not (isinstance(task, str) or _are_texts(task)):
        _refuse("task", task, "a name, or an asset key as a list of texts")
    if run_id is not None and not isinstance(run_id, str):
        _refuse("run_id", run_id, f"a text: {str(run_id)!r}")
    if isinstance(partition_keys, str):
        _refuse("partition_keys", partition_keys, f"a list of texts: {[partition_keys]!r}")
    if not _are_texts(partition_keys):
        _refuse("partition_keys", partition_keys, "a list of texts")
    if function is not None and not callable(function):
        _refuse("function", function, "a function, or None")
    if config is not None and not isinstance(config, Mapping):
        # Its values may be secrets.
        raise ConfigurationError(f"config got a {type(config).__name__}; expected a dict, or None")
    if not isinstance(version, str):
        _refuse("version", version, f"a text: {str(version)!r}")
    if model not in _MODELS:
        _refuse("model", model, " or ".join(repr(one) for one in _MODELS))
    try:
        refuse_foreign_values(mask_variables(variables or {}), "variables")
    except InvalidRecordError as e:
        raise ConfigurationError(str(e)) from e


def _are_texts(value: object) -> bool:
    return isinstance(value, Sequence) and all(isinstance(one, str) for one in value)


def _refuse(name: str, got: object, expected: str) -> NoReturn:
    raise ConfigurationError(f"{name} got {got!r}; expected {expected}")
