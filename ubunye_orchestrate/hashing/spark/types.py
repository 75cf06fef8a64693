"""Spark's types as rows-v1 names them, read off a frame's schema without importing pyspark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.types import quoted_name

__all__ = ["SparkType", "can_be_named", "spark_columns"]

# Class of the pyspark type -> (canonical name, type name in Spark SQL).
_FLAT = {
    "ByteType": ("int8", "tinyint"),
    "ShortType": ("int16", "smallint"),
    "IntegerType": ("int32", "int"),
    "LongType": ("int64", "bigint"),
    "FloatType": ("float32", "float"),
    "DoubleType": ("float64", "double"),
    "BooleanType": ("bool", "boolean"),
    "StringType": ("string", "string"),
    "CharType": ("string", "string"),
    "VarcharType": ("string", "string"),
    "BinaryType": ("binary", "binary"),
    "DateType": ("date", "date"),
    "TimestampType": ("timestamp", "timestamp_ltz"),
    "TimestampNTZType": ("timestamp_ntz", "timestamp_ntz"),
    "NullType": ("null", "void"),
}

# Metadata of a column or field that is declared with a default.
_DEFAULT = "EXISTS_DEFAULT"


@dataclass(frozen=True)
class SparkType:
    """One type of a Spark schema, with the types inside it."""

    kind: str
    """The canonical name of a flat type without its parameters, or ``list``, ``map``, ``struct``."""

    name: str
    """The canonical type name, as it stands in the schema hash."""

    sql: str
    """The type in Spark SQL, its structs' fields named ``f0``, ``f1``, ...: what a value can be cast to."""

    inside: tuple[SparkType, ...] = ()
    """A list's item, a map's key and value, a struct's fields in the order declared."""

    fields: tuple[str, ...] = ()
    """A struct's field names."""

    accessors: tuple[str, ...] = ()
    """What an expression names the fields by."""

    collated: bool = False
    """Whether this is a string that is compared otherwise than by its bytes."""

    opaque: bool = False
    """Whether this is a user-defined type: Spark's JSON writer sees its storage, an expression does not."""

    has_default: bool = False
    """Whether the column or field is declared with a default, for which the JSON writer writes its nulls."""

    def holds(self, *kinds: str) -> bool:
        """Whether this type, or one inside it at any depth, is of one of ``kinds``."""
        return self.has(lambda t: t.kind in kinds)

    def has(self, test: Callable[[SparkType], bool]) -> bool:
        """Whether this type, or one inside it at any depth, passes a test."""
        return test(self) or any(t.has(test) for t in self.inside)

    @property
    def accessible(self) -> bool:
        """Whether an expression can name every field by its own name.

        Spark resolves a field without regard to case unless the session says otherwise, and so cannot tell
        ``a`` from ``A``. A field's declared default stays with it under its own name, not under another.
        """
        return can_be_named(self.fields) and all(t.accessible and not t.has_default for t in self.inside)

    def cast(self) -> SparkType:
        """Return the type that a value has once it is cast to ``sql``: the same but for the accessors."""
        return replace(
            self,
            inside=tuple(replace(t.cast(), has_default=False) for t in self.inside),
            accessors=tuple(f"f{n}" for n in range(len(self.fields))),
        )


def can_be_named(names: Sequence[str]) -> bool:
    """Return whether each name, in backquotes, names one thing in every session.

    Some compare names without regard to case, some take what is in backquotes for a regular expression.
    """
    plain = all(name.isascii() and name.isidentifier() for name in names)
    return plain and len({name.lower() for name in names}) == len(names)


def spark_columns(schema: Any) -> list[tuple[str, SparkType]]:
    """Return name and type of each column of a pyspark ``StructType``, in its order.

    Raises HashError for a type that rows-v1 does not define, for two columns of one name, and for a name
    that is not valid Unicode.
    """
    for name, count in Counter(field.name for field in schema.fields).items():
        if count > 1:
            raise HashError(
                f"{count} columns have this name, and a row's line has one value a name: rename or drop some",
                column=name,
            )
    return [(_name(field), _column_type(field)) for field in schema.fields]


def _column_type(field: Any) -> SparkType:
    try:
        return _field_type(field, "")
    except _UnsupportedError as e:
        raise HashError(e.reason, column=field.name, type_name=field.dataType.simpleString()) from None


class _UnsupportedError(Exception):
    def __init__(self, path: str, what: str) -> None:
        self.reason = f"at {path}: {what}" if path else what
        super().__init__(self.reason)


def _name(field: Any) -> str:
    name = str(field.name)
    try:
        name.encode()
    except UnicodeEncodeError as e:
        raise HashError(f"the name of a column or field is not valid Unicode ({name!r}); rename it") from e
    return name


def _field_type(field: Any, path: str) -> SparkType:
    return replace(_type(field.dataType, path), has_default=_DEFAULT in (field.metadata or {}))


def _type(t: Any, path: str) -> SparkType:
    """Read ``t``, which stands at ``path`` inside its column (``.field`` and ``[]`` steps, for messages)."""
    classes = {c.__name__ for c in type(t).__mro__}
    if "UserDefinedType" in classes:
        return replace(_type(t.sqlType(), path), opaque=True)
    if "ArrayType" in classes:
        item = _type(t.elementType, path + "[]")
        return SparkType("list", f"list<{item.name}>", f"array<{item.sql}>", (item,))
    if "MapType" in classes:
        return _map_type(t, path)
    if "StructType" in classes:
        return _struct_type(t, path)
    if "DecimalType" in classes:
        name = f"decimal({t.precision},{t.scale})"
        return SparkType("decimal", name, name)
    for name, (canonical, sql) in _FLAT.items():
        if name in classes:
            # Collations exist from Spark 4.0 on.
            collated = canonical == "string" and getattr(t, "collation", "UTF8_BINARY") != "UTF8_BINARY"
            return SparkType(canonical, canonical, sql, collated=collated)
    if "TimeType" in classes:
        raise _UnsupportedError(
            path,
            f"{t.simpleString()} of Spark is not hashed: its JSON writer leaves digits out; cast it to text, "
            "or hash the rows as Arrow (toArrow)",
        )
    raise _UnsupportedError(
        path,
        f"{t.simpleString()} has no exact canonical text in rows-v1; convert it to a type that has one (an "
        "integer, text) before it is stored",
    )


def _map_type(t: Any, path: str) -> SparkType:
    key, value = _type(t.keyType, path + "{key}"), _type(t.valueType, path + "{value}")
    if key.kind in {"binary", "struct", "list", "map"}:
        raise _UnsupportedError(path, f"map keys of type {key.name} have no exact canonical text")
    return SparkType("map", f"map<{key.name},{value.name}>", f"map<{key.sql},{value.sql}>", (key, value))


def _struct_type(t: Any, path: str) -> SparkType:
    names = []
    for field in t.fields:
        try:
            names.append(_name(field))
        except HashError as e:
            raise _UnsupportedError(path, e.reason) from e
    for name, count in Counter(names).items():
        if count > 1:
            raise _UnsupportedError(
                path, f"two fields of a struct are named {name!r}; one left out as null could not be told"
            )
    inside = tuple(_field_type(field, f"{path}.{field.name}") for field in t.fields)
    canonical = ",".join(f"{quoted_name(name)}:{i.name}" for name, i in zip(names, inside, strict=True))
    sql = ",".join(f"f{n}:{i.sql}" for n, i in enumerate(inside))
    return SparkType("struct", f"struct<{canonical}>", f"struct<{sql}>", inside, tuple(names), tuple(names))
