"""Secrets that follow their names in a text, in whatever form somebody wrote the two down."""

from __future__ import annotations

import re
from typing import NamedTuple

from ubunye_orchestrate.secret_names import WORD, names_a_secret

__all__ = ["MASK", "mask_pairs"]

MASK = "***"

# Every pattern from here on has one start in a run of its characters, or a bound: the time stays linear.
_QUOTE = r"""(?:\\*["'`]|&(?:quot|apos|\#3[49]);|%(?:25)*2[27])"""
_CLOSED = rf"(?P<closed>{_QUOTE})?"
_NAME = re.compile(
    r"""(?<![\w.-])(?:
        (?P<sql>(?:IDENTIFIED|(?i:user)\s+\S{1,100}\s+(?i:identified))\s+
            (?i:(?:with\s+\S{1,100}\s+(?:by|as)|by)\s+(?:(?:values|password)\s+)?))
        |[\w.-]+)""",
    re.VERBOSE,
)
# What sticks to a name where a text was quoted: the letter of "\n", the digits of "%26".
_ESCAPE = re.compile(r"(?<=\\)[nrt]|(?<=%)(?:25)*[0-9A-Fa-f]{2}")
# What stands before a name: a tag's beginning (not the "Seq<" of a "Seq<Token>"), a list's, a quote.
_BEFORE = re.compile(
    r"""(?:((?:(?<!\w)<|&lt;)(?:\w{1,30}:)?)|([(,]\s{0,9})?[bBrRuU]{0,2}(\\{0,30}["'`])?)\Z"""
)
# name=value, name: value, "name": "value", config["name"] := value, Map(name -> value), name%3Dvalue
_JOIN = re.compile(
    rf"{_CLOSED}(?:\]|%(?:25)*5D)?\s*(?:[!~]?=+>?|(?P<colon>:+)=?|<-|->|%(?:25)*3[AD](?:%20|\+)?)\s*",
    re.IGNORECASE,
)
# "name": "password", "value": "x" and <name>password</name><value>x</value>
_VALUE_FIELD = re.compile(
    rf"{_CLOSED}(?:\s*(?:,|</[\w:.-]{{1,60}}>))?\s*<?{_QUOTE}?value{_QUOTE}?\s*(?:[=:]|(?P<tag>>))\s*",
    re.IGNORECASE,
)
_TAG = re.compile(rf"{_CLOSED}(?:\s[^<>]{{0,200}})?(?:>|&gt;)")
_TAG_VALUE = re.compile(r"(?:<!\[CDATA\[)?(?:[^<&]|&(?!lt;))+(?=</|&lt;/)|[^\s<&]+")
_COMMA = re.compile(rf"{_QUOTE}\s*,\s*")
_SPACE = re.compile(rf"{_CLOSED}(?:[ \t]+|\()")
_PAIR_END = re.compile(r"\s*(?:,\s*)?(?:\)|\Z)")
_PASSWORD_NAME = re.compile(r"(?:password|passwd|passphrase|pwd)\Z", re.IGNORECASE)
# Behind an option these are a sentence's, not its value.
_SENTENCE = re.compile(
    r"(?:an?|and|are|argument|at|but|by|can(?:not)?|expect(?:s|ed)|for|from|has|if|in|invalid|is|must|needs?|not?"
    r"|of|on|option|or|required?s?|should|so|the|to|value|was|when|which|will|with)(?=[\s.,;:]|\Z)"
)
# "password_hash: string" is a schema, "password: str = 'x'" a value that has a type.
_TYPE = re.compile(
    r"(?:dtype(?=\(')|(?:large_)?(?:string|str|utf8|binary|bytes)|object|(?:var)?char|text|bool(?:ean)?|u?int\d*|integer"
    r"|bigint|float\d*|double|decimal\d*|date\d*|timestamp|datetime|categor(?:y|ical)|list|struct)(?:type\(\))?"
    r"(?:\s*\|\s*None)?(?:(?P<default>\s*=\s*)|(?=[\s,;\[<>)}\]\\\"'`]|\(\d|(?<=dtype)\(|\Z))",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"""(?:(?:Bearer|Basic)\s+)?(?:
        (?P<literal>(?:[brufBRUF]{1,2}|[NE])?)(?P<quote>\\*["'`]|&(?:quot|apos|\#3[49]);)
        |(?:\$|[A-Za-z_][\w.]*)?(?P<bracket>[\[({]))""",
    re.VERBOSE,
)
# So far from its beginning a quote closes whatever stands behind it: the time stays linear.
_ODD_QUOTE = 200
_NESTING = re.compile(r"""(?<!\\)\\*["'`]|[\[({\])}]""")
# A bracket, quote or comma within a value belongs to it, unless the next name or the end follows.
_BARE = re.compile(
    r"""(?:(?:Bearer|Basic)\s+)?(?:[^\s,;&)}\]"'`<\\]|<(?!/)|\\+(?![\\"'`])|[)}\]"'`](?=\w)
        |[,;&](?=[^\s,;&"'`)}\]\\])(?![\w.%-]{0,40}["'`]?\s?[=:]))+""",
    re.IGNORECASE | re.VERBOSE,
)
# Headers whose value is all that follows: a scheme and its parameters, several cookies.
_HEADER_VALUE = re.compile(r"""(?:"[^"\r\n]*(?:"|$)|'[^'\r\n]*(?:'|$)|[^"'\r\n)\]}])+""", re.MULTILINE)


