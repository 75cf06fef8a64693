"""Canonical type names, and the types that have none."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.hashing.arrays import Tagged
from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.types import canonical_columns, canonical_type, quoted_name

NAMES = {
    "null": [pa.null(), pa.dictionary(pa.int8(), pa.null())],
    "bool": [pa.bool_(), pa.run_end_encoded(pa.int32(), pa.bool_())],
    "int8": [pa.int8(), pa.dictionary(pa.int8(), pa.int8()), pa.bool8()],
    "int16": [pa.int16()],
    "int32": [pa.int32()],
    "int64": [pa.int64(), Tagged(pa.int64()), Tagged(pa.dictionary(pa.int8(), pa.int64()))],
    "uint8": [pa.uint8()],
    "uint16": [pa.uint16()],
    "uint32": [pa.uint32()],
    "uint64": [pa.uint64()],
    "float32": [pa.float16(), pa.float32()],
    "float64": [pa.float64()],
    "string": [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.large_string()),
        pa.run_end_encoded(pa.int16(), pa.dictionary(pa.int8(), pa.string())),
        pa.json_(),
    ],
    "binary": [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(4), pa.uuid()],
    "date": [pa.date32(), pa.date64()],
    "timestamp": [pa.timestamp("s", "UTC"), pa.timestamp("ns", "Africa/Johannesburg")],
    "timestamp_ntz": [pa.timestamp("ms"), pa.timestamp("us", "")],
    "time32[s]": [pa.time32("s")],
    "time32[ms]": [pa.time32("ms")],
    "time64[us]": [pa.time64("us")],
    "time64[ns]": [pa.time64("ns")],
    "decimal(9,2)": [pa.decimal32(9, 2), pa.decimal64(9, 2), pa.decimal128(9, 2), pa.decimal256(9, 2)],
    "decimal(5,-2)": [pa.decimal128(5, -2)],
    "list<int8>": [
        pa.list_(pa.int8()),
        pa.list_(pa.field("other name", pa.int8(), nullable=False)),
        pa.large_list(pa.int8()),
        pa.list_(pa.int8(), 3),
        pa.list_view(pa.int8()),
        pa.large_list_view(pa.dictionary(pa.int8(), pa.int8())),
        pa.fixed_shape_tensor(pa.int8(), [2, 2]),
    ],
    "map<string,list<date>>": [
        pa.map_(pa.string(), pa.list_(pa.date32())),
        pa.map_(pa.dictionary(pa.int8(), pa.string_view()), pa.large_list(pa.date64()), keys_sorted=True),
    ],
    "map<null,int32>": [pa.map_(pa.dictionary(pa.int8(), pa.null()), pa.int32())],
    "map<timestamp,decimal(3,1)>": [pa.map_(pa.timestamp("ns", "UTC"), pa.decimal32(3, 1))],
    "struct<>": [pa.struct([])],
    "struct<b:int32,a:struct<é d.e:string>>": [
        pa.struct([("b", pa.int32()), ("a", pa.struct([("é d.e", pa.string())]))])
    ],
    "struct<`a:int32,b`:int32>": [pa.struct([("a:int32,b", pa.int32())])],
    "struct<a:int32,b:int32>": [pa.struct([("a", pa.int32()), ("b", pa.int32())])],
    "struct<```<`:null,``````:null,:null>": [
        pa.struct([("`<", pa.null()), ("``", pa.null()), ("", pa.null())])
    ],
}


@pytest.mark.parametrize(
    ("name", "arrow_type"), [pytest.param(n, t, id=f"{t}") for n, types in NAMES.items() for t in types]
)
def test_each_type_has_its_name(name: str, arrow_type: pa.DataType) -> None:
    assert canonical_type(arrow_type, column="x") == name


def test_no_name_stands_for_two_groups_of_types() -> None:
    assert len({canonical_type(types[0], column="x") for types in NAMES.values()}) == len(NAMES)


UNSUPPORTED = [
    pa.duration("ns"),
    pa.month_day_nano_interval(),
    pa.dense_union([pa.field("a", pa.int8()), pa.field("b", pa.string())]),
    pa.sparse_union([pa.field("a", pa.int8())]),
    pa.dictionary(pa.int8(), pa.duration("s")),
    pa.map_(pa.binary(), pa.int8()),
    pa.map_(pa.binary(2), pa.int8()),
    pa.map_(pa.struct([("a", pa.int8())]), pa.int8()),
    pa.map_(pa.list_(pa.int8()), pa.int8()),
    pa.map_(pa.map_(pa.int8(), pa.int8()), pa.int8()),
    pa.map_(pa.time64("us"), pa.int8()),
    pa.map_(pa.duration("s"), pa.int8()),
    pa.struct([("a", pa.int8()), ("a", pa.string())]),
]


@pytest.mark.parametrize("arrow_type", UNSUPPORTED, ids=str)
def test_a_type_without_exact_text_fails_naming_column_and_type(arrow_type: pa.DataType) -> None:
    with pytest.raises(HashError) as caught:
        canonical_type(arrow_type, column="when")
    assert caught.value.column == "when"
    assert caught.value.type_name == str(arrow_type)
    assert "'when'" in str(caught.value)


@pytest.mark.parametrize(
    ("nest", "path"),
    [
        (lambda t: pa.list_(t), "[]"),
        (lambda t: pa.map_(pa.string(), t), "{value}"),
        (lambda t: pa.struct([("a", pa.list_(pa.struct([("b", t)])))]), ".a[].b"),
    ],
)
def test_a_nested_type_without_exact_text_says_where(nest, path: str) -> None:
    with pytest.raises(HashError, match=r"duration\[s\]") as caught:
        canonical_type(nest(pa.duration("s")), column="x")
    assert caught.value.column == "x"
    assert caught.value.reason.startswith(f"at {path}: ")


class Variant(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(
            pa.struct([("metadata", pa.binary()), ("value", pa.binary())]), "arrow.parquet.variant"
        )

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def test_a_variant_is_no_struct() -> None:
    with pytest.raises(HashError, match="variant"):
        canonical_type(Variant(), column="v")
    marked = pa.field("metadata", pa.binary(), metadata={"variant": "true"})
    with pytest.raises(HashError, match="variant"):
        canonical_type(pa.list_(pa.struct([pa.field("value", pa.binary()), marked])), column="v")
    plain = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    assert canonical_type(plain, column="v") == "struct<value:binary,metadata:binary>"


def test_columns_are_sorted_by_code_point() -> None:
    names = ["b", "a", "A", "\uffff", "\U0001f600", "é", "", "aa"]
    schema = pa.schema([pa.field(n, pa.int8()) for n in names])
    assert [n for n, _ in canonical_columns(schema)] == ["", "A", "a", "aa", "b", "é", "\uffff", "\U0001f600"]


def test_columns_that_differ_only_in_case_are_two() -> None:
    schema = pa.schema([pa.field("sf_gsp", pa.int8()), pa.field("SF_GSP", pa.string())])
    assert canonical_columns(schema) == (("SF_GSP", "string"), ("sf_gsp", "int8"))


def test_two_columns_of_one_name_fail_naming_it() -> None:
    schema = pa.schema([pa.field("a", pa.int8()), pa.field("b", pa.int8()), pa.field("a", pa.int8())])
    with pytest.raises(HashError, match="2 columns") as caught:
        canonical_columns(schema)
    assert caught.value.column == "a"


def test_a_name_that_is_not_unicode_fails() -> None:
    with pytest.raises(HashError, match="not valid UTF-8"):
        canonical_columns(pa.schema([pa.field(b"\xff", pa.int8())]))
    with pytest.raises(HashError, match="not valid UTF-8") as caught:
        canonical_columns(pa.schema([pa.field("x", pa.struct([pa.field(b"\xff", pa.int8())]))]))
    assert caught.value.column == "x"


def test_quoting_keeps_names_apart() -> None:
    awkward = ["a", "a:b", "a,b", "a<b", "a>b", "a`b", "`a`", "``", "`", "`a:b`"]
    assert len({quoted_name(n) for n in awkward}) == len(awkward)
    assert quoted_name("a b.c") == "a b.c"
