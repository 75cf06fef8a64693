from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from ubunye_orchestrate.compare.comparison import Comparison, compare_records
from ubunye_orchestrate.compare.drift import DriftPolicy, judge
from ubunye_orchestrate.compare.render import as_json, markdown, summary, terminal


def genuine(make: SimpleNamespace, case: str) -> tuple[Comparison, Any]:
    expected, (first, second) = make.printed_json(f"{case}__compare_json")
    return compare_records(make.genuine(case, first), make.genuine(case, second)), expected


def test_json_is_the_engine_s_field_for_field_for_all_its_records(
    make: SimpleNamespace, any_case: str
) -> None:
    comparison, expected = genuine(make, any_case)
    document = json.loads(json.dumps(as_json(comparison, judge(comparison))))
    assert {name: document[name] for name in expected} == expected
    assert list(document)[: len(expected)] == list(expected)


def test_ours_stands_beside_the_engine_s_fields(make: SimpleNamespace) -> None:
    comparison = compare_records(make.record(), make.changed(dagster={"partition_keys": ["01"]}))
    document = json.loads(json.dumps(as_json(comparison, judge(comparison)), allow_nan=False))
    assert document["partitions"] == {"a": [], "b": ["01"], "changed": True}
    assert document["code"]["state"] == "unchanged"
    assert document["output_evidence"]["orders_clean"]["columns"] == {
        "added": [],
        "removed": [],
        "retyped": [],
    }
    assert document["verdict"]["changed_with"] == ["partition - -> 01"]


def shape(text: str) -> list[str]:
    """A line's name and what it says of it, without the values."""
    lines = [line for line in text.splitlines() if not line.startswith("-----")]
    return [f"{line.partition(': ')[0]}{'  CHANGED' * line.endswith('CHANGED')}" for line in lines]


# Where the engine prints "None (unchanged)" or "40 -> None CHANGED" we print unknown; the seconds that a run
# took are never marked as a change; and what is not known of an environment is not listed as new.
@pytest.mark.parametrize(
    "case", ["a_identical", "b_input_changed", "c_code_changed", "d_env_changed", "k_quarantine_warn"]
)
def test_terminal_has_the_engine_s_layout(make: SimpleNamespace, case: str) -> None:
    printed, _ = make.printed(f"{case}__compare")
    comparison, _ = genuine(make, case)
    theirs = [line.replace("duration_sec  CHANGED", "duration_sec") for line in shape(printed)]
    assert shape(terminal(comparison))[: len(theirs)] == theirs


def test_terminal_never_calls_unknown_unchanged(make: SimpleNamespace) -> None:
    comparison, _ = genuine(make, "h_v050_v1")
    text = terminal(comparison)
    assert "code_hash: unknown (not recorded)" in text
    assert "row_count: unknown (not recorded)" in text
    assert "None" not in text


def test_terminal_of_every_genuine_record_fits_80_columns(make: SimpleNamespace, any_case: str) -> None:
    comparison, _ = genuine(make, any_case)
    assert max(len(line) for line in terminal(comparison).splitlines()) <= 80


def test_full_hashes(make: SimpleNamespace) -> None:
    comparison, expected = genuine(make, "b_input_changed")
    text = terminal(comparison, full_hashes=True)
    data = expected["outputs"]["sales"]["data_hash"]
    assert f"{data['a']} -> {data['b']}  CHANGED" in text


def test_terminal_shows_what_is_ours(make: SimpleNamespace) -> None:
    a = make.record(version="1")
    b = make.changed(
        version="2",
        variables={"dt": "2"},
        backend="polars",
        code={"functions": {"shop.clean": "sha256:new", "shop.more": "1"}},
        inputs=[make.step("orders", 2, producer=[make.producer(partition="01", storage_id=2)])],
        outputs=[
            make.step("orders_clean", "out", output=True, columns=[("id", "int32"), ("new", "date")]),
        ],
    )
    text = terminal(compare_records(a, b))
    for line in (
        "  version: 1 -> 2  CHANGED",
        "    dt: - -> 2",
        "  backend: pandas -> polars  CHANGED",
        "    function shop.clean: changed",
        "    function shop.more: added",
        "    function shop.parse: removed",
        "      partitions added: 01",
        "        new: added (date)",
        "        text: removed (string)",
        "        id: int64 -> int32",
        "      the types changed, the values did not (equal lane sums)",
    ):
        assert line in text.splitlines(), text


