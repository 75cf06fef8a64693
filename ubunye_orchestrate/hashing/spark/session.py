"""What the JSON writer of one session writes as rows-v1 has it, found out by asking it.

Two things decide it, and neither is told by Spark's version. A JVM before 19 writes some doubles and floats
with too many digits; ``spark.sql.legacy.timeParserPolicy`` = ``LEGACY`` writes years before 1583 by another
calendar and drops the sign of years past 9999. The answer is computed from constants while the query is
planned: no job runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.spark.sql import json_text, literal

__all__ = ["SHORTEST_DOUBLE", "JsonWriter", "json_writer", "oldest_java", "shortest_text"]

_POLICY = "spark.sql.legacy.timeParserPolicy"

SHORTEST_DOUBLE = "2.8319178176563187E17"
"""A double of which a JVM before 19 writes one digit more."""

# Jackson carries the algorithm of JDK 19's Double.toString, whatever the JVM.
_SHORTEST_TEXT_CLASS = "com.fasterxml.jackson.core.io.NumberOutput"

_DOUBLES = (SHORTEST_DOUBLE, "2.0E23", "4.9E-324", "2.2250738585072014E-308", "5.684341886080802E-14")
_FLOATS = ("2.3271246E10", "1.1754944E-38", "1.4E-45", "3.4028235E38")
_DATES = {-719530: "-0001-12-30", -141428: "1582-10-14", 2932897: "+10000-01-01"}
_INSTANTS = {
    -62135596800000000: "0001-01-01T00:00:00.000000Z",
    -12219292800000001: "1582-10-14T23:59:59.999999Z",
    253402300800000001: "+10000-01-01T00:00:00.000001Z",
}
_TEXT = '\x00\x07\x0b\x1b\x1f\b\t\n\f\r"\\/\x7f\u2028\U0001f600'
_REST = (
    f"named_struct('b', X'{'fb' * 60}', 'd', cast(0.00000001 as decimal(38,8)), 'e', null, 'f', array(null), "
    f"'g', named_struct('h', null), 'm', map('k', null), 'n', timestamp_ntz'0001-02-03 04:05:06.78', "
    f"'o', true, 's', {literal(_TEXT)}, 'x', array(-0.0D, double('NaN'), double('-Infinity')))"
)
_REST_TEXT = (
    '{"b":"' + "+/v7" * 20 + '","d":1E-8,"f":[null],"g":{},"m":{"k":null},"n":"0001-02-03T04:05:06.780000",'
    '"o":true,"s":"\\u0000\\u0007\\u000B\\u001B\\u001F\\b\\t\\n\\f\\r\\"\\\\/\x7f\u2028\U0001f600",'
    '"x":[-0.0,"NaN","-Infinity"]}'
)


@dataclass(frozen=True)
class JsonWriter:
    """What a session's JSON writer writes right."""

    floats: bool
    """Every double and float; else only those that every JVM writes right (``values.one_may_be_unsafe``)."""

    times: bool
    """Every date and timestamp."""

    java_method: bool
    """Whether SQL may call a method of Java."""

    arrow: bool
    """Whether the Python of the executors is taken to have pyarrow."""

    spark_version: int
    """Spark's major version."""

    one_jvm: bool
    """Whether the executors are the driver: such a session's writer is that of every row."""


_asked: WeakKeyDictionary[Any, dict[str, JsonWriter]] = WeakKeyDictionary()


def json_writer(session: Any) -> JsonWriter:
    """Ask a session (the first time; its JVM stays) for the texts that are known to differ; runs no job.

    Raises HashError where the writer differs in a way that is not known, and so cannot be worked around.
    """
    policy = str(session.conf.get(_POLICY, "EXCEPTION"))
    answers = _asked.setdefault(session, {})
    if policy not in answers:
        answers[policy] = _ask(session)
    return answers[policy]


def _ask(session: Any) -> JsonWriter:
    # With the letter of the type: some sessions take 1E0 for a decimal.
    doubles = ", ".join(f"{x}D" for x in _DOUBLES)
    floats = ", ".join(f"cast({x}D as float)" for x in _FLOATS)
    dates = ", ".join(f"date_from_unix_date({days})" for days in _DATES)
    instants = ", ".join(f"timestamp_micros({microseconds})" for microseconds in _INSTANTS)
    lists = f"array({doubles})", f"array({floats})", f"array({dates})", f"array({instants})"
    # One row of constants, not none: a query without a FROM would run as a job.
    query = f"select {', '.join(map(json_text, (*lists, _REST)))} from values (1)"
    wrote_doubles, wrote_floats, wrote_dates, wrote_instants, wrote_rest = session.sql(query).collect()[0]
    if wrote_rest != _REST_TEXT:
        raise HashError(
            f"this session's JSON writer does not write the text of rows-v1: got {wrote_rest!r}, expected "
            f"{_REST_TEXT!r}; report it with the version of Spark ({session.version})"
        )
    floats_are_right = wrote_doubles == _bare(_DOUBLES) and wrote_floats == _bare(_FLOATS)
    return JsonWriter(
        floats=floats_are_right,
        times=wrote_dates == _quoted(_DATES.values()) and wrote_instants == _quoted(_INSTANTS.values()),
        java_method=not floats_are_right and _has_java_method(session),
        arrow=True,
        spark_version=int(session.version.split(".")[0]),
        one_jvm=re.fullmatch(r"local(\[.*\])?", session.conf.get("spark.master", "")) is not None,
    )


def oldest_java(writer: JsonWriter, session: Any) -> JsonWriter:
    """Return the writer of a session whose executors run a JVM before 19, though its driver does not."""
    return replace(writer, floats=False, java_method=_has_java_method(session))


def _bare(texts: Iterable[str]) -> str:
    return f"[{','.join(texts)}]"


def _quoted(texts: Iterable[str]) -> str:
    return _bare(f'"{text}"' for text in texts)


def shortest_text(number: str) -> str:
    """Return the text of a finite double or float by a method of Spark's own JSON library, on any JVM."""
    return f"java_method('{_SHORTEST_TEXT_CLASS}', 'toString', {number}, true)"


def _has_java_method(session: Any) -> bool:
    # Services that share a JVM between users refuse it.
    query = f"select {shortest_text(f'{SHORTEST_DOUBLE}D')} from values (1)"
    try:
        return bool(session.sql(query).collect()[0][0] == SHORTEST_DOUBLE)
    except Exception:  # noqa: BLE001 - whatever the refusal, there is another way
        return False
