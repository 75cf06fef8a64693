from __future__ import annotations

from types import SimpleNamespace

import pytest

from ubunye_orchestrate.compare.comparison import compare_records


def test_a_record_against_itself_is_unchanged(make: SimpleNamespace) -> None:
    c = compare_records(make.record(), make.record())
    states = {
        *(step.data.state for step in (*c.inputs, *c.outputs)),
        *(step.schema.state for step in (*c.inputs, *c.outputs)),
        c.code.state,
        c.environment.state,
        c.config.state,
        c.variables.state,
        c.status.state,
    }
    assert states == {"unchanged"}


def test_two_missing_hashes_are_unknown_with_their_reasons(make: SimpleNamespace) -> None:
    a = make.record(inputs=[make.step("orders", data_hash=None, hash_error="column x: interval")])
    b = make.record(inputs=[make.step("orders", data_hash=None, hash_error="over budget")])
    (orders,) = compare_records(a, b).inputs
    assert orders.data.state == "unknown"
    assert orders.data.why == "column x: interval (earlier); over budget (later)"


def test_a_hash_missing_on_one_side_is_unknown_and_the_other_side_s_remark_is_no_reason(
    make: SimpleNamespace,
) -> None:
    a = make.record(inputs=[make.step("orders", hash_error="odd, but hashed")])
    b = make.record(inputs=[make.step("orders", data_hash=None)])
    (orders,) = compare_records(a, b).inputs
    assert (orders.data.state, orders.data.why) == ("unknown", "not recorded")


def test_different_methods_are_not_comparable_even_when_the_digits_agree(make: SimpleNamespace) -> None:
    a = make.record(inputs=[make.step("orders", hash_method="rows-v1")])
    b = make.record(inputs=[make.step("orders", hash_method="rows-v2")])
    (orders,) = compare_records(a, b).inputs
    assert orders.data.state == orders.schema.state == "not comparable"
    assert orders.data.why == "made by rows-v1 and rows-v2"
    assert orders.columns is None
    assert not orders.same_values


def test_version_1_records_compare_plainly_and_not_with_version_2(make: SimpleNamespace) -> None:
    def of(version: int, method: str | None) -> object:
        return make.record(record_version=version, outputs=[make.step("x", output=True, hash_method=method)])

    assert compare_records(of(1, None), of(1, None)).outputs[0].data.state == "unchanged"
    mixed = compare_records(of(1, None), of(2, "rows-v1")).outputs[0].data
    assert (mixed.state, mixed.why) == ("not comparable", "made by the pre-0.7 sample and rows-v1")


def test_version_1_has_no_variables_to_compare(make: SimpleNamespace) -> None:
    c = compare_records(make.record(record_version=1), make.record(variables={"dt": "2024-01-01"}))
    assert c.variables.state == "unknown"
    assert c.variable_changes == {}


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_source_that_moved_makes_the_hash_unknown(make: SimpleNamespace, side: str) -> None:
    moved = make.record(inputs=[make.step("orders", source_changed=True)])
    pair = (moved, make.record()) if side == "a" else (make.record(), moved)
    (orders,) = compare_records(*pair).inputs
    assert (orders.data.state, orders.data.why) == ("unknown", "the source moved between read and hash")


def test_scopes_that_differ_are_not_comparable(make: SimpleNamespace) -> None:
    a = make.record(outputs=[make.step("x", output=True, hash_scope="stored_table")])
    b = make.record(outputs=[make.step("x", output=True, hash_scope="passed_rows")])
    data = compare_records(a, b).outputs[0].data
    assert (data.state, data.why) == (
        "not comparable",
        "taken over different rows: stored_table and passed_rows",
    )


def test_a_writer_without_scopes_compares_plainly(make: SimpleNamespace) -> None:
    a = make.record(outputs=[make.step("x", output=True, hash_scope=None)])
    b = make.record(outputs=[make.step("x", output=True, hash_scope="stored_table")])
    assert compare_records(a, b).outputs[0].data.state == "unchanged"


def test_types_changed_while_the_values_did_not(make: SimpleNamespace) -> None:
    a = make.record(outputs=[make.step("x", "same", output=True, columns=[("id", "int32")])])
    b = make.record(outputs=[make.step("x", "same", output=True, columns=[("id", "int64")])])
    (x,) = compare_records(a, b).outputs
    assert x.data.state == "changed"
    assert x.types_changed_values_not
    assert x.columns is not None
    assert x.columns.retyped == (("id", "int32", "int64"),)


def test_equal_sums_over_another_number_of_rows_say_nothing(make: SimpleNamespace) -> None:
    a = make.record(outputs=[make.step("x", "same", output=True, row_count=1, columns=[("id", "int32")])])
    b = make.record(outputs=[make.step("x", "same", output=True, row_count=2, columns=[("id", "int64")])])
    assert not compare_records(a, b).outputs[0].types_changed_values_not


def test_columns_added_removed_and_retyped_are_named(make: SimpleNamespace) -> None:
    a = make.record(
        outputs=[make.step("x", 1, output=True, columns=[("a", "int64"), ("b", "string"), ("c", "date")])]
    )
    b = make.record(
        outputs=[make.step("x", 2, output=True, columns=[("a", "int64"), ("c", "timestamp"), ("d", "bool")])]
    )
    columns = compare_records(a, b).outputs[0].columns
    assert columns is not None
    assert columns.added == (("d", "bool"),)
    assert columns.removed == (("b", "string"),)
    assert columns.retyped == (("c", "date", "timestamp"),)


def test_columns_that_were_cut_from_a_receipt_are_not_called_equal(make: SimpleNamespace) -> None:
    a = make.record(outputs=[make.step("x", output=True)])
    b = make.record(outputs=[make.step("x", output=True).model_copy(update={"columns": None})])
    assert compare_records(a, b).outputs[0].columns is None


