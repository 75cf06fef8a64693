"""What is said of two runs between which one thing changed: each scenario is real runs and a look at them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from dagster import AssetKey, AssetMaterialization, AssetObservation, AssetSelection, JsonMetadataValue

from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.dagster_io.drift.integrity import build_integrity_checks
from ubunye_orchestrate.dagster_io.drift.sensors import build_drift_sensor

from .conftest import Project
from .lab import RATES, RAW, Lab, kinds
from .test_baselines import say

Step = Callable[[Lab], Any]


@dataclass(frozen=True, repr=False)
class Scenario:
    """Two runs, what changed between them, and what is to be found about the second one."""

    name: str
    change: Step = lambda lab: None
    before: Step = lambda lab: None
    """What is so in both runs."""
    first: Step = lambda lab: lab.run()
    second: Step = lambda lab: lab.run()
    found: Mapping[str, str] = field(default_factory=dict)
    """Kinds of findings by asset; of the assets that are not named: nothing."""
    failed: str = ""
    """The assets whose check fails; the others pass."""
    says: Mapping[str, str] = field(default_factory=dict)
    """A part of what is said of an asset."""
    changed_with: Mapping[str, str] = field(default_factory=dict)
    path: Mapping[str, str] = field(default_factory=dict)


def rows(count: int) -> pd.DataFrame:
    return pd.DataFrame({"x": range(1, count + 1), "s": ["a", "b", "c", "d", "e", "f"][:count]})


def source(frame: pd.DataFrame, name: str = "raw") -> Step:
    return lambda lab: lab.source(name, frame)


def edit(old: str, new: str) -> Step:
    return lambda lab: lab.edit(old, new)


def both(*steps: Step) -> Step:
    def do(lab: Lab) -> None:
        for step in steps:
            step(lab)

    return do


def policy(**fields: Any) -> Step:
    def give(lab: Lab) -> None:
        lab.sensor = build_drift_sensor(AssetSelection.all(), policy=DriftPolicy(**fields))

    return give


def tamper(name: str) -> Step:
    """Change a stored table behind Dagster's back."""

    def do(lab: Lab) -> None:
        table = pq.read_table(lab.table(name))
        pq.write_table(table.slice(0, table.num_rows - 1), lab.table(name))

    return do


RANDOM = edit("return scaled(raw)", "return scaled(raw).assign(noise=np.random.default_rng().random())")
CONFIG = edit(
    "def clean(raw: pd.DataFrame) -> pd.DataFrame:\n    return scaled(raw)",
    "def clean(config: Limits, raw: pd.DataFrame) -> pd.DataFrame:\n"
    "    return scaled(raw)[lambda f: f.x <= config.top]",
)
LIMITS = edit("@asset\ndef clean", "class Limits(Config):\n    top: int = 9\n\n\n@asset\ndef clean")
PARTITIONED = edit(
    '@asset(group_name="sources")\ndef raw',
    '@asset(group_name="sources", partitions_def=StaticPartitionsDefinition(["p", "q"]))\ndef raw',
)
PARTITIONED_TOO = edit(
    "@asset\ndef clean", '@asset(partitions_def=StaticPartitionsDefinition(["p", "q"]))\ndef clean'
)
ONE_PARTITION = both(PARTITIONED, PARTITIONED_TOO)
UNDECLARED = edit("return scaled(raw)", 'return scaled(raw).merge(pd.read_pickle(SOURCE + "/rates.pkl"))')


def top(value: int) -> Step:
    return lambda lab: lab.run(run_config={"ops": {"clean": {"config": {"top": value}}}})


def partition(name: str, *only: str) -> Step:
    return lambda lab: lab.run(*(only or ("raw", "clean")), partition_key=name)


DATA = "data_changed"
SOURCE = f"{DATA} source_changed"
FROM_INPUT = f"{DATA} input_changed"
ENTERED = "entered at raw (source changed)"

CODE_FOLDER = dict.fromkeys(("raw", "rates", "clean", "report"), "code_changed")


def blocked(lab: Lab) -> str:
    """Return a root that cannot be one: a file is there."""
    file = lab.sources / "a_file"
    file.write_text("")
    return str(file)


