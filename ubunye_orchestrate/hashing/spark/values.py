"""One value to its text, for where Spark's JSON writer alone does not give the text of rows-v1.

Two forms. ``writable`` turns a value into one that the JSON writer writes right: maps sorted by key, and in
sessions of the legacy calendar dates and timestamps as strings. ``text`` writes the text itself, for columns
with floats on a JVM that writes some of them with too many digits: those are put between marks, for
``floats`` to write them anew. What holds no float is left to the JSON writer there too.
"""

from __future__ import annotations

from itertools import count

from ubunye_orchestrate.hashing.canonical import json_string
from ubunye_orchestrate.hashing.spark.session import JsonWriter
from ubunye_orchestrate.hashing.spark.sql import any_known, case, concat, json_text, literal
from ubunye_orchestrate.hashing.spark.types import SparkType

__all__ = [
    "FLOATS",
    "MARK",
    "TIMES",
    "ValueTexts",
    "field_accesses",
    "may_hold_unsafe_float",
    "members_of_floats",
    "one_may_be_unsafe",
    "positive_zero",
    "without_last",
]

FLOATS = ("float32", "float64")
"""Kinds that a JVM before 19 writes wrong."""

TIMES = ("date", "timestamp")
"""Kinds that the legacy calendar writes wrong."""

MARK = "\x01"
"""Stands on both sides of a float that is to be written anew; no JSON text has a control character."""

_DAY = 86_400_000_000  # microseconds

# The texts of all JVMs agree in between: for floats found by trying all of them, for doubles it is the range
# that is written plain, and on to where they are no longer exact integers.
_SAFE_FROM = {"float32": "0.0000001D", "float64": "0.001D"}
_SAFE_BELOW = {"float32": "16777216D", "float64": "9007199254740992D"}  # 2**24, 2**53
_LARGEST = {"float32": "3.4028234663852886E38D", "float64": "1.7976931348623157E308D"}


