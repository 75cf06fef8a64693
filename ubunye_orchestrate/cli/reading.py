"""The commands that show records: list, show, compare, trace, search, assets.

What reads records is imported when a command runs, so that help and completion start without it.
"""

from __future__ import annotations

import itertools
from typing import Annotated

import typer

from ubunye_orchestrate.cli.options import (
    LINEAGE_DIR,
    Asset,
    Full,
    Json,
    LineageDir,
    Package,
    Partition,
    Root,
    RunId,
    TaskName,
    Usecase,
    complete_runs,
)
from ubunye_orchestrate.cli.output import errors_as, write_document, write_documents, write_text
from ubunye_orchestrate.errors import ConfigurationError

__all__ = ["assets", "compare", "list_runs", "search", "show", "trace"]


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

    \b
    Examples:
      ubunye-orchestrate lineage list --asset raw/flights -n 5
      ubunye-orchestrate lineage list -d s3://bucket/mirror -t raw__flights
    """
    with errors_as(as_json):
        from ubunye_orchestrate.cli.address import Mirror
        from ubunye_orchestrate.cli.documents import record_document
        from ubunye_orchestrate.cli.views import run_lines

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

    \b
    Examples:
      ubunye-orchestrate lineage show --asset raw/flights
      ubunye-orchestrate lineage show --asset raw/flights --run-id previous
    """
    with errors_as(as_json):
        from ubunye_orchestrate.cli.address import Mirror
        from ubunye_orchestrate.cli.documents import record_document

        found = Mirror.open(root, lineage_dir).task(usecase, package, task, asset, partition)
        write_document(record_document(found.run(run_id)))


def compare(
    root: Root = ".",
    usecase: Usecase = None,
    package: Package = None,
    task: TaskName = None,
    run_id1: Annotated[
        str | None,
        typer.Option(
            "--run-id1",
            help="The earlier run: a run id or its beginning, latest, previous, baseline or accepted. "
            "[default: the one before the later run]",
            autocompletion=complete_runs,
        ),
    ] = None,
    run_id2: Annotated[
        str | None,
        typer.Option("--run-id2", help="The later run. [default: latest]", autocompletion=complete_runs),
    ] = None,
    lineage_dir: LineageDir = LINEAGE_DIR,
    as_json: Json = False,
    asset: Asset = None,
    partition: Partition = None,
    full: Full = False,
) -> None:
    """Compare two runs of a task: what changed, and with what.

    Without run ids: the newest run and the one before it (of its partition and profile, where there is one).
    As the earlier run, `previous`, `baseline` and `accepted` are counted from the later one. The exit code is
    0 also when something changed; `gate` is what fails.

    \b
    Examples:
      ubunye-orchestrate lineage compare
      ubunye-orchestrate lineage compare --asset raw/flights --run-id1 baseline
      ubunye-orchestrate lineage compare --asset marts/delays --partition 2013-01
      ubunye-orchestrate lineage compare -t raw__flights --run-id1 506800f2
    """
    with errors_as(as_json):
        from ubunye_orchestrate.cli.address import Mirror
        from ubunye_orchestrate.compare import render
        from ubunye_orchestrate.compare.comparison import compare_records
        from ubunye_orchestrate.compare.drift import judge

        found = Mirror.open(root, lineage_dir).task(usecase, package, task, asset, partition)
        earlier, later = found.pair(run_id1, run_id2)
        comparison = compare_records(earlier, later)
        verdict = judge(comparison)
        if as_json:
            write_document(render.as_json(comparison, verdict))
        else:
            write_text(render.terminal(comparison, verdict, full_hashes=full).split("\n"))


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
    """Print one run from inputs to outputs.

    With code, environment, timings and expectations.

    \b
    Examples:
      ubunye-orchestrate lineage trace --asset raw/flights
      ubunye-orchestrate lineage trace -t raw__flights --run-id 506800f2 --full
    """
    with errors_as(as_json):
        from ubunye_orchestrate.cli.address import Mirror
        from ubunye_orchestrate.cli.documents import trace_document
        from ubunye_orchestrate.cli.views import trace_lines

        record = Mirror.open(root, lineage_dir).task(usecase, package, task, asset, partition).run(run_id)
        if as_json:
            write_document(trace_document(record))
        else:
            write_text(trace_lines(record, full_hashes=full))


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
    """Search the runs of all tasks.

    Task by task, the newest of each first. Each run is printed as soon as its record is read.

    \b
    Examples:
      ubunye-orchestrate lineage search --status error --since 2024-01-31
      ubunye-orchestrate lineage search -p raw --json
    """
    with errors_as(as_json):
        from ubunye_orchestrate.cli.address import Mirror
        from ubunye_orchestrate.cli.documents import record_document
        from ubunye_orchestrate.cli.views import search_lines

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


def assets(
    root: Root = ".",
    usecase: Usecase = None,
    package: Package = None,
    lineage_dir: LineageDir = LINEAGE_DIR,
    as_json: Json = False,
) -> None:
    """List the assets that have records, each with its newest run.

    One record of each is read; their number is that of the files.

    \b
    Examples:
      ubunye-orchestrate lineage assets
      ubunye-orchestrate lineage assets -p marts --json
    """
    with errors_as(as_json):
        from ubunye_orchestrate.cli.address import Mirror
        from ubunye_orchestrate.cli.views import asset_documents, asset_lines

        mirror = Mirror.open(root, lineage_dir)
        tasks = mirror.tasks(usecase, package, None, None)
        if as_json:
            write_documents(asset_documents(tasks))
        else:
            write_text(asset_lines(tasks))
