from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ubunye_orchestrate.compare.custody import judge_custody, judge_custody_by_records


def stored(make: SimpleNamespace, content: object = "x", **fields: Any) -> Any:
    return make.step("orders", content, output=True, **fields)


def partition(make: SimpleNamespace, a: int, b: int, rows: int, **fields: Any) -> Any:
    given = {"hash_scope": "stored_partition", "lane_sums": (str(a), str(b)), "row_count": rows, **fields}
    return stored(make, (a, b), **given)


def test_one_table_read_as_stored(make: SimpleNamespace) -> None:
    finding = judge_custody(make.step("orders", "x"), [stored(make)])
    assert (finding.kind, finding.severity) == ("custody_held", "none")


def test_one_table_read_otherwise(make: SimpleNamespace) -> None:
    finding = judge_custody(make.step("orders", "y"), [stored(make)])
    assert (finding.kind, finding.severity) == ("custody_broken", "error")
    assert "types" not in finding.text


def test_types_that_moved_on_the_way_are_said_to_be_only_that(make: SimpleNamespace) -> None:
    read = make.step("orders", "x", columns=[("id", "int32")])
    finding = judge_custody(read, [stored(make, columns=[("id", "int64")])])
    assert finding.kind == "custody_broken"
    assert finding.text.endswith("its types differ, its values do not")


def test_several_partitions_add_up_modulo_2_to_the_64(make: SimpleNamespace) -> None:
    parts = [partition(make, 2**64 - 1, 5, 3), partition(make, 2, 6, 4)]
    read = make.step("orders", hash_scope="stored_table", lane_sums=("1", "11"), row_count=7)
    assert judge_custody(read, parts).kind == "custody_held"
    off_by_one = read.model_copy(update={"lane_sums": ("2", "11")})
    assert judge_custody(off_by_one, parts).kind == "custody_broken"
    one_row_less = read.model_copy(update={"row_count": 6})
    assert judge_custody(one_row_less, parts).kind == "custody_broken"


@pytest.mark.parametrize(
    ("read", "producers", "told"),
    [
        ({}, [], "no record of its producer"),
        ({"data_hash": None, "hash_error": "off"}, [{}], "the input has no hash (off)"),
        ({"source_changed": True}, [{}], "the source moved"),
        ({}, [{"data_hash": None}], "the producer's output has no hash"),
        ({}, [{"hash_method": "rows-v2"}], "methods rows-v2 and rows-v1"),
        ({"hash_scope": "projection"}, [{}], "scope projection"),
        ({}, [{"hash_scope": "passed_rows"}], "scope passed_rows"),
        ({"hash_scope": None}, [{}], "scope not recorded"),
        ({"hash_scope": "stored_partition"}, [{}], "scopes stored_table and stored_partition"),
        ({}, [{}, {}], "scope stored_table of one of several"),
        ({"lane_sums": None}, [{"hash_scope": "stored_partition"}] * 2, "lane sums not recorded"),
    ],
)
def test_what_is_not_alike_is_not_judged(
    make: SimpleNamespace, read: dict[str, Any], producers: list[dict[str, Any]], told: str
) -> None:
    finding = judge_custody(make.step("orders", "other", **read), [stored(make, **p) for p in producers])
    assert (finding.kind, finding.severity) == ("custody_not_judged", "note")
    assert told in finding.text


def test_a_partition_whose_record_is_missing_is_not_judged(make: SimpleNamespace) -> None:
    producers = [make.producer(partition=day) for day in ("01", "02")]
    read = make.step("orders", producer=producers, hash_scope="stored_partition")
    finding = judge_custody(read, [partition(make, 1, 2, 3)])
    assert finding.kind == "custody_not_judged"
    assert "2 materializations were read, the records of 1 are known" in finding.text


def by_records(make: SimpleNamespace, read: list[str], *stored_partitions: list[str]) -> Any:
    producers = [
        make.record(
            run_id=f"run-{number}",
            dagster={"partition_keys": keys},
            outputs=[partition(make, number, number, 1)],
        )
        for number, keys in enumerate(stored_partitions)
    ]
    total = sum(range(len(stored_partitions)))
    step = make.step(
        "orders",
        (0, 0),  # the content of the first part, for a single one
        hash_scope="stored_partition",
        lane_sums=(str(total), str(total)),
        row_count=len(stored_partitions),
        producer=[make.producer(partition=key) for key in read],
    )
    return judge_custody_by_records(step, producers)


def test_records_of_the_partitions_that_were_read(make: SimpleNamespace) -> None:
    assert by_records(make, ["01"], ["01"]).kind == "custody_held"
    assert by_records(make, ["01", "02"], ["01"], ["02"]).kind == "custody_held"
    assert by_records(make, ["01", "02", "03"], ["01", "02"], ["03"]).kind == "custody_held"


def test_a_range_of_which_one_partition_was_read_is_not_judged(make: SimpleNamespace) -> None:
    finding = by_records(make, ["01"], ["01", "02"])
    assert finding.kind == "custody_not_judged"
    assert "(02)" in finding.text


def test_a_record_that_is_not_the_producer_s_is_not_judged(make: SimpleNamespace) -> None:
    read = make.step("rates", producer=[make.producer()])
    assert judge_custody_by_records(read, [make.record()]).kind == "custody_not_judged"
