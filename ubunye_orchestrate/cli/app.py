"""The commands and their options. Each reads the mirror, and says one thing of it.

Exit codes: 0 when the command could say what it was asked (also that something changed), 1 when not (no such
run, an unreadable mirror or record, several tasks to choose from), 2 for options that do not exist.
"""

from __future__ import annotations

import itertools
from typing import Annotated

import typer

from ubunye_orchestrate.cli.address import Mirror
from ubunye_orchestrate.cli.documents import record_document, trace_document
from ubunye_orchestrate.cli.output import errors_as, write_document, write_documents, write_text
from ubunye_orchestrate.cli.views import run_lines, search_lines, trace_lines
from ubunye_orchestrate.compare import render
from ubunye_orchestrate.compare.comparison import compare_records
from ubunye_orchestrate.compare.drift import judge
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.records.store import LINEAGE_DIR

__all__ = ["app"]

app = typer.Typer(
    name="ubunye-orchestrate",
    help="Receipts of data runs: what was read and written, with what, and what changed since.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
lineage = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")
app.add_typer(lineage, name="lineage", help="Look into the run records of a mirror.")


@app.callback()
def _root() -> None:
    """Receipts of data runs: what was read and written, with what, and what changed since."""


Root = Annotated[
    str,
    typer.Option(
        "--usecase-dir",
        "-d",
        envvar="UBUNYE_ROOT",
        help="Folder or fsspec URL (s3://bucket/path) that holds the mirror.",
    ),
]
Usecase = Annotated[str | None, typer.Option("--usecase", "-u", help="First part of the task's path.")]
Package = Annotated[str | None, typer.Option("--package", "-p", help="Second part: the asset's group.")]
TaskName = Annotated[
    str | None, typer.Option("--task", "-t", help="Third part: the asset, its key's parts joined with __.")
]
Asset = Annotated[
    str | None, typer.Option("--asset", help="The asset by its key, such as raw/flights, instead of -t.")
]
Partition = Annotated[str | None, typer.Option("--partition", help="Only runs of this partition.")]
RunId = Annotated[
    str | None,
    typer.Option("--run-id", help="Run id, its beginning, `latest` or `previous`. [default: latest]"),
]
LineageDir = Annotated[str, typer.Option("--lineage-dir", help="Where below -d the records are.")]
Json = Annotated[
    bool,
    typer.Option(
        "--json", help='One JSON document on standard output; errors too: {"ok": false, "error": ...}.'
    ),
]
Full = Annotated[bool, typer.Option("--full", help="Print hashes whole instead of their first 12 digits.")]


@lineage.command("list")
def list_runs(
    root: Root = ".",
    usecase: Usecase = None,
    package: Package = None,
    task: TaskName = None,
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="Number of recent runs to show.")] = 10,
    lineage_dir: LineageDir = LINEAGE_DIR,
    as_json: Json = False,
    asset: Asset = None,
    partition: Partition = None,
) -> None:
    """List the recent runs of a task, newest first.

    Names may be left out where there is only one task to choose.

        ubunye-orchestrate lineage list --asset raw/flights -n 5
    """
    with errors_as(as_json):
        mirror = Mirror.open(root, lineage_dir)
        found = mirror.task(usecase, package, task, asset, partition)
        records = list(itertools.islice(found.runs(), n))
        if not records:
            mirror.require_records()
            if mirror.on_invalid.first is not None:
                raise mirror.on_invalid.first
        if as_json:
            write_documents(record_document(record) for record in records)
        elif records:
            write_text(run_lines(found.path, records))
        else:
            write_text([f"No lineage records found for '{found.path}'."])


