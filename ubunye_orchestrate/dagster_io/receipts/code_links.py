"""The link from an asset's page to the function that makes it."""

from __future__ import annotations

import logging
import warnings
from typing import Any

from dagster import AssetsDefinition, BetaWarning, with_source_code_references

__all__ = ["with_code_link"]

_LINKS = "dagster/code_references"
_logger = logging.getLogger(__name__)


def with_code_link(definition: Any) -> Any:
    """Return an asset with a link to the file and line of its function, as Dagster's pages show it.

    An asset that has links of its own keeps those. Whatever is no asset, or has no function that stands in a
    file, is returned as it is.
    """
    if not isinstance(definition, AssetsDefinition) or not definition.is_executable:
        return definition
    if any(_LINKS in metadata for metadata in definition.metadata_by_key.values()):
        return definition
    try:
        with warnings.catch_warnings():
            # Dagster calls the function beta; who uses this one need not know.
            warnings.simplefilter("ignore", BetaWarning)
            (linked,) = with_source_code_references([definition])
    except Exception:
        # A function typed in a shell, or made by a program, has no file to link to.
        _logger.debug("no link to the code of %s", definition.keys, exc_info=True)
        return definition
    return linked