def test_no_text_of_a_record_reaches_the_terminal_raw(make: SimpleNamespace) -> None:
    nasty = "x\x1b[2J\r\n\u202eevil\x9b1m"
    step = make.step(nasty, columns=[(nasty, "int64")], data_hash=None, hash_error=nasty)
    a = make.record(task_path=nasty, run_id=nasty, started_at=nasty, inputs=[step], version=nasty)
    b = make.record(
        task_path=nasty,
        run_id=nasty,
        version="2",
        inputs=[make.step(nasty, columns=[(nasty, "int32")])],
        variables={nasty: nasty},
        code={"functions": {nasty: nasty}, "error": nasty},
        environment=make.environment(python=nasty, packages={nasty: nasty}),
        environment_hash=nasty,
        config_hash=nasty,
        status="error",
        error=nasty,
    )
    comparison = compare_records(a, b)
    for text in (terminal(comparison), terminal(comparison, full_hashes=True)):
        assert all(line.isprintable() for line in text.split("\n"))
    assert summary(judge(comparison)).isprintable()
    assert all(line.isprintable() for line in markdown(comparison).split("\n"))


def test_markdown_is_a_table_of_what_from_to_and_changed_with(make: SimpleNamespace) -> None:
    verdict = judge(
        compare_records(make.record(), make.changed(inputs=[make.step("orders", "more", row_count=11)]))
    )
    lines = markdown(verdict).splitlines()
    assert lines[:2] == ["| what | from | to | changed with |", "|---|---|---|---|"]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert cells[0][0] == "data of orders_clean"
    assert cells[0][3] == "input orders"
    assert ["rows of input orders", "10", "11", ""] in cells


def test_markdown_cells_hold_no_markup(make: SimpleNamespace) -> None:
    name = "a|b\n**c** `d` <script> [x](y) & \\"
    verdict = judge(compare_records(make.record(), make.changed(variables={name: "1"})))
    rows = [line for line in markdown(verdict).splitlines() if line.startswith("| variable")]
    assert rows == [
        "| variable a\\|b\\\\n\\*\\*c\\*\\* \\`d\\` \\<script\\> \\[x\\](y) &amp; \\\\ | - | 1 |  |"
    ]


def test_markdown_says_what_has_no_row(make: SimpleNamespace) -> None:
    text = markdown(judge(compare_records(make.record(), make.changed())))
    assert "| nothing recorded: unexplained |" in text
    assert "- **error**: output orders_clean changed and the recorded evidence is equal" in text
    missing = markdown(judge(compare_records(make.record(), make.changed(code=None))))
    assert "| not known: some evidence is missing |" in missing
    assert markdown(judge(compare_records(make.record(), make.record()))) == "outputs unchanged"


def test_markdown_says_which_bound_the_rows_broke(make: SimpleNamespace) -> None:
    a, b = (make.record(outputs=[make.step("x", output=True, row_count=rows)]) for rows in (100, 7))
    text = markdown(judge(compare_records(a, b), DriftPolicy(min_rows=10)))
    assert "| rows of x | 100 | 7 |" in text
    assert "- **warn**: output x has 7 rows: fewer than 10" in text


def test_markdown_is_bounded(make: SimpleNamespace) -> None:
    def of(kind: str) -> Any:
        columns = [(f"c{i:04}", kind) for i in range(2000)]
        return make.record(outputs=[make.step("wide", kind, output=True, columns=columns)])

    text = markdown(compare_records(of("int32"), of("int64")))
    assert len([line for line in text.splitlines() if line.startswith("| ")]) == 51
    assert "and 1951 more changes" in text


def test_that_an_output_changed_is_said_once(make: SimpleNamespace) -> None:
    unexplained = summary(judge(compare_records(make.record(), make.changed())))
    assert unexplained.startswith("error: output orders_clean changed and the recorded evidence is equal; ")
    assert unexplained.count("orders_clean changed") == 1
    source = [
        make.record(inputs=[], outputs=[make.step("raw", rows, output=True, row_count=rows)], dagster={})
        for rows in (3, 4)
    ]
    for record in source:
        assert record.dagster is not None
        record.dagster["declared_inputs"] = []
    told = summary(judge(compare_records(*source)))
    assert told == "output raw changed (3 -> 4 rows, +1) and has no recorded inputs: its source is not seen"


def test_summary_is_one_line_that_leads_with_the_worst(make: SimpleNamespace) -> None:
    same = judge(compare_records(make.record(), make.record()))
    assert summary(same) == "outputs unchanged"
    note = judge(compare_records(make.record(), make.record(config_hash="sha256:c")))
    assert summary(note) == "note: outputs unchanged; configuration changed"
    unexplained = summary(judge(compare_records(make.record(), make.changed())))
    assert unexplained.startswith("error: output orders_clean changed")
    unknown = judge(
        compare_records(make.record(), make.record(outputs=[make.step("x", output=True, data_hash=None)]))
    )
    assert "unchanged" not in summary(unknown)
    assert "\n" not in unexplained
