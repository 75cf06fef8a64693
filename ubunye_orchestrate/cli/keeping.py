"""The commands that write: accept, prune, sync.

Dagster is loaded for an instance only: by ``accept --instance`` and by ``sync``.
"""

from __future__ import annotations

import getpass
from datetime import datetime, timezone
from typing import Annotated

import typer

from ubunye_orchestrate.cli.options import (
    LINEAGE_DIR,
    Asset,
    Json,
    LineageDir,
    Package,
    Partition,
    Root,
    RunId,
    TaskName,
    Usecase,
)
from ubunye_orchestrate.cli.output import errors_as, write_document, write_text
from ubunye_orchestrate.errors import ConfigurationError

__all__ = ["accept", "prune", "sync"]

_INSTANCE = "Folder of a Dagster instance (its DAGSTER_HOME, which has dagster.yaml)."


def accept(
    why: Annotated[str, typer.Option("--why", help="The reason, for those who read it later.")],
    root: Root = ".",
    usecase: Usecase = None,
    package: Package = None,
    task: TaskName = None,
    run_id: RunId = None,
    lineage_dir: LineageDir = LINEAGE_DIR,
    as_json: Json = False,
    asset: Asset = None,
    partition: Partition = None,
    by: Annotated[str | None, typer.Option("--by", help="Who says so. [default: the user's name]")] = None,
    pin: Annotated[
        bool,
        typer.Option("--pin", help="Also hold all later runs against this one, until another is pinned."),
    ] = False,
    unpin: Annotated[
        bool, typer.Option("--unpin", help="End the pin of this asset, partition and profile instead.")
    ] = False,
    instance: Annotated[str | None, typer.Option("--instance", help=_INSTANCE)] = None,
) -> None:
    """Accept a run's changes, or pin it as the baseline.

    An accepted run passes the gate. It is written to the instance's event log, where sensors see it, and to
    the mirror; without --instance to the mirror only, and sensors see it after `sync`.

    \b
    Examples:
      ubunye-orchestrate lineage accept --asset raw/flights --why "new airline"
      ubunye-orchestrate lineage accept -t raw__flights --pin --why "audited"
      ubunye-orchestrate lineage accept -t raw__flights --unpin --why "over"
    """
    with errors_as(as_json):
        from ubunye_orchestrate.cli.accepting import accepted_document, accepted_lines, statement
        from ubunye_orchestrate.cli.address import Mirror

        if pin and unpin:
            raise ConfigurationError("both --pin and --unpin were given; expected one of the two")
        mirror = Mirror.open(root, lineage_dir)
        found = mirror.task(usecase, package, task, asset, partition)
        said = statement(
            found,
            found.run(run_id),
            kind="unpinned" if unpin else "pinned" if pin else "accepted",
            by=_user() if by is None else by,
            at=datetime.now(timezone.utc).isoformat(),
            why=why,
        )
        if instance is not None:
            from ubunye_orchestrate.dagster_io.drift.sync import opened_instance
            from ubunye_orchestrate.dagster_io.receipts.acceptance import report_acceptance

            with opened_instance(instance) as opened:
                said = report_acceptance(opened, said)
        path = mirror.baselines.save(said)
        if as_json:
            write_document(accepted_document(said, path))
        else:
            write_text(accepted_lines(said, path))


def prune(
    root: Root = ".",
    usecase: Usecase = None,
    package: Package = None,
    task: TaskName = None,
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=1, help="Keep the newest runs of each asset, partition and profile."),
    ] = None,
    keep_days: Annotated[
        float | None, typer.Option("--keep-days", min=0, help="Keep the runs of so many days.")
    ] = None,
    lineage_dir: LineageDir = LINEAGE_DIR,
    as_json: Json = False,
    asset: Asset = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete. Without it nothing is deleted.")] = False,
) -> None:
    """Delete old records; without --yes only say which.

    A run that --keep or --keep-days keeps stays. Never deleted: a pinned or accepted run, the newest success
    of an asset, partition and profile, what the newest run was held against, and a file that cannot be read.

    \b
    Examples:
      ubunye-orchestrate lineage prune --keep 100
      ubunye-orchestrate lineage prune --keep 10 --keep-days 90 -p raw --yes
    """
    with errors_as(as_json):
        from ubunye_orchestrate.cli.address import Mirror
        from ubunye_orchestrate.cli.pruning import plan_document, plan_lines, plan_task

        if keep is None and keep_days is None:
            raise ConfigurationError("neither --keep nor --keep-days was given; expected what is to be kept")
        mirror = Mirror.open(root, lineage_dir)
        plans = [plan_task(each, keep, keep_days) for each in mirror.tasks(usecase, package, task, asset)]
        if yes:
            for plan in plans:
                for run in plan.delete:
                    mirror.store.delete(*plan.task.names, run.run_id)
        if as_json:
            write_document(plan_document(plans, done=yes))
        else:
            write_text(plan_lines(plans, done=yes))


def sync(
    root: Root = ".",
    lineage_dir: LineageDir = LINEAGE_DIR,
    as_json: Json = False,
    instance: Annotated[str, typer.Option("--instance", envvar="DAGSTER_HOME", help=_INSTANCE)] = "",
    deep: Annotated[
        bool, typer.Option("--deep", help="Also read each mirrored record, and restore unreadable ones.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing, only say what is missing.")
    ] = False,
) -> None:
    """Complete the mirror from a Dagster instance's event log.

    Says which receipts are in one and not in the other. Receipts whose files are missing are written again,
    with the times of their runs; nothing that is there is changed. Acceptances and pins go both ways. Doing
    it twice changes nothing.

    \b
    Examples:
      ubunye-orchestrate lineage sync --instance .dagster_home
      ubunye-orchestrate lineage sync -d s3://bucket/mirror --dry-run
    """
    with errors_as(as_json):
        if not instance:
            raise ConfigurationError(
                "no Dagster instance was given; expected --instance with the folder of dagster.yaml, or the "
                "environment variable DAGSTER_HOME"
            )
        from ubunye_orchestrate.cli.syncing import synced_document, synced_lines
        from ubunye_orchestrate.dagster_io.drift.sync import opened_instance, sync_mirror
        from ubunye_orchestrate.records.settings import resolve_settings

        resolved = resolve_settings(root).root
        with opened_instance(instance) as opened:
            report = sync_mirror(opened, resolved, lineage_dir, deep=deep, dry_run=dry_run)
        if as_json:
            write_document(synced_document(report, dry_run=dry_run))
        else:
            write_text(synced_lines(report, dry_run=dry_run))
        if report.problems:
            raise typer.Exit(1)


def _user() -> str:
    try:
        return getpass.getuser()
    # What it raises where there is no name: OSError, on Python 3.12 and older KeyError or ImportError.
    except (OSError, KeyError, ImportError) as e:
        raise ConfigurationError("the user's name is not known here; expected --by") from e
