"""Values that a type admits and rows-v1 does not define: found in the same pass as the hash."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from ubunye_orchestrate.hashing.spark.sql import any_known
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
            return self._is_invalid(x)
        if t.kind == "list":
            return self._invalid_text_in_list(x, t.inside[0])
        if t.kind == "map":
            keys, values = (f"map_{part}({x})" for part in ("keys", "values"))
            key, value = t.inside
            return any_known(
                [self._invalid_text_in_list(keys, key), self._invalid_text_in_list(values, value)]
            )
        return any_known(map(self.invalid_text, field_accesses(x, t), t.inside))

    def is_quick(self, t: SparkType) -> bool:
        """Return whether ``invalid_text`` of a type costs no more than a look through a row's line."""
        return t.kind == "string" and self._has_validity

    def _invalid_text_in_list(self, x: str, item: SparkType) -> str | None:
        # A lambda is interpreted, and all around it no longer compiled: not for what lists mostly hold.
        if item.kind == "string":
            return self._is_invalid(f"array_join({x}, ' ')")  # between two halves of a character too
        if item.kind == "struct":
            return any_known(map(self._invalid_text_in_list, field_accesses(x, item), item.inside))
        return self._exists(x, item, self.invalid_text)

    def _is_invalid(self, text: str) -> str:
        if self._has_validity:
            return f"not is_valid_utf8({text})"
        return f"not (encode({text}, 'UTF-8') <=> cast({text} as binary))"

    def equal_keys(self, x: str, t: SparkType) -> str | None:
        """Return whether a value holds a map of which two keys have the same text; None where it cannot.

        Spark forbids them where it builds a map itself, not in one that it reads.
        """
        if t.kind == "list":
            return self._exists(x, t.inside[0], self.equal_keys)
        if t.kind != "map":
            return any_known(map(self.equal_keys, field_accesses(x, t), t.inside))
        key, value = t.inside
        variable = self._variable()
        bare = f"collate({variable}, 'UTF8_BINARY')" if key.collated else positive_zero(variable, key)
        keys = f"map_keys({x})"
        if bare != variable:
            keys = f"transform({keys}, {variable} -> {bare})"
        in_values = self._exists(f"map_values({x})", value, self.equal_keys)
        return any_known([f"size(array_distinct({keys})) <> size({keys})", in_values])

    def _exists(self, x: str, item: SparkType, check: _Check) -> str | None:
        """Return whether a condition holds for an item of a list."""
        variable = self._variable()
        condition = check(variable, item)
        return None if condition is None else f"exists({x}, {variable} -> {condition})"

    def _variable(self) -> str:
        return f"w{next(self._variables)}"
