"""The ``ubunye-orchestrate`` command. Thin: it reads stored records and never imports Dagster."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command with the process's arguments; exits with 0, or 1 when something was wrong."""
    from ubunye_orchestrate.cli.app import app

    app(prog_name="ubunye-orchestrate")