class ValueTexts:
    """Expressions of values as one session needs them."""

    def __init__(self, writer: JsonWriter) -> None:
        """Take what the session's JSON writer writes right."""
        self._writer = writer
        self._variables = count()

    # ------------------------------------------------------------------ for the JSON writer

    def writable(self, x: str, t: SparkType) -> str:
        """Return ``x`` as the JSON writer writes it right (but for floats); ``x`` itself where it does so."""
        if not self.rewrites(t):
            return x
        if t.kind == "date":
            return _date_text(x)
        if t.kind == "timestamp":
            return _timestamp_text(x)
        if t.kind == "list":
            item = self._variable()
            return f"transform({x}, {item} -> {self.writable(item, t.inside[0])})"
        if t.kind == "map":
            return self._writable_map(x, t)
        fields = ", ".join(
            f"{literal(name)}, {self.writable(field, inside)}"
            for name, field, inside in zip(t.fields, field_accesses(x, t), t.inside, strict=True)
        )
        return f"if({x} is null, null, named_struct({fields}))"

    def rewrites(self, t: SparkType) -> bool:
        """Return whether values of a type must be rewritten for the JSON writer."""
        if t.kind == "map" or t.accessors != t.fields or any(inside.has_default for inside in t.inside):
            return True
        return (t.kind in TIMES and not self._writer.times) or any(map(self.rewrites, t.inside))

    def _writable_map(self, x: str, t: SparkType) -> str:
        key, value = t.inside
        entry = self._variable()
        new_key = positive_zero(f"{entry}.key", key)
        new_value = self.writable(f"{entry}.value", value)
        entries = entries_sorted(x, t)
        if (new_key, new_value) != (f"{entry}.key", f"{entry}.value"):
            entries = f"transform({entries}, {entry} -> struct({new_key} as key, {new_value} as value))"
        return f"map_from_entries({entries})"

    # ------------------------------------------------------------------ by hand

    def text(self, x: str, t: SparkType, *, anew: str | None = None) -> str:
        """Return the text of a value; null for null.

        ``anew`` is the text of a float as it should be, where there is an expression of it.
        """
        if t.kind in FLOATS:
            in_quotes = concat(literal('"'), f"cast({x} as string)", literal('"'))
            finite = f"abs({x}) <= {_LARGEST[t.kind]}"  # NaN is greater than every number
            return case((finite, anew or self._number_text(x, t)), otherwise=in_quotes)
        if not t.holds(*FLOATS):
            return self._text_of_json_writer(x, t)
        if t.kind == "list":
            item = self._variable()
            items = f"transform({x}, {item} -> {_or_null(self.text(item, t.inside[0]))})"
            return concat(literal("["), f"array_join({items}, ',')", literal("]"))
        if t.kind == "map":
            return self._map_text(x, t)
        members = [
            self.member(name, field, inside)
            for name, field, inside in zip(t.fields, field_accesses(x, t), t.inside, strict=True)
        ]
        return f"if({x} is null, null, {json_object(members)})"

    def member(self, name: str, x: str, t: SparkType, *, anew: str | None = None) -> str:
        """Return a name and a value as they stand in a JSON object; null where the value is."""
        return concat(literal(json_string(name) + ":"), self.text(x, t, anew=anew))

    def _text_of_json_writer(self, x: str, t: SparkType) -> str:
        if t.kind == "bool" or t.kind.startswith("int"):
            return f"cast({x} as string)"
        if t.kind in {"list", "map", "struct"} and not t.opaque:
            return json_text(self.writable(x, t))
        written = without_last(json_text(f"array({self.writable(x, t)})"), "]")
        return f"if({x} is null, null, substring({written}, 2))"

    def _map_text(self, x: str, t: SparkType) -> str:
        key, value = t.inside
        entry = self._variable()
        texts = concat(
            *(self._key_text(f"{entry}.key", key), "':'", _or_null(self.text(f"{entry}.value", value)))
        )
        joined = f"array_join(transform({entries_sorted(x, t)}, {entry} -> {texts}), ',')"
        return concat(literal("{"), joined, literal("}"))

    def _key_text(self, x: str, t: SparkType) -> str:
        if t.kind in FLOATS:
            return concat(literal('"'), self._number_text(positive_zero(x, t), t), literal('"'))
        return f"substring({without_last(json_text(f'map({x}, 0)'), ':0}')}, 2)"

    def _number_text(self, x: str, t: SparkType) -> str:
        # The bits, and the text of the double of equal value: on every JVM it reads back to that double.
        as_double = f"cast(cast({x} as double) as string)"
        marked = concat(literal(MARK + t.kind[-2:]), as_double, literal(MARK))
        return case((_is_unsafe(x, t), marked), otherwise=f"cast({x} as string)")

    def _variable(self) -> str:
        return f"v{next(self._variables)}"


def members_of_floats(names: list[str], texts: str) -> str:
    """Return names and floats as they stand in a JSON object, each with a comma before it; nulls left out.

    ``texts`` is an array of the floats' texts, without quotes where they are not finite.
    """
    starts = ", ".join(literal(f",{json_string(name)}:") for name in names)
    quoted = concat(literal('"'), "text", literal('"'))
    text = case(("text in ('NaN', 'Infinity', '-Infinity')", quoted), otherwise="text")
    members = f"zip_with(array({starts}), {texts}, (start, text) -> {concat('start', text)})"
    return f"array_join({members}, '')"


def may_hold_unsafe_float(x: str, t: SparkType) -> str | None:
    """Return whether a value may hold a float that a JVM before 19 may write wrong; None where it cannot.

    Never false or null where it does.
    """
    if t.kind in FLOATS:
        return _is_unsafe(x, t)
    if t.kind == "list":
        return _list_may_hold_unsafe_float(x, t.inside[0])
    if t.kind == "map":
        parts = zip((f"map_{part}({x})" for part in ("keys", "values")), t.inside, strict=True)
        return any_known(_list_may_hold_unsafe_float(part, item) for part, item in parts)
    return any_known(map(may_hold_unsafe_float, field_accesses(x, t), t.inside))


def one_may_be_unsafe(xs: list[str], kind: str) -> str:
    """Return whether one of some floats of a kind may be one that a JVM before 19 writes wrong.

    Never false or null where one is; true for those that are not finite. Said of all at once, since a JVM
    does not compile a method of more than 8,000 bytes, and that is what a condition of each soon comes to.
    """
    sizes = ", ".join(f"if({x} = 0, 1D, abs({x}))" for x in xs)
    least, greatest = (f"least({sizes})", f"greatest({sizes})") if len(xs) > 1 else (sizes, sizes)
    return f"{least} < {_SAFE_FROM[kind]} or {greatest} >= {_SAFE_BELOW[kind]}"


