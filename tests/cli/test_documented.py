"""The command line's page shows what its commands print."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.documented import PAGE, page_as_run
from ubunye_orchestrate.cli.app import _COMMANDS
from ubunye_orchestrate.cli.gate_policy import GatePolicy


def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_as_run(page, tmp_path), "run python -m tests.cli.documented"


def test_the_policy_file_on_the_page_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "gate.toml").write_text(text)
    policy = GatePolicy.read(tmp_path / "gate.toml").with_options(None, {})
    assert policy.fail_on == "error"
    assert policy.of("raw/flights").max_row_decrease == 0.1
    assert policy.of("raw/flights").deterministic
    assert not policy.of("default/staging/clean_flights", "clean_flights").deterministic


def test_every_command_is_shown_and_every_option_named(run: Callable[..., Any]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for command in _COMMANDS:
        assert f"$ ubunye-orchestrate lineage {command}" in page, command
        options = set(
            re.findall(r"--[a-z0-9][a-z0-9-]+", run(command, "--help").out.partition("Options:")[2])
        )
        for option in options - {"--help"}:
            assert f"`{option}" in page or f" {option}" in page, (command, option)
