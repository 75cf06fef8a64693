"""The command line: every command and where it is.

Exit codes, of every command:

0   it could say what it was asked (``compare``: also that something changed)
1   it could not (no such run, an unreadable mirror or record, several tasks to choose from), or it found what
    it is there to find (a gate that failed, a table that is not what its receipt says)
2   options that do not exist or do not fit
"""

from __future__ import annotations

from collections.abc import Callable

import typer

from ubunye_orchestrate.cli import judging, keeping, reading

__all__ = ["app"]

_ABOUT = """Receipts of data runs: what was read and written, with what, and what changed since.

Exit codes: 0 done; 1 not done, or (gate, verify) done and found wanting; 2 options that do not fit.
"""

app = typer.Typer(
    name="ubunye-orchestrate",
    help=_ABOUT,
    no_args_is_help=True,
    # Plain help: it starts quickly, and reads the same on a terminal and in a pipe.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
lineage = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(
    lineage,
    name="lineage",
    help="""Look into records, judge runs, keep the mirror.

    A task is found by its names (-u, -p, -t) or by the asset's key (--asset raw/flights); names may be left
    out where only one task fits. The mirror is below -d, else UBUNYE_ROOT, else here.
    """,
)


@app.callback()
def _root() -> None:
    pass


_COMMANDS: dict[str, Callable[..., None]] = {
    "list": reading.list_runs,
    "show": reading.show,
    "compare": reading.compare,
    "why": judging.why,
    "trace": reading.trace,
    "search": reading.search,
    "assets": reading.assets,
    "gate": judging.gate,
    "verify": judging.verify,
    "accept": keeping.accept,
    "sync": keeping.sync,
    "prune": keeping.prune,
}
for _name, _command in _COMMANDS.items():
    lineage.command(_name)(_command)
