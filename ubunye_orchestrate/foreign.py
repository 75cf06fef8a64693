"""What another library's exception says, without the cells and the secrets that it quotes.

Arrow, Polars, DuckDB, pandas and Spark put the value that they could not take into their messages, and those
messages go into records, events and logs, which hold no data. What helps is kept: the kind of error, Spark's
error class, columns and types. What is put in quotes, numbers, and texts that users wrote themselves are not.
"""

from __future__ import annotations

import re

from ubunye_orchestrate.masking import MASK, mask_text

__all__ = ["is_foreign", "said", "without_values"]

_LIBRARIES = frozenset(
    # Some of their exceptions stand in a module without the library's name.
    ("_duckdb", "_internal", "deltalake", "duckdb", "numpy", "pandas", "polars", "py4j", "pyarrow", "pyspark")
)
_LONGEST = 2000

_CLASS = re.compile(r"\[([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:\.[A-Z0-9_]+)*)\]")
_STATE = re.compile(r"SQLSTATE: ([0-9A-Z]{5})")
# By SQL's standard: wrong data, broken constraints, what users' functions raised, what users raised.
_STATES_OF_DATA = ("21", "22", "23", "38", "39", "P0")
# Classes of errors that have no state, or one of another class, and quote cells or users' texts.
_CLASSES_OF_DATA = ("USER_RAISED", "MALFORMED", "CAST", "FAILED_EXECUTE_UDF", "DELTA_REPLACE_WHERE", "PYTHON")
_WORDS_OF_PLANS = ("NOT_FOUND", "UNRESOLVED", "SYNTAX", "UNSUPPORTED", "MISMATCH", "DELTA", "CONNECT")
_SQL_TYPE = re.compile(
    r"\"((?:TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL|STRING|CHAR|VARCHAR|BINARY|BOOLEAN|DATE|TIME|TIMESTAMP"
    r"|TIMESTAMP_NTZ|INTERVAL|VARIANT|VOID|ARRAY|MAP|STRUCT)(?:\([\d, ]*\)|<[\w<>,: ()]*>)?)\""
)
# What a JVM's or a Python worker's exception says after its name, unless it is of Spark or of files.
_RAISED = re.compile(
    r"(?<![\w.])((?!org\.apache\.|io\.delta\.|java\.(?:io|net|nio)\.)"
    r"(?:[a-z]\w*\.)+(?=[A-Z])[\w$]*(?:Exception|Error)): (.*)",
    re.DOTALL,
)
_FILE = re.compile(r"\b(?:abfss?|dbfs|file|gs|hdfs|s3a?|wasbs?):/[^\s'\"`,;)]+")
# Py4J's own words, the JVM's stack, and the query that we made.
_CALLING = re.compile(r"^An error occurred while calling [\w.]+\n?: ")
_NOISE = re.compile(r"\n+(JVM stacktrace:|== SQL|\s*at [\w.$]+\(|Driver stacktrace:)")
_CAUSE = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_TRACEBACK = re.compile(
    r"\s*(?:Please see the stack trace below\.?)?\s*Traceback \(most recent call last\):\n"
)
_LAST_RAISED = re.compile(r"^((?:\w+\.)*\w*(?:Error|Exception|Interrupt))\b(?:: (.*))?$", re.MULTILINE)

# Arrow gives the whole line, or an object as it prints itself.
_WHOLE = re.compile(r"(Could not convert ).*( with type )|(CSV parse error: [^:]*).*", re.DOTALL)
# Names stand in quotes too: of columns and types.
_NAMED = (
    re.compile(r"(?i)\b(?:columns?|field|fields|named?|module)\s+(?:'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`)"),
    re.compile(r"(?i)\b(?:dtype|type|from|to)\s+`[\w\[\]<>(), ]*`"),
    re.compile(r"\b\w+\(\d+(?:, ?-?\d+)?\)"),
    re.compile(r"\ba '\w+' object\b|`\w+\(?\)?`(?= (?:to|if|instead))"),
    _SQL_TYPE,
)
_BACKQUOTED = re.compile(r"`[^`\n]*`")
_ASIDE = re.compile("\x00(\\d+)\x00")
# From the first quote to the last: a value may have quotes and line breaks itself.
_QUOTED = re.compile(r"(?<!\w)(['\"`])(?:.*\1(?!\w)|.*\Z)", re.DOTALL)
_NUMBER = re.compile(
    r"(?<![\w.@/#\x00-])(?<!number )(?<!\w\()(?<!status )(?<!line )(?<!stage )(?<!Task )(?<!task )(?<!TID )"
    r"(?<!executor )(?<!version )(?<!code )(?<!SQLSTATE: )(?<!failed )[-+]?\d[\d.,:_eE+-]*(?<![.,:])(?!\w)"
)