SCENARIOS = [
    # ------------------------------------------------------------ nothing, or nothing that counts
    Scenario("nothing changed"),
    Scenario(
        "a comment",
        edit("return scaled(raw)", "return scaled(raw)  # as agreed"),
        found=dict.fromkeys(("clean", "raw", "rates", "report"), "code_changed"),
    ),
    Scenario("rows in another order", source(RAW.iloc[::-1].reset_index(drop=True))),
    Scenario("columns in another order", source(RAW[["s", "x"]])),
    # ------------------------------------------------------------ data
    Scenario(
        "more rows at the source",
        source(rows(4)),
        found={"raw": SOURCE, "clean": FROM_INPUT, "report": FROM_INPUT},
        says={"clean": "3 -> 4 rows"},
        changed_with={"clean": "input raw", "report": "input clean"},
        path={"raw": ENTERED, "clean": ENTERED, "report": ENTERED},
    ),
    Scenario(
        "fewer rows at the source",
        source(rows(2)),
        found={"raw": SOURCE, "clean": FROM_INPUT, "report": FROM_INPUT},
        says={"raw": "3 -> 2 rows, -1"},
    ),
    Scenario(
        "one value",
        source(RAW.assign(x=[1, 2, 4])),
        found={"raw": SOURCE, "clean": FROM_INPUT, "report": FROM_INPUT},
        path={"report": ENTERED},
    ),
    Scenario(
        "a value became missing",
        source(RAW.assign(s=["a", "b", None])),
        found={"raw": SOURCE, "clean": FROM_INPUT, "report": FROM_INPUT},
    ),
    Scenario(
        "a row twice",
        source(pd.concat([RAW, RAW.iloc[:1]], ignore_index=True)),
        found={"raw": SOURCE, "clean": FROM_INPUT, "report": FROM_INPUT},
    ),
    Scenario(
        "no rows at all",
        source(RAW.iloc[:0]),
        found={"raw": SOURCE, "clean": FROM_INPUT, "report": FROM_INPUT},
        says={"raw": "3 -> 0 rows"},
    ),
    Scenario(
        "another input alone",
        source(RATES.assign(rate=[1.5, 9.5]), "rates"),
        found={"rates": SOURCE, "report": FROM_INPUT},
        changed_with={"report": "input rates"},
        path={"report": "entered at rates (source changed)"},
    ),
    Scenario(
        "two inputs at once",
        both(source(rows(4)), source(RATES.assign(rate=[1.5, 9.5]), "rates")),
        found={"raw": SOURCE, "clean": FROM_INPUT, "rates": SOURCE, "report": FROM_INPUT},
        changed_with={"report": "input clean, input rates"},
        says={"report": "cannot be separated"},
        path={"report": f"{ENTERED}; entered at rates (source changed)"},
    ),
    Scenario(
        "an input changed, the output did not",
        source(RATES.assign(rate=[1.5, 9.5]), "rates"),
        edit('how="left", on="s")', 'how="left", on="s")[["x"]]'),
        found={"rates": SOURCE, "report": "input_changed"},
    ),
    # ------------------------------------------------------------ schema
    Scenario(
        "a column more",
        source(RAW.assign(z=1)),
        found=dict.fromkeys(("clean", "report"), f"{FROM_INPUT} schema_changed")
        | {"raw": f"{SOURCE} schema_changed"},
        failed="raw clean report",
        says={"raw": "z"},
    ),
    Scenario(
        "a column less",
        source(RAW.assign(z=1).drop(columns="z")),
        source(RAW.assign(z=1)),
        found=dict.fromkeys(("clean", "report"), f"{FROM_INPUT} schema_changed")
        | {"raw": f"{SOURCE} schema_changed"},
        failed="raw clean report",
    ),
    Scenario(
        "a column renamed",
        source(RAW.assign(w=1)),
        source(RAW.assign(z=1)),
        found=dict.fromkeys(("clean", "report"), f"{FROM_INPUT} schema_changed")
        | {"raw": f"{SOURCE} schema_changed"},
        failed="raw clean report",
    ),
    Scenario(
        "another type with other values",
        source(RAW.assign(x=[1.5, 2.5, 3.5])),
        found=dict.fromkeys(("clean", "report"), f"{FROM_INPUT} schema_changed")
        | {"raw": f"{SOURCE} schema_changed"},
        failed="raw clean report",
    ),
    Scenario(
        "types changed, values not",
        source(RAW.astype({"x": "int32"})),
        found=dict.fromkeys(("clean", "report"), f"{FROM_INPUT} types_changed_values_not")
        | {"raw": f"{SOURCE} types_changed_values_not"},
        failed="raw clean report",
        says={"raw": "its types, not its values"},
    ),
    # ------------------------------------------------------------ code
    Scenario(
        "the asset's function",
        edit("return scaled(raw)", "return scaled(raw[raw.x > 1])"),
        found={
            "clean": f"{DATA} code_changed",
            "report": f"{FROM_INPUT} code_changed",
            "raw": "code_changed",
            "rates": "code_changed",
        },
        failed="clean",
        changed_with={"clean": "code of lab_flow:clean"},
        path={"report": "entered at clean (code of lab_flow:clean)"},
    ),
    Scenario(
        "a function that it reaches",
        edit("frame.x * RATE)", "frame.x * RATE + 1)"),
        found={
            "clean": f"{DATA} code_changed",
            "report": f"{FROM_INPUT} code_changed",
            "raw": "code_changed",
            "rates": "code_changed",
        },
        failed="clean",
        changed_with={"clean": "code of lab_flow:scaled"},
    ),
    Scenario(
        "code that changes nothing in the data",
        edit("frame.x * RATE)", "RATE * frame.x)"),
        found=dict.fromkeys(("raw", "rates", "clean", "report"), "code_changed"),
    ),
    Scenario(
        "a function that no asset reaches",
        edit("return 1", "return 2"),
        found=dict.fromkeys(("raw", "rates", "clean", "report"), "code_changed"),
    ),
    Scenario(
        "code and an input together",
        both(edit("frame.x * RATE)", "frame.x * RATE + 1)"), source(rows(4))),
        found={
            "raw": f"{SOURCE} code_changed",
            "clean": f"{FROM_INPUT} code_changed",
            "report": f"{FROM_INPUT} code_changed",
            "rates": "code_changed",
        },
        failed="clean",
        says={"clean": "cannot be separated"},
    ),
    # ------------------------------------------------------------ environment
    Scenario(
        "a package moved, the data did not",
        lambda lab: lab.packages(numpy="99.0"),
        # Said once for all assets of the code location, on the one that ran first.
        found={"rates": "environment_changed"},
        says={"rates": "numpy"},
    ),
    Scenario(
        "a package was removed",
        lambda lab: lab.packages(numpy=None),
        found={"rates": "environment_changed"},
        says={"rates": "removed"},
    ),
    Scenario(
        "a package and the data",
        both(lambda lab: lab.packages(numpy="99.0"), source(rows(4))),
        # Told where it is gravest: of an asset whose data changed.
        found={"raw": f"{SOURCE} environment_changed", "clean": FROM_INPUT, "report": FROM_INPUT},
        failed="raw clean report",
        says={"clean": "cannot be separated"},
    ),
    Scenario("a package that does not count", lambda lab: lab.packages(dagster="99.0")),
    Scenario(
        "a patch version, which the policy ignores",
        lambda lab: lab.packages(numpy=f"{np.__version__}.post1"),
        policy(ignore_patch_versions=True),
    ),
    # ------------------------------------------------------------ configuration
    Scenario(
        "a configuration that changes nothing in the data",
        before=both(CONFIG, LIMITS),
        first=top(9),
        second=top(8),
        found={"clean": "configuration_changed"},
    ),
    Scenario(
        "a configuration that changes the data",
        before=both(CONFIG, LIMITS),
        first=top(9),
        second=top(2),
        found={"clean": f"{DATA} configuration_changed", "report": FROM_INPUT},
        changed_with={"clean": "configuration"},
        path={"report": "entered at clean (configuration)"},
    ),
    # ------------------------------------------------------------ unexplained
    Scenario(
        "a transform that is not deterministic",
        before=RANDOM,
        found={"clean": f"{DATA} unexplained", "report": FROM_INPUT},
        failed="clean",
        says={"clean": "the clock, randomness"},
        path={"report": "entered at clean (unexplained: the recorded evidence is equal)"},
    ),
    Scenario(
        "the same, declared not deterministic",
        before=both(RANDOM, policy(deterministic=False)),
        found={"clean": DATA, "report": FROM_INPUT},
    ),
    Scenario(
        "the same while its input changes, which cannot be told",
        source(rows(4)),
        RANDOM,
        found={"raw": SOURCE, "clean": FROM_INPUT, "report": FROM_INPUT},
    ),
    Scenario(
        "an input that is not declared",
        source(RATES.assign(rate=[1.5, 9.5]), "rates"),
        UNDECLARED,
        second=lambda lab: lab.run("raw", "clean"),
        found={"clean": f"{DATA} unexplained"},
        failed="clean",
        says={"clean": "an input that is not declared"},
    ),
    # ------------------------------------------------------------ custody
    Scenario(
        "a table changed behind Dagster's back, then read",
        tamper("raw"),
        second=lambda lab: lab.run("clean", "report"),
        found={"clean": f"{FROM_INPUT} custody_broken", "report": FROM_INPUT},
        failed="clean",
        says={"clean": "input raw was read otherwise than its producer stored it"},
        path={
            "clean": "path of input raw not known: both runs read one materialization: it was read otherwise "
            "than it was stored"
        },
    ),
    Scenario("a table changed behind Dagster's back, then stored again", tamper("raw")),
    Scenario(
        "an upstream table stored anew, alone",
        source(rows(4)),
        second=lambda lab: lab.run("raw"),
        found={"raw": SOURCE},
    ),
    Scenario(
        "a table that cannot be read fails the run and is not drift",
        lambda lab: lab.table("raw").write_bytes(b"PAR1"),
        second=lambda lab: lab.run("clean"),
    ),
    # ------------------------------------------------------------ rows
    Scenario(
        "fewer rows than the policy allows",
        source(rows(2)),
        policy(max_row_decrease=0.2),
        found={
            "raw": f"{SOURCE} rows_out_of_bounds",
            "clean": f"{FROM_INPUT} rows_out_of_bounds",
            "report": f"{FROM_INPUT} rows_out_of_bounds",
        },
        failed="raw clean report",
        says={"raw": "down from 3"},
    ),
    Scenario(
        "more rows than the policy allows",
        source(rows(5)),
        policy(max_row_increase=0.5),
        found={
            "raw": f"{SOURCE} rows_out_of_bounds",
            "clean": f"{FROM_INPUT} rows_out_of_bounds",
            "report": f"{FROM_INPUT} rows_out_of_bounds",
        },
        failed="raw clean report",
        says={"raw": "up from 3"},
    ),
    Scenario(
        "too few rows, the same each time",
        before=policy(min_rows=3),
        found={"rates": "rows_out_of_bounds"},
        failed="rates",
    ),
    Scenario(
        "a new source is an error, says the policy",
        source(rows(4)),
        policy(severities={"source_changed": "error"}),
        found={"raw": SOURCE, "clean": FROM_INPUT, "report": FROM_INPUT},
        failed="raw",
    ),
    # ------------------------------------------------------------ the graph
    Scenario(
        "a new asset",
        edit(
            "@asset\ndef report",
            "@asset\ndef extra() -> pd.DataFrame:\n    return pd.DataFrame()\n\n\n@asset\ndef report",
        ),
        found={**CODE_FOLDER, "extra": "first_record"},
    ),
    Scenario(
        "an asset renamed begins anew",
        edit("def report(", "def extra("),
        found={
            "raw": "code_changed",
            "rates": "code_changed",
            "clean": "code_changed",
            "extra": "first_record",
        },
    ),
    Scenario(
        "an asset removed",
        edit("@asset\ndef report", "def report"),
        found={"raw": "code_changed", "rates": "code_changed", "clean": "code_changed"},
    ),
    Scenario(
        "an input more",
        edit("clean(raw: pd.DataFrame)", "clean(raw: pd.DataFrame, rates: pd.DataFrame)"),
        found={**CODE_FOLDER, "clean": "code_changed input_changed"},
        says={"clean": "input rates was added"},
    ),
    Scenario(
        "an input less",
        edit("clean: pd.DataFrame, rates: pd.DataFrame", "clean: pd.DataFrame"),
        before=edit('return clean.merge(rates, how="left", on="s")', "return clean"),
        found={**CODE_FOLDER, "report": "code_changed input_changed"},
        says={"report": "input rates was removed"},
    ),
    Scenario(
        "an asset wiped from the log begins anew",
        lambda lab: lab.project.instance.wipe_assets([AssetKey("clean")]),
        found={"clean": "first_record"},
    ),
    # ------------------------------------------------------------ other baselines
    Scenario(
        "a run that fails is not judged",
        edit("return scaled(raw)", "raise ValueError(raw)"),
        found={"raw": "code_changed", "rates": "code_changed"},
    ),
    Scenario(
        "the last success counts, not the failure after it",
        both(
            edit("return scaled(raw)", "raise ValueError"),
            lambda lab: lab.run("clean"),
            edit("raise ValueError", "return scaled(raw)"),
        ),
    ),
    Scenario(
        "another partition begins anew",
        before=ONE_PARTITION,
        first=partition("p"),
        second=partition("q"),
        found={"raw": "first_record", "clean": "first_record"},
    ),
    Scenario(
        "the same partition, other rows",
        source(rows(4)),
        ONE_PARTITION,
        first=both(partition("p"), partition("q")),
        second=partition("p"),
        found={"raw": SOURCE, "clean": FROM_INPUT},
        path={"clean": "entered at raw[p] (source changed)"},
    ),
    Scenario(
        "another profile begins anew",
        lambda lab: lab.receipts(profile="branch"),
        found=dict.fromkeys(("raw", "rates", "clean", "report"), "first_record"),
    ),
    Scenario(
        "against a pinned run, long ago",
        both(
            lambda lab: say(lab.project, "raw", "pinned"),
            source(rows(4)),
            lambda lab: lab.run("raw"),
            lambda lab: lab.tick(),
        ),
        second=lambda lab: lab.run("raw"),
        found={"raw": SOURCE},
        says={"raw": "3 -> 4 rows"},
    ),
    Scenario(
        "accepted before the look",
        before=RANDOM,
        second=both(lambda lab: lab.run(), lambda lab: say(lab.project, "clean", "accepted")),
        found={"clean": f"{DATA} unexplained", "report": FROM_INPUT},
        says={"clean": "accepted by ada"},
    ),
    # ------------------------------------------------------------ evidence that is missing
    Scenario(
        "inputs are not hashed",
        source(rows(4)),
        lambda lab: lab.receipts(hash_inputs=False),
        found={
            "raw": SOURCE,
            "clean": f"{DATA} not_attributable unknown custody_not_judged",
            "report": f"{DATA} not_attributable unknown custody_not_judged",
        },
        says={"clean": "hash_inputs is off"},
    ),
    Scenario(
        "the mirror is out of reach: the event log suffices",
        source(rows(4)),
        lambda lab: lab.receipts(root=blocked(lab)),
        found={"raw": SOURCE, "clean": FROM_INPUT, "report": FROM_INPUT},
        path={"report": ENTERED},
    ),
    Scenario(
        "every mirrored record vanished",
        both(source(rows(4)), lambda lab: shutil.rmtree(lab.project.root)),
        found={"raw": SOURCE, "clean": FROM_INPUT, "report": FROM_INPUT},
        path={"report": ENTERED},
    ),
    Scenario(
        "a clock that jumped back",
        both(source(rows(4)), lambda lab: lab.clock(-1e6)),
        found={"raw": SOURCE, "clean": FROM_INPUT, "report": FROM_INPUT},
    ),
]