class _Value(NamedTuple):
    start: int
    end: int
    masked: str = MASK
    begins: str = ""
    quoted: bool = False


def mask_pairs(text: str) -> str:
    """Return a text in which what belongs to a secret's name is ``***``; in time linear in its length."""
    out = []
    done = 0
    for name in _NAME.finditer(text):
        # What is no secret's is looked through for names too ("config: password=x").
        if name.start() >= done and (value := _value_of(text, name)) is not None:
            out += [text[done : value.start], value.masked]
            done = value.end
    return "".join(out) + text[done:]


def _value_of(text: str, found: re.Match[str]) -> _Value | None:
    """Return the secret that belongs to a name, if it is a secret's and has one."""
    name, at = found[0], found.end()
    if found["sql"]:
        return _value_at(text, at)
    if not names_a_secret(name):
        escape = _ESCAPE.match(text, found.start())
        name = text[escape.end() : at] if escape else ""
        if not names_a_secret(name):
            return None
    before = _BEFORE.search(text, max(0, found.start() - 40), found.start())
    tag, listed, quote = before.groups("") if before else ("", "", "")
    if join := _JOIN.match(text, at):
        return _joined(text, name, join, "" if join["closed"] else quote)
    if (field := _VALUE_FIELD.match(text, at)) and not field["tag"]:
        return _value_at(text, field.end())
    if (opened := field or _TAG.match(text, at)) and (field or opened["closed"] or tag):
        inside = _TAG_VALUE.match(text, opened.end())
        return inside and _Value(inside.start(), inside.end())
    if (comma := _COMMA.match(text, at)) and (value := _quoted_at(text, comma.end())):
        # '--password', 'x' and ('password', 'x'), while a list of columns has no values
        pair = listed[:1] == "(" and _PAIR_END.match(text, value.end)
        return value if pair or (name[0] == "-" and value.begins != "-") else None
    return _spaced(text, name, at, bool(listed))


def _joined(text: str, name: str, join: re.Match[str], within: str) -> _Value | None:
    at = join.end()
    if join["colon"] and (kind := _TYPE.match(text, at)):
        return _value_at(text, kind.end()) if kind["default"] else None
    header = WORD.findall(name)[-1].lower() in ("authorization", "cookie")
    if within and (header or name[0] == "-"):
        return _Value(at, _end_of_quoted(text, at, within))
    value = _value_at(text, at)
    if header and (value is None or not (value.quoted or value.begins in "([{")):
        rest = _HEADER_VALUE.match(text, at)
        return rest and _Value(at, at + len(rest[0].rstrip()))
    # "argument --token: expected one argument"
    return None if name[0] == "-" and join["colon"] and _SENTENCE.match(text, at) else value