def _list_may_hold_unsafe_float(x: str, item: SparkType) -> str | None:
    if item.kind in FLOATS:
        # Zeros and negative numbers too: without a lambda there is no better telling (see ``checks``).
        return f"array_min({x}) < {_SAFE_FROM[item.kind]} or array_max({x}) >= {_SAFE_BELOW[item.kind]}"
    if item.kind == "struct":
        return any_known(map(_list_may_hold_unsafe_float, field_accesses(x, item), item.inside))
    return "true" if item.holds(*FLOATS) else None


def _is_unsafe(x: str, t: SparkType) -> str:
    """Return whether a JVM before 19 may write a double or float wrong; null for null."""
    size = f"abs({x})"
    unsafe = f"{size} < {_SAFE_FROM[t.kind]} or {size} >= {_SAFE_BELOW[t.kind]}"
    return f"({unsafe}) and {size} > 0 and {size} <= {_LARGEST[t.kind]}"


def positive_zero(x: str, t: SparkType) -> str:
    """Return a map's key with -0.0 as 0.0 (Spark 4 does so when a map is built, Spark 3.5 does not)."""
    return f"({x} + cast(0 as {t.sql}))" if t.kind in FLOATS else x


def without_last(json: str, end: str) -> str:
    """Return JSON text without its end (said once in the expression, so that it is computed once)."""
    # A control character stands nowhere in JSON text.
    return f"replace({concat(json, literal(MARK))}, {literal(end + MARK)}, '')"


def json_object(members: list[str]) -> str:
    """Return a JSON object of members, of which those that are null are left out."""
    joined = f"concat_ws(',', {', '.join(members)})" if members else "''"
    return concat(literal("{"), joined, literal("}"))


def field_accesses(x: str, t: SparkType) -> list[str]:
    """Return an expression for each field of a struct."""
    return [f"{x}.`{accessor}`" for accessor in t.accessors]


def entries_sorted(x: str, t: SparkType) -> str:
    """Return the entries of a map sorted by key: by value, strings by code point, NaN last."""
    key, value = t.inside
    if not key.collated and not value.holds("map"):
        return f"sort_array(map_entries({x}))"
    # A map has no order to sort by; that of a collation is another one.
    left, right = ("cast(p.key as binary)", "cast(q.key as binary)") if key.collated else ("p.key", "q.key")
    order = case((f"{left} < {right}", "-1"), (f"{left} > {right}", "1"), otherwise="0")
    return f"array_sort(map_entries({x}), (p, q) -> {order})"


def _or_null(text: str) -> str:
    return f"coalesce({text}, 'null')"


# ---------------------------------------------------------------------- dates by arithmetic


def _date_text(date: str) -> str:
    year = f"year({date})"
    digits = f"cast(abs({year}) as string)"
    sign = case((f"{year} < 0", "'-'"), (f"{year} > 9999", "'+'"), otherwise="''")
    return concat(
        *(sign, f"lpad({digits}, greatest(4, length({digits})), '0')"),
        *("'-'", _padded(f"month({date})"), "'-'", _padded(f"day({date})")),
    )


def _timestamp_text(timestamp: str) -> str:
    microseconds = f"unix_micros({timestamp})"
    # div rounds towards zero; the day of an instant before the epoch begins before it.
    days = f"{microseconds} div {_DAY} - if({microseconds} % {_DAY} < 0, 1, 0)"
    of_day = f"pmod({microseconds}, {_DAY})"
    return concat(
        _date_text(f"date_from_unix_date(cast({days} as int))"),
        *("'T'", _padded(f"{of_day} div 3600000000")),
        *("':'", _padded(f"{of_day} div 60000000 % 60")),
        *("':'", _padded(f"{of_day} div 1000000 % 60")),
        *("'.'", _padded(f"{of_day} % 1000000", 6), "'Z'"),
    )


def _padded(number: str, width: int = 2) -> str:
    return f"lpad(cast({number} as string), {width}, '0')"