RECORD = {
    "run_id": "r",
    "task_path": "d/d/raw",
    "usecase": "d",
    "package": "d",
    "task_name": "raw",
    "status": "success",
}


class TestNotJudged:
    """One asset cannot be judged: the tick names it, and goes on with the others."""

    def judged(self, lab: Lab, change: Step) -> tuple[set[str], str]:
        lab.run()
        lab.tick()
        change(lab)
        lab.run("rates")
        tick = lab.tick()
        return {event.asset_key.to_user_string() for event in tick.asset_events}, str(tick.skip_message)

    @pytest.mark.parametrize(
        ("receipt", "why"),
        [
            (None, "raw: its materialization has no receipt"),
            ({**RECORD, "record_version": 9}, "raw: .*version 9; expected version 2 or older"),
            ({"a": "foreign record"}, "raw: .*a JSON object without run_id"),
            (
                {
                    **RECORD,
                    "dagster": {"baseline": {"run_id": "gone", "storage_id": 10**9}},
                },
                "raw: its baseline, materialization 1000000000 of run gone, is no longer in the event log",
            ),
            (
                {
                    **RECORD,
                    "dagster": {"baselines": {"pinned": "not a mapping"}},
                },
                "raw: ",
            ),
        ],
        ids=["without receipt", "newer", "foreign", "baseline gone", "odd baselines"],
    )
    def test_a_receipt_that_is_none(self, receipt: Any, why: str, lab: Lab) -> None:
        metadata = {} if receipt is None else {"ubunye/receipt": JsonMetadataValue(receipt)}

        def change(lab: Lab) -> None:
            lab.project.instance.report_runless_asset_event(
                AssetMaterialization(asset_key="raw", metadata=metadata)
            )

        judged, words = self.judged(lab, change)
        assert judged == {"rates"}
        assert re.search(rf"Not judged: {why}", words), words

    def test_an_asset_that_left_the_project_is_no_ones(self, lab: Lab) -> None:
        judged, words = self.judged(
            lab, both(lambda lab: lab.run("report"), edit("@asset\ndef report", "def report"))
        )
        assert judged == {"rates"}
        assert "Not judged" not in words

    def test_an_acceptance_that_cannot_be_read_is_named(self, lab: Lab) -> None:
        def odd(lab: Lab) -> None:
            lab.project.instance.report_runless_asset_event(
                AssetObservation(asset_key="raw", metadata={"ubunye/acceptance": {"kind": "sung"}})
            )

        judged, words = self.judged(lab, odd)
        assert judged == {"rates"}
        assert "found no acceptance" in words