def _spaced(text: str, name: str, at: int, listed: bool) -> _Value | None:
    """Return the value of ``--password x`` or of SQL's ``PASSWORD 'x'`` and ``PASSWORD('x')``."""
    space = _SPACE.match(text, at)
    # "unexpected token 'x'" is no clause of a statement
    clause = listed or name.isupper() or _PASSWORD_NAME.search(name)
    if space is None or not (name[0] == "-" or (clause and not space["closed"])):
        return None
    at = space.end()
    if value := _quoted_at(text, at):
        return value
    if name[0] != "-" or space["closed"] or text[at : at + 1] in "-([{|<" or _SENTENCE.match(text, at):
        return None
    value = _value_at(text, at)
    # "--token TOKEN" is how a usage names the value
    usage = value and text[at : value.end] == name.strip("-").replace("-", "_").upper()
    return None if usage else value


def _quoted_at(text: str, at: int) -> _Value | None:
    opening = _OPENING.match(text, at)
    return _value_at(text, at) if opening and opening["quote"] else None


def _value_at(text: str, at: int) -> _Value | None:
    opening = _OPENING.match(text, at)
    if opening is None:
        bare = _BARE.match(text, at)
        return bare and _Value(at, bare.end(), begins=text[at])
    if opening["bracket"]:
        end = _end_of_brackets(text, opening.start("bracket"))
        # "[***]" still is one value; a name before it may be the secret's own beginning.
        close = text[end - 1] if text[end - 1] in ")]}" else ""
        masked = f"{text[at]}{MASK}{close}" if text[at] in "([{" else MASK
        rest = _BARE.match(text, end) if text[end : end + 1].isalnum() else None
        return _Value(at, rest.end() if rest else end, MASK if rest else masked, text[at])
    quote, content = opening["quote"], opening.end()
    end = _end_of_quoted(text, content, quote)
    close = quote if text.startswith(quote, end) else ""
    masked = f"{opening['literal']}{quote}{MASK}{close}"
    return _Value(at, end + len(close), masked, text[content : content + 1], quoted=True)


def _end_of_quoted(text: str, at: int, quote: str) -> int:
    """Return where the quote closes that opens before ``at``, or else the line's end.

    ``quote`` has as many backslashes as texts it is quoted in ask for: ``\\"`` in JSON within JSON.
    """
    if quote[0] == "&":
        end = text.find(quote, at)
        return len(text) if end < 0 else end
    level, mark = len(quote) - 1, quote[-1]
    marks = re.compile(rf"(?<!\\)\\*{mark}")
    found = marks.search(text, at)
    while found is not None:
        escapes, end = len(found[0]) - 1, found.end()
        if escapes < level:
            return found.start()  # the text around it ends first
        if escapes % (2 * level + 2) == level:
            # A doubled one is SQL's for one, one before a letter is part of a value nobody escaped.
            doubled = level == 0 and text[end : end + 1] == mark
            near = end - at < _ODD_QUOTE and "\n" not in text[at:end]
            if not near or not (doubled or text[end : end + 1].isalnum()):
                return end - len(quote)
            end += doubled
        found = marks.search(text, end)
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _end_of_brackets(text: str, at: int) -> int:
    depth = 0
    while (found := _NESTING.search(text, at)) is not None:
        at = found.end()
        if found[0] in "([{":
            depth += 1
        elif found[0] in ")]}":
            depth -= 1
            if depth == 0:
                return at
        else:
            at = _end_of_quoted(text, at, found[0])
            at += len(found[0]) if text.startswith(found[0], at) else 0
    return len(text)
