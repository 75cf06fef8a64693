"""Canonical type names: what a column is called in a schema hash, whatever library it came from."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from ubunye_orchestrate.errors import HashError

__all__ = ["canonical_columns", "canonical_type", "field_name", "quoted_name"]

# By the type's id, of the types that are told by it.
_NAMES: Final[dict[int, str]] = {
    t.id: name
    for name, types in (
        ("null", [pa.null()]),
        ("bool", [pa.bool_()]),
        *((str(t), [t]) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
        *((str(t), [t]) for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
        ("float32", [pa.float16(), pa.float32()]),  # every half is a float: widened exactly
        ("float64", [pa.float64()]),
        ("string", [pa.string(), pa.large_string(), pa.string_view()]),
        ("binary", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)]),
        ("date", [pa.date32(), pa.date64()]),
    )
    for t in types
}
_LIST_KINDS = (
    pat.is_list,
    pat.is_large_list,
    pat.is_fixed_size_list,
    pat.is_list_view,
    pat.is_large_list_view,
)
_VARIANT_EXTENSIONS = frozenset({"arrow.parquet.variant", "parquet.variant"})
_VARIANT = "a variant has no exact canonical text; store it as text or as a struct"
_CHARACTERS_QUOTED = frozenset(":,<>`")


def canonical_columns(schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    """Name and canonical type of each column, sorted by name (by code point).

    Raises HashError for a type that rows-v1 does not define, for two columns of one name, and for a name
    that is not valid Unicode.
    """
    try:
        names = schema.names
    except UnicodeDecodeError:
        names = [field_name(schema.field(i)) for i in range(len(schema))]  # says which
    if len(set(names)) < len(names):
        name, count = next(item for item in Counter(names).items() if item[1] > 1)
        raise HashError(
            f"{count} columns have this name, and a row's line has one value a name: rename or drop some",
            column=name,
        )
    types = schema.types  # made anew at each access
    return tuple(sorted((name, canonical_type(types[i], column=name)) for i, name in enumerate(names)))


def canonical_type(arrow_type: pa.DataType, *, column: str) -> str:
    """Return the rows-v1 name of an Arrow type (``int32``, ``list<string>``, ``map<date,float64>``, ...).

    Dictionary and run-end-encoded types are named by their values, extension types by their storage.
    Raises HashError, naming ``column`` and the Arrow type, where the type has no exact canonical text.
    """
    try:
        return _name(arrow_type, "")
    except _UnsupportedError as e:
        raise HashError(e.reason, column=column, type_name=str(arrow_type)) from None


def field_name(field: pa.Field) -> str:
    """Return a field's name; HashError where its bytes are not valid Unicode (Arrow does not check them)."""
    try:
        name = field.name
    except UnicodeDecodeError as e:
        raise HashError(f"the name of a column or field is not valid UTF-8 ({e.object!r}); rename it") from e
    assert isinstance(name, str)
    return name


def quoted_name(name: str) -> str:
    """Return a struct field's name as it stands in a type name.

    A name that holds a character of the type syntax stands in backticks, its own doubled, so that no two
    types share a name.
    """
    if _CHARACTERS_QUOTED.isdisjoint(name):
        return name
    return "`" + name.replace("`", "``") + "`"


class _UnsupportedError(Exception):
    def __init__(self, path: str, what: str) -> None:
        self.reason = f"at {path}: {what}" if path else what
        super().__init__(self.reason)


def _name(t: pa.DataType, path: str) -> str:
    """Name ``t``, which stands at ``path`` inside its column (``.field`` and ``[]`` steps, for messages)."""
    name = _NAMES.get(t.id)
    if name is not None:
        return name
    if isinstance(t, pa.BaseExtensionType):
        if t.extension_name in _VARIANT_EXTENSIONS:
            raise _UnsupportedError(path, _VARIANT)
        return _name(t.storage_type, path)
    if pat.is_dictionary(t) or pat.is_run_end_encoded(t):
        return _name(t.value_type, path)
    if pat.is_timestamp(t):
        return "timestamp" if t.tz else "timestamp_ntz"
    if pat.is_time(t):
        return str(t)
    if pat.is_decimal(t):
        return f"decimal({t.precision},{t.scale})"
    if any(is_kind(t) for is_kind in _LIST_KINDS):
        return f"list<{_name(t.value_type, path + '[]')}>"
    if pat.is_map(t):
        return f"map<{_key_name(t.key_type, path)},{_name(t.item_type, path + '{value}')}>"
    if pat.is_struct(t):
        return _struct_name(t, path)
    raise _UnsupportedError(
        path,
        f"{t} has no exact canonical text in rows-v1; convert it to a type that has one (an integer, text) "
        "before it is stored",
    )


def _key_name(t: pa.DataType, path: str) -> str:
    name = _name(t, path + "{key}")
    # Spark's JSON writer has no exact text for these; a time has none as a key in Spark at all.
    if name == "binary" or name.startswith(("struct<", "list<", "map<", "time32", "time64")):
        raise _UnsupportedError(path, f"map keys of type {name} have no exact canonical text")
    return name


def _struct_name(t: pa.StructType, path: str) -> str:
    fields = []
    seen = set()
    for i in range(t.num_fields):
        field = t.field(i)
        try:
            name = field_name(field)
        except HashError as e:
            raise _UnsupportedError(path, e.reason) from e
        if name in seen:
            raise _UnsupportedError(
                path, f"two fields of a struct are named {name!r}; one left out as null could not be told"
            )
        if (field.metadata or {}).get(b"variant") == b"true":
            raise _UnsupportedError(path, _VARIANT)  # as Spark hands one over to Arrow
        seen.add(name)
        fields.append(f"{quoted_name(name)}:{_name(field.type, f'{path}.{name}')}")
    return f"struct<{','.join(fields)}>"