def test_environment_names_everything_that_moved_from_and_to(make: SimpleNamespace) -> None:
    a = make.record(
        environment=make.environment(python="3.11.7", java="17", packages={"pandas": "2.2.3", "old": "1"})
    )
    b = make.record(
        environment=make.environment(python="3.12.1", java="21", packages={"pandas": "2.3.0", "new": "1"}),
        environment_hash=make.sha("other"),
    )
    environment = compare_records(a, b).environment
    assert environment.state == "changed"
    assert dict(environment.changes) == {
        "new": (None, "1"),
        "old": ("1", None),
        "pandas": ("2.2.3", "2.3.0"),
        "python": ("3.11.7", "3.12.1"),
        "java": ("17", "21"),
    }


def test_a_missing_environment_is_unknown(make: SimpleNamespace) -> None:
    c = compare_records(make.record(environment=None, environment_hash=None), make.record())
    assert c.environment.state == "unknown"
    both = make.record(environment=None, environment_hash=None)
    assert compare_records(both, both).environment.state == "unknown"


def test_code_by_function(make: SimpleNamespace) -> None:
    def of(**functions: str) -> object:
        return make.record(code={"function": "f", "functions": functions})

    code = compare_records(of(f="1", g="1", old="1"), of(f="2", g="1", new="1")).code
    assert (code.state, code.changed, code.added, code.removed) == ("changed", ("f",), ("new",), ("old",))


@pytest.mark.parametrize("code", [None, {"functions": {}}, {"functions": {"f": "1"}, "error": "a factory"}])
def test_code_that_could_not_be_found_is_unknown_though_its_folder_is_equal(
    make: SimpleNamespace, code: dict[str, object] | None
) -> None:
    comparison = compare_records(make.record(), make.record(code=code))
    assert comparison.code.folder.state == "unchanged"
    assert comparison.code.state == "unknown"
    assert comparison.code.why


def test_a_function_that_differs_has_changed_whatever_else_is_unknown(make: SimpleNamespace) -> None:
    a = make.record(code={"functions": {"f": "1", "g": "1"}})
    b = make.record(code={"functions": {"f": "2"}, "error": "g is made at run time"})
    code = compare_records(a, b).code
    assert (code.state, code.changed, code.removed) == ("changed", ("f",), ())
    assert code.why == "g is made at run time"


def test_records_without_functions_rest_on_the_folder(make: SimpleNamespace) -> None:
    a = make.record(code=None)
    assert compare_records(a, make.record(code=None)).code.state == "unchanged"
    assert compare_records(a, make.record(code=None, code_hash="sha256:other")).code.state == "changed"
    assert compare_records(a, make.record(code=None, code_hash=None)).code.state == "unknown"
    neither = make.record(code=None, code_hash=None)
    assert compare_records(neither, neither).code.state == "unknown"


def test_inputs_of_one_name_are_paired_by_the_partitions_that_they_read(make: SimpleNamespace) -> None:
    def read(day: str, content: str, storage_id: int) -> object:
        return make.step(
            "orders", content, producer=[make.producer(partition=day, storage_id=storage_id, run_id="r")]
        )

    a = make.record(inputs=[read("01", "one", 1), read("02", "two", 2)])
    b = make.record(inputs=[read("02", "two", 7), read("01", "one!", 8)])
    inputs = {step.label: step for step in compare_records(a, b).inputs}
    assert {label: step.data.state for label, step in inputs.items()} == {
        "orders [01]": "changed",
        "orders [02]": "unchanged",
    }
    assert inputs["orders [02]"].partitions.materialised_anew == ("02",)


def test_inputs_of_one_name_that_read_other_partitions_are_paired_in_order(make: SimpleNamespace) -> None:
    def read(day: str) -> object:
        return make.step("orders", day, producer=[make.producer(partition=day)])

    c = compare_records(
        make.record(inputs=[read("01"), read("02")]), make.record(inputs=[read("02"), read("03")])
    )
    assert [(step.label, step.data.state) for step in c.inputs] == [
        ("orders [01 -> 03]", "changed"),
        ("orders [02]", "unchanged"),
    ]


def test_inputs_of_one_name_without_partitions_are_told_apart_by_position(make: SimpleNamespace) -> None:
    two = make.record(inputs=[make.step("orders", 1), make.step("orders", 2)])
    one = make.record(inputs=[make.step("orders", 1)])
    assert [(s.label, s.data.state) for s in compare_records(two, one).inputs] == [
        ("orders [#1]", "unchanged"),
        ("orders [#2]", "unknown"),
    ]


def test_partitions_read_are_compared_by_their_materializations(make: SimpleNamespace) -> None:
    def read(*pairs: tuple[str, int]) -> object:
        return make.record(
            inputs=[
                make.step(
                    "orders", pairs, producer=[make.producer(partition=p, storage_id=i) for p, i in pairs]
                )
            ]
        )

    partitions = (
        compare_records(read(("01", 1), ("02", 2), ("03", 3)), read(("02", 2), ("03", 9), ("04", 4)))
        .inputs[0]
        .partitions
    )
    assert (partitions.added, partitions.removed, partitions.materialised_anew) == (("04",), ("01",), ("03",))


def test_partition_keys_of_any_writer(make: SimpleNamespace) -> None:
    a = make.record(dagster={"partition_keys": ["b", "a"]})
    b = make.record(dagster={"partition_keys": None})
    evidence = compare_records(a, b).partitions
    assert (evidence.a, evidence.b, evidence.state) == (("a", "b"), (), "changed")
