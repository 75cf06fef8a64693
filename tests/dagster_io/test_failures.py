"""What a failure leaves behind, under both executors, and as the documentation shows it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import DagsterInstance, execute_job, reconstructable

from ubunye_orchestrate.dagster_io.drift.killed import close_killed_run
from ubunye_orchestrate.records.model import RunRecord

from .conftest import NO_OUTPUT_FOLLOWED, Project
from .failing_job import get_job, job_in

DOC = Path(__file__).parents[2] / "docs" / "receipts.md"
TABLE = re.compile(r"(?<=<!-- output: tests/dagster_io/test_failures.py -->\n).*?(?=\n\n)", re.DOTALL)

# What happens -> the asset to which it happens.
CASES = {
    "it raises before it has read anything": "before_reading",
    "an input cannot be loaded": "while_reading",
    "it raises in the transform": "in_transform",
    "the table cannot be stored": "while_storing",
    "a rule about what it made is broken": "broken_rule",
    "a rule about what it reads is broken": "broken_input_rule",
    "its first try fails, the second one does not": "flaky",
    "a multi-asset fails after its first output": "first",
    "… the output that it did not come to": "second",
    "the second op of its graph fails": "in_a_graph",
    "its block of `receipts.run` is over, and then it raises": "after_its_block",
    "an asset upstream failed": "downstream",
    "its process is killed": "killed",
    "… after the first output of a multi-asset was stored": "kept",
    "… and the output that it did not come to": "lost",
}
KILLED = ("killed", "kept", "lost")


class Ran:
    """A run that is over, and what it left."""

    def __init__(self, project: Project, run_id: str) -> None:
        self.project = project
        self.run_id = run_id

    def records(self, asset: str) -> list[RunRecord]:
        """The asset's records of the run, first try first."""
        package = "sources" if asset == "before_reading" else "default"
        return sorted(self.project.mirrored(asset, package), key=lambda record: record.run_id)


@pytest.fixture(scope="module", params=["in process", "multiprocess"])
def ran(
    request: pytest.FixtureRequest, empty_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("failing")
    home = folder / "home"
    shutil.copytree(empty_home, home)
    with (
        pytest.MonkeyPatch.context() as patch,
        DagsterInstance.local_temp(str(home), overrides=NO_OUTPUT_FOLLOWED) as instance,
    ):
        project = Project(instance, folder / "mirror")
        if request.param == "in process":
            job = job_in(folder, forked=False)
            run_id = job.execute_in_process(instance=instance, raise_on_error=False).run_id
        else:
            patch.setenv("TEST_FOLDER", str(folder))
            patch.setenv("DAGSTER_HOME", str(home))
            # The processes import this package and these tests as this one does.
            patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
            with execute_job(reconstructable(get_job), instance=instance) as result:
                run_id = result.run_id
        yield Ran(project, run_id)


def row(what: str, records: list[RunRecord]) -> str:
    """What the records say, as a line of the documentation."""
    if not records:
        return f"| {what} | no record | | | | |"
    cells = []
    for cell in (
        lambda r: r.status,
        lambda r: f"`{_short(r.error)}`" if r.error else "–",
        lambda r: ", ".join(f"{s.name} {'hashed' if s.data_hash else 'not hashed'}" for s in r.inputs) or "–",
        lambda r: (
            ", ".join(f"{e['rule']} {'holds' if e['passed'] else 'broken'}" for e in r.expectations) or "–"
        ),
        lambda r: (r.dagster or {})["step_status"],
    ):
        told = [cell(record) for record in records]
        cells.append(told[0] if len(set(told)) == 1 else ", then ".join(told))
    return f"| {what} | {' | '.join(cells)} |"


def _short(error: str) -> str:
    return error.partition("\n")[0].rstrip(":")


def test_the_table(ran: Ran, request: pytest.FixtureRequest) -> None:
    forked = "multiprocess" in request.node.name
    lines = [
        "| what happens in a step | `status` | `error` | `inputs` | `expectations` | `step_status` |",
        "|---|---|---|---|---|---|",
        *(row(what, ran.records(asset)) for what, asset in CASES.items() if forked or asset not in KILLED),
    ]
    text = DOC.read_text() if DOC.exists() else ""
    if forked and os.environ.get("UPDATE_DOCS"):
        text = TABLE.sub(lambda _: "\n".join(lines), text)
        DOC.write_text(text)
    shown = TABLE.search(text)
    assert shown is not None
    documented = shown[0].splitlines()
    assert lines == (documented if forked else documented[: -len(KILLED)]), (
        "UPDATE_DOCS=1 pytest tests/dagster_io/test_failures.py writes what the records say"
    )


@pytest.mark.parametrize(
    "asset",
    [
        "before_reading",
        "while_reading",
        "in_transform",
        "while_storing",
        "broken_rule",
        "second",
        "in_a_graph",
        "after_its_block",
    ],
)
def test_a_record_has_what_was_known_and_stands_on_the_asset(asset: str, ran: Ran) -> None:
    (record,) = ran.records(asset)
    assert record.run_id == ran.run_id
    assert record.status == "error"
    assert record.started_at is not None
    assert record.ended_at is not None
    assert record.duration_sec is not None
    # What a block says that it wrote stands where it was written.
    written = ran.project.receipt("raw").outputs[0].data_hash if asset == "after_its_block" else None
    assert [(step.name, step.data_hash) for step in record.outputs] == [(asset, written)]
    for step in record.inputs:
        assert step.name == "raw"
        assert step.data_hash == ran.project.receipt("raw").outputs[0].data_hash
        assert step.producer is not None
        assert step.producer[0].run_id == ran.run_id
    if record.inputs:
        assert "Reader" in {timing["step"].split(":")[0] for timing in record.timings}
    assert record.code is not None
    assert record.code["functions"]
    assert record.code_hash is not None
    assert record.config_hash is not None
    assert ran.project.events(asset) == []
    (observation,) = ran.project.observations(asset)
    receipt = observation.metadata["ubunye/receipt"].value
    assert (receipt["status"], receipt["error"]) == ("error", record.error)
    assert Path(observation.metadata["ubunye/record_path"].value).exists()


def test_each_try_keeps_its_evidence(ran: Ran) -> None:
    first, second = ran.records("flaky")
    assert [first.run_id, second.run_id] == [ran.run_id, f"{ran.run_id}.retry-1"]
    assert first.inputs[0].data_hash == second.inputs[0].data_hash
    assert [one.description for one in ran.project.observations("flaky")] == [
        "flaky was not materialized and is tried again: ValueError: the first try fails"
    ]
    assert ran.project.receipt("flaky").run_id == second.run_id


def test_a_killed_process_is_marked_and_closed_once(ran: Ran) -> None:
    records = ran.records("killed")
    if not records:
        pytest.skip("in one process it would kill the tests: see test_killed.py")
    (record,) = records
    # What it had read died with it.
    assert record.inputs == []
    assert record.duration_sec is not None
    assert [len(ran.project.observations(asset)) for asset in KILLED] == [1, 0, 1]
    assert ran.project.receipt("kept").outputs[0].data_hash == ran.records("kept")[0].outputs[0].data_hash
    run = ran.project.instance.get_run_by_id(ran.run_id)
    assert run is not None
    assert close_killed_run(ran.project.instance, run, ran.project.receipts.settings(), print) == []


def test_what_was_stored_stays_a_success(ran: Ran) -> None:
    (first,) = ran.records("first")
    assert ran.project.receipt("first").outputs[0].data_hash == first.outputs[0].data_hash
    assert ran.project.observations("first") == []
