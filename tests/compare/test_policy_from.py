"""A policy written down: in a file, in an asset's metadata."""

from __future__ import annotations

from typing import Any

import pytest

from ubunye_orchestrate.compare.policy import DriftPolicy, policy_from
from ubunye_orchestrate.errors import ConfigurationError


def test_every_field_can_be_written() -> None:
    written: dict[str, Any] = {
        "severities": {"data_changed": "error"},
        "min_rows": 1,
        "max_rows": 10,
        "max_row_decrease": 0.1,
        "max_row_increase": 1,
        "ignore_packages": ["pandas"],
        "ignore_patch_versions": True,
        "deterministic": False,
    }
    assert policy_from(written, where="here") == DriftPolicy(
        severities={"data_changed": "error"},
        min_rows=1,
        max_rows=10,
        max_row_decrease=0.1,
        max_row_increase=1,
        ignore_packages=frozenset({"pandas"}),
        ignore_patch_versions=True,
        deterministic=False,
    )
    assert policy_from({}, where="here") == DriftPolicy()


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"min_row": 1}, "here has 'min_row'; expected one of severities, min_rows"),
        ({"min_rows": "1"}, "here: min_rows is '1'; expected a whole number"),
        ({"min_rows": True}, "here: min_rows is True; expected a whole number"),
        ({"min_rows": -1}, "here: DriftPolicy(min_rows=-1)"),
        ({"max_row_decrease": float("nan")}, "a bound is 0 or more"),
        ({"ignore_packages": "pandas"}, "expected a list of names"),
        ({"deterministic": 0}, "expected true or false"),
        ({"severities": ["x"]}, "expected a table of finding = severity"),
        ({"severities": {"nosuch": "error"}}, "names the finding 'nosuch'"),
        ({"severities": {"unknown": "bad"}}, "a severity is one of none, note, warn, error"),
    ],
)
def test_what_cannot_be_meant_is_refused(written: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        policy_from(written, where="here")
    assert told in str(caught.value)