@lineage.command()
def show(
    root: Root = ".",
    usecase: Usecase = None,
    package: Package = None,
    task: TaskName = None,
    run_id: RunId = None,
    lineage_dir: LineageDir = LINEAGE_DIR,
    as_json: Json = False,
    asset: Asset = None,
    partition: Partition = None,
) -> None:
    """Show one run's record as JSON.

    ubunye-orchestrate lineage show --asset raw/flights --run-id previous
    """
    with errors_as(as_json):
        found = Mirror.open(root, lineage_dir).task(usecase, package, task, asset, partition)
        write_document(record_document(found.run(run_id)))


@lineage.command()
def compare(
    root: Root = ".",
    usecase: Usecase = None,
    package: Package = None,
    task: TaskName = None,
    run_id1: Annotated[
        str | None,
        typer.Option("--run-id1", help="The earlier run. [default: the one before the later run]"),
    ] = None,
    run_id2: Annotated[str | None, typer.Option("--run-id2", help="The later run. [default: latest]")] = None,
    lineage_dir: LineageDir = LINEAGE_DIR,
    as_json: Json = False,
    asset: Asset = None,
    partition: Partition = None,
    full: Full = False,
) -> None:
    """Compare two runs of a task: what changed, and what changed together with it.

    Without run ids: the newest run and the one before it (of its partition and profile, where there is one).
    A run id may be cut to its beginning. The exit code is 0 also when something changed.

        ubunye-orchestrate lineage compare

        ubunye-orchestrate lineage compare --asset raw/flights --partition 2013-01

        ubunye-orchestrate lineage compare -t flights --run-id1 506800f2
    """
    with errors_as(as_json):
        found = Mirror.open(root, lineage_dir).task(usecase, package, task, asset, partition)
        if run_id1 is None and run_id2 is None:
            earlier, later = found.newest_two()
        else:
            later = found.run(run_id2)
            earlier = found.before(later) if run_id1 is None else found.run(run_id1)
        comparison = compare_records(earlier, later)
        verdict = judge(comparison)
        if as_json:
            write_document(render.as_json(comparison, verdict))
        else:
            write_text(render.terminal(comparison, verdict, full_hashes=full).split("\n"))


@lineage.command()
def trace(
    root: Root = ".",
    usecase: Usecase = None,
    package: Package = None,
    task: TaskName = None,
    run_id: RunId = None,
    lineage_dir: LineageDir = LINEAGE_DIR,
    as_json: Json = False,
    asset: Asset = None,
    partition: Partition = None,
    full: Full = False,
) -> None:
    """Print one run from inputs to outputs, with code, environment, timings and expectations.

    ubunye-orchestrate lineage trace --asset raw/flights
    """
    with errors_as(as_json):
        record = Mirror.open(root, lineage_dir).task(usecase, package, task, asset, partition).run(run_id)
        if as_json:
            write_document(trace_document(record))
        else:
            write_text(trace_lines(record, full_hashes=full))


@lineage.command()
def search(
    root: Root = ".",
    task: TaskName = None,
    usecase: Usecase = None,
    package: Package = None,
    status: Annotated[str | None, typer.Option(help="success, error or running.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only runs started on or after this ISO date or time (UTC).")
    ] = None,
    lineage_dir: LineageDir = LINEAGE_DIR,
    as_json: Json = False,
    asset: Asset = None,
    partition: Partition = None,
) -> None:
    """Search the runs of all tasks, task by task, the newest of each first.

    ubunye-orchestrate lineage search --status error --since 2024-01-31
    """
    with errors_as(as_json):
        if status not in (None, "success", "error", "running"):
            raise ConfigurationError(f"--status {status!r}; expected success, error or running")
        mirror = Mirror.open(root, lineage_dir)
        records = mirror.search(usecase, package, task, asset, partition, status, since)
        first = next(records, None)
        if first is None:
            mirror.require_records()
            if mirror.on_invalid.first is not None:
                raise mirror.on_invalid.first
        matching = itertools.chain([first] if first is not None else [], records)
        if as_json:
            write_documents(record_document(record) for record in matching)
        elif first is not None:
            write_text(search_lines(matching))
        else:
            write_text(["No matching lineage records found."])
