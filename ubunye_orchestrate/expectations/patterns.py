r"""Patterns that mean the same to every engine: RE2's syntax, without what others read differently.

RE2 has no lookaround, backreferences, atomic groups or possessive quantifiers. Refused as well, since RE2,
Rust's, Java's and Python's readers differ: ``\b``, ``\p`` and other letters, flags but ``(?i)`` and ``(?s)``
in front, named groups, and in brackets a ``[``, ``&&``, ``--``, ``~~`` or a negated class. ``\d``, ``\w``
and ``\s`` are ASCII, as in RE2; ``^`` and ``$`` are the start and the end of the whole value.
"""

from __future__ import annotations

import re

from ubunye_orchestrate.errors import ConfigurationError

__all__ = ["checked_pattern", "java_pattern", "plain_pattern"]

_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_FLAGS = re.compile(r"\(\?([is]+)\)")
_CONTROL = "tnrf"


def checked_pattern(pattern: str) -> str:
    """Return the pattern if it is one that every engine reads alike. Raises ConfigurationError else."""
    if not isinstance(pattern, str):
        raise ConfigurationError(f"expect.matches got {pattern!r} as its pattern; expected a text")
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = plain_pattern(pattern)
    try:
        # Alone too: in brackets of ours, one of its own that does not close would close ours.
        for one in (pattern, whole):
            pc.match_substring_regex(pa.array([""]), one)
    except pa.ArrowException as e:
        raise _refused(pattern, str(e)) from e
    return pattern


def plain_pattern(pattern: str) -> str:
    """Return the pattern for a whole value, as RE2 (Arrow, DuckDB) and Rust (Polars) read it."""
    flags, body = _flags_apart(pattern)
    return f"{f'(?{flags})' if flags else ''}\\A(?:{_spelled_out(pattern, body)})\\z"


def java_pattern(pattern: str) -> str:
    """Return the pattern for a whole value, as Java (Spark) reads it."""
    flags, body = _flags_apart(pattern)
    # ``d``: only \n ends a line; ``u``: case is folded beyond ASCII, as RE2 does.
    flags = "d" + flags.replace("i", "iu")
    return f"(?{flags})\\A(?:{_spelled_out(pattern, body)})\\z"


def _flags_apart(pattern: str) -> tuple[str, str]:
    found = _FLAGS.match(pattern)
    return (found[1], pattern[found.end() :]) if found else ("", pattern)


def _spelled_out(pattern: str, body: str) -> str:
    """Return the pattern with every class and anchor in a form that no engine reads in a way of its own."""
    out: list[str] = []
    at, in_brackets = 0, False
    while at < len(body):
        sign, rest = body[at], body[at + 1 :]
        if sign == "\\":
            if in_brackets and rest[:1] in _CLASSES and (out[-1] == "-" or re.match("-[^]]", rest[1:])):
                raise _refused(pattern, f"'-' beside \\{rest[0]} in brackets; escape it with a backslash")
            out.append(_escape(pattern, rest[:1], in_brackets))
            at += 2
            continue
        if in_brackets:
            if sign == "[" or body[at : at + 2] in ("&&", "--", "~~"):
                raise _refused(pattern, f"{body[at : at + 2]!r} in brackets; escape it with a backslash")
            in_brackets = sign != "]"
        elif sign == "[":
            in_brackets = True
            # A bracket right behind the opening is a sign of its own to some and the end to others.
            if re.match(r"\^?\]", rest):
                raise _refused(pattern, "']' behind '['; escape it with a backslash")
            if rest.startswith("^"):
                out.append("[")
                sign, at = "^", at + 1
        elif sign == "{" and not re.match(r"\d+(,\d*)?\}", rest):
            raise _refused(pattern, "a '{' that is no count; escape it with a backslash")
        elif sign in "^$":
            sign = "\\A" if sign == "^" else "\\z"
        elif sign == "(" and rest.startswith("?") and not rest.startswith("?:"):
            raise _refused(pattern, f"({rest[:2]}…; groups are (…) or (?:…), flags (?i) and (?s) in front")
        out.append(sign)
        at += 1
    return "".join(out)


def _escape(pattern: str, letter: str, in_brackets: bool) -> str:
    if letter.lower() in _CLASSES and letter:
        signs = _CLASSES[letter.lower()]
        if letter.islower():
            return signs if in_brackets else f"[{signs}]"
        if not in_brackets:
            return f"[^{signs}]"
    elif letter and (letter in _CONTROL or (letter.isascii() and not letter.isalnum())):
        return "\\" + letter
    where = " in brackets" if in_brackets else ""
    raise _refused(pattern, f"\\{letter}{where}")


def _refused(pattern: str, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"expect.matches got the pattern {pattern!r}, with {what}; expected the part of RE2's syntax that "
        "every engine reads alike: characters, ., [a-z], \\d \\w \\s, (…), (?:…), |, *, +, ?, {m,n}; no "
        "lookaround, no backreference"
    )