def is_foreign(module: str) -> bool:
    """Tell an exception's module, or its name with the module, that is of a library that handles tables."""
    return module.partition(".")[0] in _LIBRARIES


def said(error: BaseException) -> str:
    """Return ``Type: message`` on one line, without values and secrets; the type alone for no message."""
    if isinstance(error, OSError) and error.errno is not None:
        return mask_text(f"{type(error).__name__}: {error}")
    texts = [one for one in error.args if isinstance(one, str)]
    # Arrow gives several messages at times, which would print as a tuple.
    text = "; ".join(without_values(one) for one in texts) if len(texts) > 1 else without_values(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def without_values(text: str) -> str:
    """Return what a message says first, and the last cause that it names, without values and secrets."""
    causes = _CAUSE.findall(text)
    said = _CALLING.sub("", _NOISE.split(text.strip(), maxsplit=1)[0]).strip()
    text = _without_values(said)
    if causes and causes[-1] not in said:
        text += f" (caused by: {_without_values(causes[-1])})"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."


def _without_values(text: str) -> str:
    text, raised = _without_traceback(text)
    found = _CLASS.search(text)
    if found is not None and _about_data(found.group(1), text):
        text = _class_alone(found.group(1), text)
    else:
        text = _scrubbed(_RAISED.sub(_without_message, text))
    return mask_text((text + raised).strip())


def _without_message(raised: re.Match[str]) -> str:
    """Return an exception's name, and the file that it is about."""
    file = _FILE.search(raised[2])
    return f"{raised[1]}: {file.group()}" if file is not None else raised[1]


def _about_data(name: str, text: str) -> bool:
    state = _STATE.search(text)
    if name.startswith(_CLASSES_OF_DATA):
        return True
    if state is None:
        # Spark 3.5 does not say it.
        return not any(word in name for word in _WORDS_OF_PLANS)
    return state.group(1).startswith(_STATES_OF_DATA)


def _class_alone(name: str, text: str) -> str:
    types = dict.fromkeys(_SQL_TYPE.findall(text))
    state = _STATE.search(text)
    told = [f"types {', '.join(types)}"] if types else []
    told += [f"SQLSTATE {state.group(1)}"] if state is not None else []
    return f"[{name}]" + (f" ({'; '.join(told)})" if told else "")


def _without_traceback(text: str) -> tuple[str, str]:
    """Split a Python worker's traceback off; return what was raised there, by its name."""
    said, *traceback = _TRACEBACK.split(text, maxsplit=1)
    last = _LAST_RAISED.findall(traceback[0]) if traceback else []
    if not last:
        return said, ""
    # What is not installed is no data.
    missing = [f"{name}: {message}" for name, message in last if name == "ModuleNotFoundError"]
    return said, f" ({missing[-1] if missing else last[-1][0]})"


def _scrubbed(text: str) -> str:
    text = _WHOLE.sub(lambda m: f"{m[1]}{MASK}{m[2]}" if m[1] else m[3], text).partition("\n")[0]
    kept: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        kept.append(match.group())
        return f"\x00{len(kept) - 1}\x00"

    # In Spark's messages names stand in backquotes, and nothing else does.
    named = (*_NAMED, _BACKQUOTED) if _CLASS.search(text) else _NAMED
    for name in named:
        text = name.sub(put_aside, text)
    text = _NUMBER.sub(MASK, _QUOTED.sub(MASK, text))
    return _ASIDE.sub(lambda m: kept[int(m[1])], text)
