"""Values that a type admits and rows-v1 does not define: found in the same pass as the hash."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from ubunye_orchestrate.hashing.spark.sql import any_of
from ubunye_orchestrate.hashing.spark.types import SparkType
from ubunye_orchestrate.hashing.spark.values import field_accesses, positive_zero

__all__ = ["ValueChecks"]

_Check = Callable[[str, SparkType], "str | None"]


class ValueChecks:
    """Conditions on values; each is null or false where there is nothing to object."""

    def __init__(self, spark_version: int) -> None:
        """Take Spark's major version: 4 has a function that looks at a string's bytes."""
        self._has_validity = spark_version >= 4
        self._variables = count()

    def invalid_text(self, x: str, t: SparkType) -> str | None:
        """Return whether a value holds a string that is not valid UTF-8; None where it cannot.

        Spark's JSON writer puts a replacement character in the place of such bytes.
        """
        if t.kind == "string":
            if self._has_validity:
                return f"not is_valid_utf8({x})"
            return f"not (encode({x}, 'UTF-8') <=> cast({x} as binary))"
        return self._anywhere(x, t, self.invalid_text)

    def equal_keys(self, x: str, t: SparkType) -> str | None:
        """Return whether a value holds a map of which two keys have the same text; None where it cannot.

        Spark forbids them where it builds a map itself, not in one that it reads.
        """
        inside = self._anywhere(x, t, self.equal_keys)
        if t.kind != "map":
            return inside
        key = t.inside[0]
        variable = self._variable()
        bare = f"collate({variable}, 'UTF8_BINARY')" if key.collated else positive_zero(variable, key)
        keys = f"map_keys({x})"
        if bare != variable:
            keys = f"transform({keys}, {variable} -> {bare})"
        condition = f"size(array_distinct({keys})) <> size({keys})"
        return condition if inside is None else any_of([condition, inside])

    def _anywhere(self, x: str, t: SparkType, check: _Check) -> str | None:
        """Return whether a condition holds for what is inside a value."""
        places = {
            "list": lambda: [x],
            "map": lambda: [f"map_keys({x})", f"map_values({x})"],
            "struct": lambda: field_accesses(x, t),
        }.get(t.kind, list)()
        conditions = []
        for place, inside in zip(places, t.inside, strict=True):
            variable = self._variable()
            condition = check(place if t.kind == "struct" else variable, inside)
            if condition is not None:
                within = condition if t.kind == "struct" else f"exists({place}, {variable} -> {condition})"
                conditions.append(within)
        return any_of(conditions) if conditions else None

    def _variable(self) -> str:
        return f"w{next(self._variables)}"
