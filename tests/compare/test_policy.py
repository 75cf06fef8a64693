from __future__ import annotations

from typing import Any

import pytest

from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.errors import ConfigurationError


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"severities": {"data_drifted": "warn"}}, "'data_drifted'; known are configuration_changed"),
        ({"severities": {"code_changed": "fatal"}}, "one of none, note, warn, error"),
        ({"min_rows": -1}, "min_rows=-1"),
        ({"max_row_decrease": float("nan")}, "max_row_decrease=nan"),
        ({"min_rows": 2, "max_rows": 1}, "no number of rows fits"),
    ],
)
def test_a_policy_that_cannot_hold_is_refused(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        DriftPolicy(**arguments)
