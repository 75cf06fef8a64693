"""The table of findings: two records, what changed, what may be said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ubunye_orchestrate.compare.comparison import compare_records
from ubunye_orchestrate.compare.drift import DriftPolicy, Finding, Verdict, judge, judge_first


def kinds(verdict: Verdict) -> dict[str, str]:
    found = {finding.kind: finding.severity for finding in verdict.findings}
    assert len(found) == len(verdict.findings), verdict.findings
    return found


def only(verdict: Verdict, kind: str) -> Finding:
    (finding,) = [finding for finding in verdict.findings if finding.kind == kind]
    return finding


def test_nothing_changed(make: SimpleNamespace) -> None:
    verdict = make.verdict(make.record(), make.record())
    assert verdict.findings == ()
    assert verdict.changed_with == ()
    assert (verdict.passed, verdict.severity) == (True, "none")


def test_an_input_changed_with_the_output(make: SimpleNamespace) -> None:
    verdict = make.verdict(make.record(), make.changed(inputs=[make.step("orders", "more", row_count=11)]))
    assert kinds(verdict) == {"data_changed": "none", "input_changed": "none"}
    assert verdict.changed_with == ("input orders",)
    assert verdict.passed
    assert "together with input orders (not proof of cause)" in only(verdict, "data_changed").text


def test_code_changed_with_the_output(make: SimpleNamespace) -> None:
    code = {
        "function": "shop.clean",
        "functions": {"shop.clean": make.sha("new"), "shop.parse": make.sha("parse")},
    }
    verdict = make.verdict(make.record(), make.changed(code=code, code_hash="sha256:new"))
    assert kinds(verdict) == {"data_changed": "warn", "code_changed": "warn"}
    assert verdict.changed_with == ("code of shop.clean",)
    assert not verdict.passed
    assert only(verdict, "code_changed").details["changed"] == ["shop.clean"]


def test_code_changed_while_the_output_did_not_is_a_note_that_passes(make: SimpleNamespace) -> None:
    code = {
        "function": "shop.clean",
        "functions": {"shop.clean": make.sha("new"), "shop.parse": make.sha("parse")},
    }
    verdict = make.verdict(make.record(), make.record(code=code))
    assert kinds(verdict) == {"code_changed": "note"}
    assert verdict.passed
    assert verdict.changed_with == ()


def test_something_else_in_the_folder_changed_is_a_note_even_beside_changed_data(
    make: SimpleNamespace,
) -> None:
    verdict = make.verdict(make.record(), make.changed(code_hash="sha256:new"))
    assert kinds(verdict) == {"data_changed": "note", "code_changed": "note"}
    assert verdict.changed_with == ("the code folder",)
    assert "none of the functions" in only(verdict, "code_changed").text


def test_a_declared_code_version_that_moved_is_listed(make: SimpleNamespace) -> None:
    verdict = make.verdict(make.record(version="1"), make.changed(version="2"))
    assert kinds(verdict) == {"data_changed": "note", "code_changed": "note"}
    assert verdict.changed_with == ("declared code version 1 -> 2",)


def test_environment_changed_with_the_output(make: SimpleNamespace) -> None:
    environment = make.environment(python="3.11.7", platform="linux", packages={"pandas": "2.3.0"})
    verdict = make.verdict(
        make.record(), make.changed(environment=environment, environment_hash=make.sha("other"))
    )
    # dagster went away with it, which the default policy does not count
    assert verdict.changed_with == ("pandas 2.2.3 -> 2.3.0",)
    assert kinds(verdict) == {"data_changed": "warn", "environment_changed": "warn"}
    assert only(verdict, "environment_changed").details == {"changes": {"pandas": ["2.2.3", "2.3.0"]}}


def test_an_environment_change_has_one_key_for_all_assets_of_a_location(make: SimpleNamespace) -> None:
    environment = make.environment(python="3.12.0", platform="linux", packages={"pandas": "2.3.0"})
    later: dict[str, Any] = {"environment": environment, "environment_hash": "sha256:other"}
    changed = only(make.verdict(make.record(), make.changed(**later)), "environment_changed")
    other = only(
        make.verdict(make.record(task_path="d/s/t"), make.record(task_path="d/s/t", **later)),
        "environment_changed",
    )
    assert changed.merge_key == other.merge_key is not None
    assert (changed.severity, other.severity) == ("warn", "note")


def test_dagster_and_this_package_are_ignored_by_default_and_named_by_the_comparison(
    make: SimpleNamespace,
) -> None:
    def of(version: str) -> dict[str, Any]:
        packages = {"dagster": version, "ubunye-orchestrate": version}
        return {"environment": make.environment(packages=packages), "environment_hash": make.sha(version)}

    a, b = make.record(**of("1")), make.record(**of("2"))
    assert make.verdict(a, b).findings == ()
    assert set(compare_records(a, b).environment.changes) == {"dagster", "ubunye-orchestrate"}
    unexplained = only(make.verdict(a, make.changed(**of("2"))), "unexplained")
    assert (
        "apart from what the policy ignores (dagster 1 -> 2, ubunye-orchestrate 1 -> 2)" in unexplained.text
    )
    counted = make.verdict(a, make.changed(**of("2")), ignore_packages=frozenset())
    assert counted.changed_with == ("dagster 1 -> 2", "ubunye-orchestrate 1 -> 2")


@pytest.mark.parametrize(("later", "counts"), [("2.2.9", False), ("2.3.0", True), ("3", True)])
def test_patch_versions_can_be_ignored(make: SimpleNamespace, later: str, counts: bool) -> None:
    a = make.record(environment=make.environment(packages={"pandas": "2.2.3"}))
    b = make.record(
        environment=make.environment(packages={"pandas": later}), environment_hash=make.sha("other")
    )
    assert bool(make.verdict(a, b, ignore_patch_versions=True).findings) is counts


def test_an_environment_whose_hash_alone_differs_is_listed_without_a_name(make: SimpleNamespace) -> None:
    verdict = make.verdict(make.record(), make.changed(environment_hash="sha256:other"))
    assert verdict.changed_with == ("the environment (which part is not recorded)",)


def test_configuration_changed_with_the_output(make: SimpleNamespace) -> None:
    verdict = make.verdict(
        make.record(variables={"dt": "1", "gone": 1}),
        make.changed(config_hash="sha256:c", variables={"dt": "2"}, time_zone="UTC", backend="polars"),
    )
    assert verdict.changed_with == ("configuration", "variable dt", "variable gone", "backend")
    assert kinds(verdict) == {"data_changed": "note", "configuration_changed": "note"}


def test_several_things_changed_and_cannot_be_separated(make: SimpleNamespace) -> None:
    verdict = make.verdict(
        make.record(), make.changed(inputs=[make.step("orders", "more")], config_hash="sha256:c")
    )
    assert verdict.changed_with == ("input orders", "configuration")
    assert (
        "together with input orders and configuration (cannot be separated)"
        in only(verdict, "data_changed").text
    )


def test_unexplained(make: SimpleNamespace) -> None:
    verdict = make.verdict(make.record(), make.changed())
    assert kinds(verdict) == {"data_changed": "error", "unexplained": "error"}
    assert verdict.changed_with == ()
    text = only(verdict, "unexplained").text
    for reason in ("not declared", "clock", "randomness", "order of rows", "floating-point sum"):
        assert reason in text


MISSING: dict[str, tuple[dict[str, Any], str]] = {
    "input without hash": (
        {"inputs": [{"data_hash": None, "hash_error": "not hashed: over budget"}]},
        "input orders: not hashed: over budget",
    ),
    "input of another method": ({"inputs": [{"hash_method": "rows-v2"}]}, "input orders: made by rows-v"),
    "input whose source moved": ({"inputs": [{"source_changed": True}]}, "source moved"),
    "input computed again": ({"inputs": [{"hash_basis": "recomputed"}]}, "computed again"),
    "input read in part": (
        {"inputs": [{"hash_scope": "projection"}]},
        "input orders: taken over different rows",
    ),
    "declared input not recorded": (
        {"dagster": {"declared_inputs": ["orders", "rates"]}},
        "input rates: declared but not recorded in the",
    ),
    "code of a factory": (
        {"code": {"functions": {}, "error": "made by a factory"}},
        "code: made by a factory",
    ),
    "no code": ({"code": None, "code_hash": None}, "code: no"),
    "no environment": ({"environment": None, "environment_hash": None}, "environment: not recorded"),
    "no configuration": ({"config_hash": None}, "configuration: not recorded"),
    "output computed again": (
        {"outputs": [{"hash_basis": "recomputed"}]},
        "output orders_clean: hashed from rows",
    ),
}


@pytest.mark.parametrize("what", MISSING)
@pytest.mark.parametrize("side", ["earlier", "later", "both"])
def test_without_complete_evidence_nothing_is_unexplained(
    make: SimpleNamespace, what: str, side: str
) -> None:
    fields, told = MISSING[what]
    incomplete = dict(fields)
    if "inputs" in fields:
        incomplete["inputs"] = [make.step("orders", **fields["inputs"][0])]

    def of(lacking: bool, content: str) -> Any:
        given = dict(incomplete) if lacking else {}
        output = given.pop("outputs", [{}])[0]
        return make.record(**given, outputs=[make.step("orders_clean", content, output=True, **output)])

    verdict = make.verdict(of(side != "later", "one"), of(side != "earlier", "two"))
    if side == "both" and what in ("input of another method", "input read in part"):
        assert "unexplained" in kinds(verdict)  # of one kind on both sides, so compared, and equal
        return
    assert "unexplained" not in kinds(verdict)
    finding = only(verdict, "not_attributable")
    assert finding.severity == "note"
    assert told in finding.text


def test_what_changed_and_what_is_missing_are_both_said(make: SimpleNamespace) -> None:
    dagster = {"declared_inputs": ["orders", "rates"]}
    a = make.record(dagster=dagster, inputs=[make.step("orders"), make.step("rates", data_hash=None)])
    b = make.changed(dagster=dagster, inputs=[make.step("orders", 2), make.step("rates", data_hash=None)])
    verdict = make.verdict(a, b)
    assert verdict.changed_with == ("input orders",)
    assert only(verdict, "not_attributable").details["missing"] == ["input rates: not recorded"]
    assert verdict.passed


def test_a_declared_input_that_is_missing_on_one_side_is_not_called_added(make: SimpleNamespace) -> None:
    dagster = {"declared_inputs": ["orders", "rates"]}
    a = make.record(dagster=dagster)
    b = make.changed(dagster=dagster, inputs=[make.step("orders"), make.step("rates")])
    verdict = make.verdict(a, b)
    assert verdict.changed_with == ()
    assert {"not_attributable", "unknown"} <= set(kinds(verdict))


def test_inputs_added_and_removed(make: SimpleNamespace) -> None:
    a = make.record()
    b = make.changed(
        dagster={"declared_inputs": ["orders", "rates"]}, inputs=[make.step("orders"), make.step("rates")]
    )
    assert make.verdict(a, b).changed_with == ("input rates (added)",)
    assert make.verdict(
        b, a.model_copy(update={"outputs": [make.step("orders_clean", 9, output=True)]})
    ).changed_with == ("input rates (removed)",)


def test_another_partition_of_an_input_read_as_well_is_added(make: SimpleNamespace) -> None:
    def read(*days: str) -> Any:
        return [make.step("orders", day, producer=[make.producer(partition=day)]) for day in days]

    verdict = make.verdict(make.record(inputs=read("01")), make.changed(inputs=read("01", "02")))
    assert verdict.changed_with == ("input orders [02] (added)",)


def test_the_partitions_of_a_changed_input_are_named(make: SimpleNamespace) -> None:
    def read(content: str, storage_id: int) -> Any:
        producer = [
            make.producer(partition="01", storage_id=1),
            make.producer(partition="02", storage_id=storage_id),
        ]
        return [make.step("orders", content, producer=producer)]

    verdict = make.verdict(make.record(inputs=read("x", 2)), make.changed(inputs=read("y", 3)))
    finding = only(verdict, "input_changed")
    assert finding.details["partitions_materialised_anew"] == ["02"]
    assert "02" in finding.text


def test_another_partition_is_never_unexplained(make: SimpleNamespace) -> None:
    a = make.record(dagster={"partition_keys": ["2024-01-01"]})
    b = make.changed(dagster={"partition_keys": ["2024-01-02"]})
    verdict = make.verdict(a, b)
    assert kinds(verdict) == {"data_changed": "none"}
    assert verdict.changed_with == ("partition 2024-01-01 -> 2024-01-02",)


def test_another_profile_is_never_unexplained(make: SimpleNamespace) -> None:
    verdict = make.verdict(make.record(profile="prod"), make.changed(profile="branch-7"))
    assert verdict.changed_with == ("profile prod -> branch-7",)
    assert verdict.passed


def test_a_retried_attempt_is_judged_like_any_other(make: SimpleNamespace) -> None:
    retried = make.changed(run_id="run-2.retry-1", dagster={"attempt": 1})
    assert kinds(make.verdict(make.record(), retried)) == {"data_changed": "error", "unexplained": "error"}


def test_an_asset_declared_not_deterministic_is_not_judged_further(make: SimpleNamespace) -> None:
    verdict = make.verdict(make.record(), make.changed(), deterministic=False)
    assert kinds(verdict) == {"data_changed": "none"}
    assert "declared not deterministic" in only(verdict, "data_changed").text


def test_an_asset_without_inputs_that_changed_is_its_source(make: SimpleNamespace) -> None:
    none: dict[str, Any] = {"inputs": [], "dagster": {"declared_inputs": []}}
    verdict = make.verdict(make.record(**none), make.changed(**none))
    assert kinds(verdict) == {"data_changed": "none", "source_changed": "none"}
    assert verdict.passed


def test_a_declared_input_that_was_never_recorded_is_no_ingestion(make: SimpleNamespace) -> None:
    verdict = make.verdict(make.record(inputs=[]), make.changed(inputs=[]))
    assert "source_changed" not in kinds(verdict)
    assert only(verdict, "not_attributable").details["missing"] == [
        "input orders: declared but not recorded in the earlier run",
        "input orders: declared but not recorded in the later run",
    ]


def test_types_changed_values_not(make: SimpleNamespace) -> None:
    def of(kind: str) -> Any:
        return [make.step("orders_clean", "same", output=True, columns=[("id", kind), ("text", "string")])]

    verdict = make.verdict(make.record(outputs=of("int32")), make.record(outputs=of("int64")))
    assert kinds(verdict) == {
        "data_changed": "error",
        "types_changed_values_not": "warn",
        "unexplained": "error",
    }
    assert "id int32 -> int64" in only(verdict, "types_changed_values_not").text
    assert "its types, not its values" in only(verdict, "data_changed").text


def test_a_column_of_nulls_that_was_added_changes_the_schema_and_no_value(make: SimpleNamespace) -> None:
    def of(*names: str) -> Any:
        return [make.step("orders_clean", "same", output=True, columns=[(name, "int64") for name in names])]

    verdict = make.verdict(make.record(outputs=of("id")), make.record(outputs=of("id", "note")))
    assert {"types_changed_values_not", "schema_changed"} <= set(kinds(verdict))
    assert only(verdict, "schema_changed").details["added"] == [["note", "int64"]]


def test_schema_changed_names_each_column(make: SimpleNamespace) -> None:
    def of(content: int, columns: list[tuple[str, str]]) -> Any:
        return [make.step("orders_clean", content, output=True, columns=columns)]

    verdict = make.verdict(
        make.record(outputs=of(1, [("a", "int32"), ("b", "string")])),
        make.record(outputs=of(2, [("a", "int64"), ("c", "date")])),
    )
    finding = only(verdict, "schema_changed")
    assert finding.severity == "warn"
    assert finding.text.endswith("c (date) added, b (string) removed, a int32 -> int64")
    assert [(change.what, change.before, change.after) for change in finding.changes] == [
        ("column c of orders_clean", "-", "date"),
        ("column b of orders_clean", "string", "-"),
        ("column a of orders_clean", "int32", "int64"),
    ]


def test_a_schema_without_recorded_columns_says_so(make: SimpleNamespace) -> None:
    a = make.record(outputs=[make.step("x", 1, output=True)])
    b = make.record(
        outputs=[make.step("x", 2, output=True, schema_hash="sha256:b").model_copy(update={"columns": None})]
    )
    finding = only(make.verdict(a, b), "schema_changed")
    assert "not recorded" in finding.text
    assert finding.details["columns_recorded"] is False


@pytest.mark.parametrize(
    ("policy", "rows", "broken"),
    [
        ({"min_rows": 10}, 9, "fewer than 10"),
        ({"min_rows": 10}, 10, None),
        ({"max_rows": 10}, 11, "more than 10"),
        ({"max_rows": 10}, 10, None),
        ({"max_row_decrease": 0.1}, 89, "down from 100"),
        ({"max_row_decrease": 0.1}, 90, None),
        ({"max_row_decrease": 0.1}, 500, None),
        ({"max_row_increase": 0.5}, 151, "up from 100"),
        ({"max_row_increase": 0.5}, 150, None),
        ({"max_row_increase": 0.5}, 1, None),
    ],
)
def test_row_bounds_in_both_directions(
    make: SimpleNamespace, policy: dict[str, Any], rows: int, broken: str | None
) -> None:
    def of(count: int) -> Any:
        return make.record(outputs=[make.step("orders_clean", output=True, row_count=count)])

    found = [f for f in make.verdict(of(100), of(rows), **policy).findings if f.kind == "rows_out_of_bounds"]
    assert [f.severity for f in found] == (["warn"] if broken else [])
    assert all(broken is not None and broken in f.text for f in found)


def test_any_rise_from_no_rows_is_beyond_a_relative_bound(make: SimpleNamespace) -> None:
    a = make.record(outputs=[make.step("x", output=True, row_count=0)])
    b = make.record(outputs=[make.step("x", output=True, row_count=1)])
    assert "rows_out_of_bounds" in kinds(make.verdict(a, b, max_row_increase=100.0))


def test_rows_that_are_not_known_are_not_within_bounds(make: SimpleNamespace) -> None:
    b = make.record(outputs=[make.step("orders_clean", output=True).model_copy(update={"row_count": None})])
    assert "bounds are not judged" in only(make.verdict(make.record(), b, min_rows=1), "unknown").text


def test_a_failed_run_is_not_judged_as_data_drift(make: SimpleNamespace) -> None:
    b = make.record(
        status="error",
        error="ValueError: no rate\nsecond line",
        inputs=[],
        outputs=[make.step("orders_clean", output=True, data_hash=None, row_count=None, schema_hash=None)],
        code_hash="sha256:new",
    )
    verdict = make.verdict(make.record(), b, min_rows=5)
    assert [finding.kind for finding in verdict.findings] == ["unknown", "unknown", "code_changed"]
    assert verdict.changed_with == ()
    assert verdict.passed
    assert verdict.findings[0].text == "the run failed (ValueError: no rate); data drift is not judged"
    assert not any("removed" in finding.text for finding in verdict.findings)


def test_a_failed_baseline_says_nothing_of_the_data(make: SimpleNamespace) -> None:
    a = make.record(status="error", error="ValueError: x", outputs=[])
    verdict = make.verdict(a, make.record(), min_rows=100)
    assert {"unknown", "rows_out_of_bounds"} == set(kinds(verdict))
    assert "data_changed" not in kinds(verdict)


def test_unknown_and_not_comparable_outputs_are_notes(make: SimpleNamespace) -> None:
    a = make.record(
        outputs=[
            make.step("x", output=True, data_hash=None),
            make.step("y", output=True, hash_scope="passed_rows"),
        ]
    )
    b = make.record(
        outputs=[
            make.step("x", output=True, data_hash=None),
            make.step("y", output=True, hash_scope="stored_table"),
        ]
    )
    verdict = make.verdict(a, b)
    assert kinds(verdict) == {"unknown": "note", "not_comparable": "note"}
    assert verdict.passed


def test_each_output_is_judged(make: SimpleNamespace) -> None:
    def of(one: int, two: int) -> Any:
        return make.record(outputs=[make.step("one", one, output=True), make.step("two", two, output=True)])

    verdict = make.verdict(of(1, 1), of(2, 1))
    assert [(f.kind, f.subject) for f in verdict.findings] == [
        ("data_changed", "one"),
        ("unexplained", "one"),
    ]
    both = make.verdict(of(1, 1), of(2, 2))
    assert [f.subject for f in both.findings if f.kind == "unexplained"] == ["one", "two"]


def test_outputs_that_only_one_record_has(make: SimpleNamespace) -> None:
    one = make.record(outputs=[make.step("one", output=True)])
    two = make.record(outputs=[make.step("one", output=True), make.step("two", output=True)])
    assert kinds(make.verdict(one, two)) == {"first_record": "none"}
    assert kinds(make.verdict(two, one)) == {"unknown": "note"}


def test_records_without_outputs_are_not_called_unchanged(make: SimpleNamespace) -> None:
    assert kinds(make.verdict(make.record(outputs=[]), make.record(outputs=[]))) == {"unknown": "note"}


def test_a_masked_value_is_among_the_possible_reasons(make: SimpleNamespace) -> None:
    secret = {"variables": {"api_token": "***"}}
    text = only(make.verdict(make.record(**secret), make.changed(**secret)), "unexplained").text
    assert "a value that is masked in the records (api_token)" in text


def test_a_policy_may_forbid_any_change(make: SimpleNamespace) -> None:
    verdict = make.verdict(
        make.record(), make.changed(inputs=[make.step("orders", 2)]), severities={"data_changed": "error"}
    )
    assert kinds(verdict) == {"data_changed": "error", "input_changed": "none"}


def test_a_policy_may_silence_and_raise_but_not_alarm_while_the_output_stands_still(
    make: SimpleNamespace,
) -> None:
    code = {"functions": {"shop.clean": "sha256:new"}}
    error = make.verdict(make.record(), make.changed(code=code), severities={"code_changed": "error"})
    assert error.severity == "error"
    note = make.verdict(make.record(), make.record(code=code), severities={"code_changed": "error"})
    assert note.severity == "note"
    silent = make.verdict(make.record(), make.record(code=code), severities={"code_changed": "none"})
    assert silent.severity == "none"


def test_the_first_record_has_nothing_to_compare_with(make: SimpleNamespace) -> None:
    assert kinds(judge_first(make.record())) == {"first_record": "none"}
    assert kinds(judge_first(make.record(), DriftPolicy(min_rows=11))) == {
        "first_record": "none",
        "rows_out_of_bounds": "warn",
    }
    unhashed = make.record(
        outputs=[make.step("x", output=True, data_hash=None, hash_error="not a table (dict)")]
    )
    assert "not a table (dict)" in only(judge_first(unhashed), "unknown").text
    assert kinds(judge_first(make.record(status="error", error="E: x"))) == {"unknown": "note"}


def test_no_text_claims_a_cause(make: SimpleNamespace) -> None:
    environment = make.environment(packages={"pandas": "3"})
    pairs = [
        (make.record(), make.changed()),
        (make.record(), make.changed(inputs=[make.step("orders", 2)], code={"functions": {"f": "1"}})),
        (make.record(), make.changed(environment=environment, environment_hash="sha256:x", config_hash=None)),
        (make.record(inputs=[]), make.changed(inputs=[])),
    ]
    for a, b in pairs:
        for finding in judge(compare_records(a, b)).findings:
            text = finding.text.lower()
            assert not any(word in text for word in ("because", "due to", "caused", "reason is"))


def test_an_input_that_a_failed_run_did_not_reach_was_not_removed(make: SimpleNamespace) -> None:
    undeclared: dict[str, Any] = {"dagster": None}
    failed = make.record(status="error", inputs=[], outputs=[], **undeclared)
    findings = make.verdict(make.record(**undeclared), failed).findings
    assert [finding.kind for finding in findings] == ["unknown", "unknown"]
    assert not any("removed" in finding.text for finding in findings)


def test_variables_that_version_1_did_not_record_are_missing(make: SimpleNamespace) -> None:
    verdict = make.verdict(make.record(record_version=1), make.changed(record_version=1))
    assert "variables: not recorded" in only(verdict, "not_attributable").details["missing"]


def test_records_of_two_tasks_are_never_unexplained(make: SimpleNamespace) -> None:
    verdict = make.verdict(make.record(task_path="d/s/old"), make.changed(task_path="d/s/new"))
    assert verdict.changed_with == ("task d/s/old -> d/s/new",)


def test_a_change_is_as_grave_as_what_changed_with_it_not_as_what_is_unknown(make: SimpleNamespace) -> None:
    unknown = [make.step("orders", 2), make.step("rates", data_hash=None)]
    a = make.record(inputs=[make.step("orders"), make.step("rates", data_hash=None)])
    verdict = make.verdict(a, make.changed(inputs=unknown), severities={"unknown": "error"})
    assert only(verdict, "data_changed").severity == "note"