def test_a_table_changed_behind_dagsters_back_is_found_at_rest(lab: Lab) -> None:
    lab.run()
    assets = lab.assets()
    checks = build_integrity_checks(assets)

    def stored() -> dict[str, bool]:
        only = AssetSelection.checks(*(key for check in checks for key in check.check_keys))
        result = lab.project.run([*assets, *checks], lab.manager, selection=only)
        return {one.asset_key.to_user_string(): one.passed for one in result.get_asset_check_evaluations()}

    assert all(stored().values())
    tamper("clean")(lab)
    assert [name for name, passed in stored().items() if not passed] == ["clean"]


def test_there_are_scenarios_enough() -> None:
    assert len(SCENARIOS) >= 40
    assert len({one.name for one in SCENARIOS}) == len(SCENARIOS)


@pytest.fixture
def lab(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(project, tmp_path, monkeypatch)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[one.name for one in SCENARIOS])
def test_what_is_found(scenario: Scenario, lab: Lab) -> None:
    scenario.before(lab)
    scenario.first(lab)
    lab.tick()
    scenario.change(lab)
    scenario.second(lab)
    tick = lab.tick()
    said = {event.asset_key.to_user_string(): event for event in tick.asset_events}
    found = {name: kinds(event) for name, event in said.items() if kinds(event)}
    assert found == {name: set(words.split()) for name, words in scenario.found.items()}, tick.skip_message
    assert {name for name, event in said.items() if not event.passed} == set(scenario.failed.split())
    for name, part in scenario.says.items():
        assert part in said[name].metadata["ubunye/changes"].value + said[name].description + str(
            said[name].metadata["ubunye/findings"].value
        )
    for name, together in scenario.changed_with.items():
        assert said[name].metadata["ubunye/changed_with"].value == together
    for name, path in scenario.path.items():
        assert said[name].metadata["ubunye/path"].value == path
