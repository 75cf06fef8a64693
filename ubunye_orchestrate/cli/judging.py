"""The commands that judge: why, verify, gate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ubunye_orchestrate.cli.options import (
    LINEAGE_DIR,
    Asset,
    Json,
    LineageDir,
    Package,
    Partition,
    PolicyFile,
    Root,
    TaskName,
    Usecase,
    complete_runs,
)
from ubunye_orchestrate.cli.output import errors_as, write_document, write_documents, write_text
from ubunye_orchestrate.errors import ConfigurationError, RecordNotFoundError

__all__ = ["gate", "verify", "why"]


def why(
    root: Root = ".",
    usecase: Usecase = None,
    package: Package = None,
    task: TaskName = None,
    run_id1: Annotated[
        str | None,
        typer.Option(
            "--run-id1",
            help="The earlier run. [default: the later run's baseline]",
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
) -> None:
    """Show the path to where a change entered.

    From an asset whose data changed, by the runs that its inputs were read from, to the first asset that has
    no changed input. Only recorded links are followed; where one is missing, it says so. It shows what
    changed together, which is no proof of cause.

    \b
    Examples:
      ubunye-orchestrate lineage why --asset marts/delays
      ubunye-orchestrate lineage why --asset marts/delays --run-id2 506800f2
    """
    with errors_as(as_json):
        from ubunye_orchestrate.cli.address import Mirror
        from ubunye_orchestrate.cli.producers import ProducerRecords
        from ubunye_orchestrate.cli.why import why_document, why_lines
        from ubunye_orchestrate.compare.path import follow

        mirror = Mirror.open(root, lineage_dir)
        found = mirror.task(usecase, package, task, asset, partition)
        earlier, later = found.pair(run_id1 or "baseline", run_id2)
        path = follow(earlier, later, ProducerRecords(mirror).load)
        if as_json:
            write_document(why_document(path))
        else:
            write_text(why_lines(path))


def verify(
    root: Root = ".",
    usecase: Usecase = None,
    package: Package = None,
    task: TaskName = None,
    lineage_dir: LineageDir = LINEAGE_DIR,
    as_json: Json = False,
    asset: Asset = None,
    partition: Partition = None,
    allow_unknown: Annotated[
        bool, typer.Option("--allow-unknown", help="Do not fail for what cannot be checked from here.")
    ] = False,
    instance: Annotated[
        str | None,
        typer.Option(
            "--instance", help="Take the receipts from a Dagster instance (its folder) instead of the mirror."
        ),
    ] = None,
) -> None:
    """Hash what is stored now, hold it against the last receipt.

    Reads the files that receipts name (parquet, and other formats that need no IO manager), all their rows.
    Each table is unchanged, changed, missing, unreadable, or unknown where it cannot be checked from here.
    Exit code 1 unless everything is unchanged. It finds what changed behind Dagster's back, by accident or
    carelessly; it is no proof against somebody who may choose the rows.

    \b
    Examples:
      ubunye-orchestrate lineage verify --asset raw/flights
      ubunye-orchestrate lineage verify --allow-unknown --json
    """
    with errors_as(as_json):
        from ubunye_orchestrate.cli.address import Mirror, task_name
        from ubunye_orchestrate.cli.verifying import sound, verified_document, verified_lines, verify_runs
        from ubunye_orchestrate.hashing.datasets import FORMATS, fingerprint_dataset

        mirror = Mirror.open(root, lineage_dir)
        if instance is None:
            tasks = mirror.tasks(usecase, package, task, asset, partition)
            runs = (("/".join(each.names), each.runs()) for each in tasks)
            found = [
                one for path, each in runs for one in verify_runs(path, each, fingerprint_dataset, FORMATS)
            ]
        else:
            from ubunye_orchestrate.dagster_io.drift.sync import newest_receipts, opened_instance

            wanted = (usecase, package, task_name(task, asset))
            with opened_instance(instance) as opened:
                receipts = newest_receipts(opened, wanted, partition, mirror.on_invalid)
                found = [
                    one
                    for path, each in receipts
                    for one in verify_runs(path, each, fingerprint_dataset, FORMATS)
                ]
        if not found:
            raise mirror.on_invalid.first or RecordNotFoundError(
                f"no run that succeeded among those asked for in {mirror.shown}; expected one to hold what "
                "is stored against; see `lineage search`"
            )
        if as_json:
            write_documents(verified_document(one) for one in found)
        else:
            write_text(verified_lines(found))
        if not sound(found, allow_unknown=allow_unknown):
            raise typer.Exit(1)


def gate(
    root: Root = ".",
    usecase: Usecase = None,
    package: Package = None,
    task: TaskName = None,
    baseline: Annotated[
        str,
        typer.Option(
            "--baseline", help="What to hold against: baseline, previous, accepted, or a run id's beginning."
        ),
    ] = "baseline",
    candidate: Annotated[
        str,
        typer.Option(
            "--candidate", help="latest (of each task), or a run id's beginning: every record that begins so."
        ),
    ] = "latest",
    lineage_dir: LineageDir = LINEAGE_DIR,
    as_json: Json = False,
    asset: Asset = None,
    partition: Partition = None,
    policy_file: PolicyFile = None,
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", help="Mildest severity that fails: note, warn or error. [default: warn]"),
    ] = None,
    severity: Annotated[
        list[str] | None,
        typer.Option("--severity", help="Severity of a finding, such as unknown=error; may be repeated."),
    ] = None,
    min_rows: Annotated[int | None, typer.Option("--min-rows", help="Fewer rows are out of bounds.")] = None,
    max_rows: Annotated[int | None, typer.Option("--max-rows", help="More rows are out of bounds.")] = None,
    max_row_decrease: Annotated[
        float | None,
        typer.Option("--max-row-decrease", help="Largest fall in rows: 0.1 allows a tenth less."),
    ] = None,
    max_row_increase: Annotated[
        float | None, typer.Option("--max-row-increase", help="Largest rise in rows: 0.5 allows half more.")
    ] = None,
    ignore_package: Annotated[
        list[str] | None,
        typer.Option("--ignore-package", help="Package whose version does not count; may be repeated."),
    ] = None,
    ignore_patch_versions: Annotated[
        bool, typer.Option("--ignore-patch-versions", help="2.2.3 and 2.2.1 count as equal.")
    ] = False,
    not_deterministic: Annotated[
        bool, typer.Option("--not-deterministic", help="A change without a recorded reason is not judged.")
    ] = False,
    summary: Annotated[
        str | None,
        typer.Option(
            "--summary", help="Append the result as Markdown to this file, such as $GITHUB_STEP_SUMMARY."
        ),
    ] = None,
) -> None:
    """Judge runs against their baselines; fail as the policy says.

    Without names every task is judged. Exit code 0 when all passed, 1 when one failed or could not be judged:
    a failed run and a record that cannot be read never pass. A run that was accepted passes. Options come on
    top of the policy file.

    \b
    Examples:
      ubunye-orchestrate lineage gate --fail-on error
      ubunye-orchestrate lineage gate --asset raw/flights --max-row-decrease 0.1
      ubunye-orchestrate lineage gate --policy gate.toml --summary summary.md
    """
    with errors_as(as_json):
        from ubunye_orchestrate.cli.address import Mirror
        from ubunye_orchestrate.cli.gate import judge_tasks
        from ubunye_orchestrate.cli.gate_policy import GatePolicy
        from ubunye_orchestrate.cli.gate_report import gate_document, gate_lines, gate_markdown, passed

        given: dict[str, Any] = {
            "min_rows": min_rows,
            "max_rows": max_rows,
            "max_row_decrease": max_row_decrease,
            "max_row_increase": max_row_increase,
            "ignore_packages": ignore_package or None,
            "ignore_patch_versions": ignore_patch_versions or None,
            "deterministic": False if not_deterministic else None,
            "severities": _severities(severity or []) or None,
        }
        policy = GatePolicy() if policy_file is None else GatePolicy.read(Path(policy_file))
        policy = policy.with_options(fail_on, {k: v for k, v in given.items() if v is not None})
        mirror = Mirror.open(root, lineage_dir)
        tasks = mirror.tasks(usecase, package, task, asset, partition)
        judged = list(judge_tasks(mirror, tasks, baseline, candidate, policy))
        if summary is not None:
            _append(Path(summary), gate_markdown(judged, policy))
        if as_json:
            write_document(gate_document(judged, policy))
        else:
            write_text(gate_lines(judged, policy))
        if not passed(judged):
            raise typer.Exit(1)


def _severities(given: list[str]) -> dict[str, str]:
    pairs = [one.partition("=") for one in given]
    for text, (_, equals, _) in zip(given, pairs, strict=True):
        if not equals:
            raise ConfigurationError(
                f"--severity {text!r}; expected a finding and its severity: unknown=error"
            )
    return {kind.strip(): value.strip() for kind, _, value in pairs}


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as e:
        raise ConfigurationError(f"--summary {path} cannot be written: {e.strerror or e}") from e
