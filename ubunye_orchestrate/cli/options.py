"""The options that several commands share, and what a shell offers for their values."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated

import typer

from ubunye_orchestrate.errors import UbunyeError

if TYPE_CHECKING:
    from ubunye_orchestrate.records.store import RecordStore

__all__ = [
    "LINEAGE_DIR",
    "Asset",
    "Full",
    "Json",
    "LineageDir",
    "Package",
    "Partition",
    "PolicyFile",
    "Root",
    "RunId",
    "TaskName",
    "Usecase",
    "complete_runs",
]

# As ``records.store.LINEAGE_DIR``; loading that module takes as long as all of the command line.
LINEAGE_DIR = ".ubunye/lineage"

_OFFERED = 50
_RUN_WORDS = ("latest", "previous", "baseline", "accepted")


def _store(context: typer.Context) -> RecordStore:
    from ubunye_orchestrate.records.settings import resolve_settings
    from ubunye_orchestrate.records.store import RecordStore

    given = context.params
    return RecordStore(resolve_settings(given.get("root")).root, given.get("lineage_dir") or LINEAGE_DIR)


def _tasks(context: typer.Context) -> list[tuple[str, str, str]]:
    given = context.params
    try:
        found = _store(context).tasks(
            given.get("usecase"), given.get("package"), given.get("task"), on_invalid=lambda path, why: None
        )
        return list(found)
    except UbunyeError:
        return []


def _offer(values: list[str], incomplete: str) -> list[str]:
    return sorted({value for value in values if value.startswith(incomplete) and value.isprintable()})


def _complete_usecase(context: typer.Context, incomplete: str) -> list[str]:
    return _offer([usecase for usecase, _, _ in _tasks(context)], incomplete)


def _complete_package(context: typer.Context, incomplete: str) -> list[str]:
    return _offer([package for _, package, _ in _tasks(context)], incomplete)


def _complete_task(context: typer.Context, incomplete: str) -> list[str]:
    return _offer([task for _, _, task in _tasks(context)], incomplete)


def _complete_asset(context: typer.Context, incomplete: str) -> list[str]:
    # Keys whose names had to be encoded are not offered: their task does not tell them.
    plain = [task for _, _, task in _tasks(context) if "%" not in task and "~" not in task]
    return _offer([task.replace("__", "/") for task in plain], incomplete)


def complete_runs(context: typer.Context, incomplete: str) -> list[str]:
    """Return the words and the newest run ids that may follow, by the names of files."""
    tasks = _tasks(context)
    asset = context.params.get("asset")
    if asset:
        tasks = [names for names in tasks if names[2] == asset.replace("/", "__")]
    try:
        run_ids = _store(context).run_ids(*tasks[0]) if len(tasks) == 1 else []
    except UbunyeError:
        run_ids = []
    newest = itertools.islice((run for run in run_ids if run.startswith(incomplete)), _OFFERED)
    return _offer([*_RUN_WORDS, *newest], incomplete)


Root = Annotated[
    str,
    typer.Option(
        "--usecase-dir",
        "-d",
        envvar="UBUNYE_ROOT",
        help="Folder or fsspec URL (s3://bucket/path) that holds the mirror.",
    ),
]
Usecase = Annotated[
    str | None,
    typer.Option("--usecase", "-u", help="First part of the task's path.", autocompletion=_complete_usecase),
]
Package = Annotated[
    str | None,
    typer.Option("--package", "-p", help="Second part: the asset's group.", autocompletion=_complete_package),
]
TaskName = Annotated[
    str | None,
    typer.Option(
        "--task",
        "-t",
        help="Third part: the asset, its key's parts joined with __.",
        autocompletion=_complete_task,
    ),
]
Asset = Annotated[
    str | None,
    typer.Option(
        "--asset",
        help="The asset by its key, such as raw/flights, instead of -t.",
        autocompletion=_complete_asset,
    ),
]
Partition = Annotated[str | None, typer.Option("--partition", help="Only runs of this partition.")]
RunId = Annotated[
    str | None,
    typer.Option(
        "--run-id",
        help="A run id or its beginning, latest, previous, baseline or accepted. [default: latest]",
        autocompletion=complete_runs,
    ),
]
LineageDir = Annotated[str, typer.Option("--lineage-dir", help="Where below -d the records are.")]
PolicyFile = Annotated[str | None, typer.Option("--policy", help="TOML file with the policy.")]
Json = Annotated[
    bool,
    typer.Option(
        "--json", help='One JSON document on standard output; errors too: {"ok": false, "error": ...}.'
    ),
]
Full = Annotated[bool, typer.Option("--full", help="Print hashes whole instead of their first 12 digits.")]
