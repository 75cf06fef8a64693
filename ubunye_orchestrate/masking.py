"""Secrets out of everything that is stored or shown: locations, messages, configuration, variables.

A secret is recognised by where it stands (the password of a URL, a value under a name such as ``api_token``),
by its shape (a bearer token, a private key) or because it is the value of an environment variable with such a
name. What is masked becomes ``***``, nothing of it remains. In doubt too much is masked: a message that says
less is better than a record that shows a password.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Mapping
from datetime import date, time
from typing import Any, NamedTuple
from urllib.parse import quote

__all__ = ["MASK", "is_secret_name", "mask_config", "mask_location", "mask_text", "mask_variables"]

MASK = "***"

# A name with one of these words is a secret's …
_SECRET_WORDS = frozenset(
    (
        *("password", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "token", "credential"),
        *("credentials", "authorization", "bearer", "cookie", "jwt", "sas", "sig", "signature", "apikey"),
        *("accesskey", "secretkey", "privatekey", "accountkey", "authtoken", "accesstoken"),
        *("connstr", "connstring", "connectionstring", "dbpass", "userpass", "sshpass", "storepass"),
        *("keypass", "dbpw"),
    )
)
# These only as a name's last word: db_pass, but not pass_rate or pat_id.
_SECRET_LAST_WORDS = frozenset(["pass", "pw", "cred", "creds", "pat"])
_SECRET_WORD_PAIRS = frozenset(
    (
        *itertools.product(("connection", "conn"), ("string", "str")),
        *itertools.product(("account", "keyfile"), ("json", "info", "dict")),
    )
)
_SECRET_ENDINGS = ("password", "passwd", "secret", "token")
# … unless its last word says that it is about the secret: token_url, secret_name, password_column.
_ABOUT_WORDS = frozenset(
    (
        *("column", "columns", "field", "fields", "name", "names", "count", "counts", "length", "size"),
        *("limit", "max", "min", "url", "uri", "endpoint", "host", "path", "type", "kind", "format"),
        *("policy", "index", "expiry", "expires", "ttl", "age", "version", "budget", "usage", "provider"),
        *("scope", "algorithm", "file", "files"),
    )
)
# "key" is a secret only after one of these, so that partition_key, primary_key and key_column stay.
_KEY_OWNERS = frozenset(
    (
        *("api", "access", "secret", "private", "account", "encryption", "signing", "ssh", "shared"),
        *("storage", "master", "auth", "service", "client", "app", "application", "subscription", "license"),
        *("deploy", "webhook", "rsa", "pgp", "gpg", "hmac", "aes", "consumer", "admin"),
    )
)
# As the whole name of a setting (s3fs takes ``key`` and ``secret``); in running text they are plain words.
_SECRET_SETTINGS = frozenset(["key", "auth", "tokens", "passwords"])

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

# user:password@ within the authority of a URL; the password may hold "@", as people paste it unquoted.
_URL_PASSWORD = re.compile(r"(://[^\s/@:\[]*:)[^\s/?#]*@")
# The same with "/", "?" or "#" in the password: what stands where a port would is no number.
_URL_ODD_PASSWORD = re.compile(r"(://[^\s/@:\[]+:)(?!\d{1,5}(?:[/?#\s]|\Z))[^\s@]{1,200}@")
# A lone user of a web address is a token (elsewhere it may be a container: abfss://container@account).
_URL_TOKEN = re.compile(r"(\bhttps?://)[^\s/@:?#]+@")
_AUTH_SCHEME = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9+/=._~-]{8,}", re.IGNORECASE)
# curl's option for a user and its password; two numbers are docker's user and group.
_USER_OPTION = re.compile(
    r"""((?<![\w-])(?:-u|--user|--proxy-user)(?:["'],)?[=\s]?["']?[^\s:"',=]{1,100}:)(?!\d+\b)[^\s"',]+"""
)
# Where a token may begin: also behind the letter of "\n" and behind "%3D".
_START = r"(?:\b|(?<=\\[nrt])|(?<=%[0-9A-Fa-f][0-9A-Fa-f]))"
_SHAPES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    rf"|{_START}(?:eyJ[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]*"  # JSON web token
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}\b"  # AWS access key id
    r"|(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{20,}"
    r"|gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent)-[A-Za-z0-9_.-]{16,}"  # GitLab
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"  # Slack
    r"|dapi[0-9a-f]{32}(?:-\d)?\b"  # Databricks
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{8,}|whsec_[A-Za-z0-9+/=]{16,}"  # Stripe
    r"|(?<!-)sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}"  # OpenAI and others; a name in words has no digit
    r"|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{36}|pypi-AgEI[A-Za-z0-9_-]{20,}|dckr_pat_[A-Za-z0-9_-]{20,}"
    r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}"  # Google
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|hv[sb]\.[A-Za-z0-9_-]{20,})",  # SendGrid, Vault
    re.DOTALL,
)

# --- A secret's name in a text, what joins it to its value, and the value. ---
# Every pattern here has one start in a run of its characters, or a bound: the time stays linear.

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
_BEFORE = re.compile(r"(?P<tuple>\(\s*)?(?P<quote>\\*[\"'`])\Z")
# name=value, name: value, "name": "value", config["name"] := value, Map(name -> value), name%3Dvalue
_JOIN = re.compile(
    rf"{_CLOSED}(?:\]|%(?:25)*5D)?\s*(?:[!~]?=+>?|(?P<colon>:+)=?|<-|->|%(?:25)*3[AD](?:%20|\+)?)\s*",
    re.IGNORECASE,
)
# "name": "password", "value": "x" and <name>password</name><value>x</value>
_VALUE_FIELD = re.compile(
    rf"{_CLOSED}\s*(?:,|</[\w:.-]{{1,60}}>)?\s*<?{_QUOTE}?value{_QUOTE}?\s*(?:[=:]|(?P<tag>>))\s*",
    re.IGNORECASE,
)
_TAG = re.compile(rf"{_CLOSED}(?P<attributes>\s[^<>]{{0,200}})?(?:>|&gt;)")
_TAG_VALUE = re.compile(r"(?:<!\[CDATA\[)?(?:[^<&]|&(?!lt;))+(?=</|&lt;/)|[^\s<&]+")
_COMMA = re.compile(rf"(?P<closed>{_QUOTE})\s*,\s*")
_SPACE = re.compile(rf"{_CLOSED}(?:[ \t]+|\()")
_PASSWORD_NAME = re.compile(r"(?:password|passwd|passphrase|pwd)\Z", re.IGNORECASE)
_SQL_BEFORE = re.compile(r"[(,]\s*\Z")
# Behind an option these are a sentence's, not its value.
_SENTENCE = re.compile(
    r"(?:an?|and|are|argument|as|at|but|by|can(?:not)?|expects?|field|flag|for|from|has|if|in|instead|is|must|needs?"
    r"|no|not|of|on|option|or|parameter|requires?|should|so|the|to|value|was|were|when|which|will|with)\b(?![\w-])"
)
# "password_hash: string" is a schema, "password: str = 'x'" a value that has a type.
_TYPE = re.compile(
    r"(?:dtype|(?:large_)?(?:string|str|utf8|binary|bytes)|object|(?:var)?char|text|bool(?:ean)?|u?int\d*|integer|bigint"
    r"|float\d*|double|decimal\d*|date\d*|timestamp|datetime|categor(?:y|ical)|list|struct)(?:type\(\))?"
    r"(?:\s*\|\s*None)?(?:(?P<default>\s*=\s*)|(?=[\s,;\[<>)}\]\\\"'`]|\(['\d]|\Z))",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"""(?:(?:Bearer|Basic)\s+)?(?:
        (?P<literal>(?:[brufBRUF]{1,2}|[NE])?)(?P<quote>\\*["'`]|&(?:quot|apos|\#3[49]);)
        |(?:\$|[A-Za-z_][\w.]*)?(?P<bracket>[\[({]))""",
    re.VERBOSE,
)
_NESTING = re.compile(r"""\\*["'`]|[\[({\])}]""")
# A bracket, quote or comma within a value belongs to it, unless the next name or the end follows.
_BARE = re.compile(
    r"""(?:(?:Bearer|Basic)\s+)?(?:[^\s,;&)}\]"'`<\\]|<(?!/)|\\+(?![\\"'`])|[)}\]"'`](?=\w)
        |[,;&](?=[^\s,;&"'`)}\]\\])(?![\w.%-]{0,40}["'`]?\s?[=:]))+""",
    re.IGNORECASE | re.VERBOSE,
)
# Headers whose value is all that follows: a scheme and its parameters, several cookies.
_HEADERS = frozenset(["authorization", "cookie"])
_HEADER_VALUE = re.compile(r"""(?:"[^"\r\n]*(?:"|$)|'[^'\r\n]*(?:'|$)|[^"'\r\n)\]}])+""", re.MULTILINE)

_LONGEST_NAME = 200
_SHORTEST_ENV_SECRET = 4
_PLAIN_VALUES = frozenset(["true", "false", "none", "null", "default"])


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Tell whether a setting, a variable or a query parameter of this name holds a secret."""
    if name.lower() in _SECRET_SETTINGS:
        return True
    return _names_a_secret(name)


def mask_location(location: str) -> str:
    """Return a path or URL without passwords, tokens and signatures. User and bucket names stay."""
    if "://" not in location and "=" not in location:
        return location
    return _mask_pairs(_mask_urls(location))


def mask_text(text: str, env: Mapping[str, str] | None = None) -> str:
    """Return a message without secrets, safe to be stored as UTF-8.

    Besides what stands in the text, values of environment variables with secret names are masked (``env``,
    by default the process's). Lone surrogates become their escapes.
    """
    text = text.encode("utf-8", "backslashreplace").decode()
    for secret in _env_secrets(os.environ if env is None else env):
        if secret in text:
            # As a word of its own: a password "test" does not hide every "pytest".
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(secret)}(?![A-Za-z0-9])", MASK, text)
    text = _SHAPES.sub(MASK, text)
    text = _AUTH_SCHEME.sub(rf"\1 {MASK}", text)
    text = _USER_OPTION.sub(rf"\1{MASK}", text)
    return _mask_pairs(_mask_urls(text))


def mask_config(config: Any) -> Any:
    """Return a copy of a configuration (mappings, lists, scalars to any depth) without secrets.

    What stands under a secret's name is masked whole, also as the ``value`` beside such a ``name`` and behind
    an option in a list (``["--password", "x"]``); other texts are masked as messages are. Booleans and None
    stay: ``use_token: true`` says nothing.
    """
    if isinstance(config, Mapping):
        # An entry of a list of variables, as of a container: {"name": "DB_PASSWORD", "value": "x"}.
        named = config.get("name")
        return {
            key: _mask_setting(named if key == "value" else None, key, value) for key, value in config.items()
        }
    if isinstance(config, (list, tuple)):
        return [
            MASK if _is_option(before) and isinstance(item, str) and item[:1] != "-" else mask_config(item)
            for before, item in zip([None, *config], config, strict=False)
        ]
    return mask_text(config) if isinstance(config, str) else config


def mask_variables(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a run's variables without secrets; dates and times are written in ISO 8601."""
    masked: dict[str, Any] = mask_config(
        {
            name: value.isoformat() if isinstance(value, (date, time)) else value
            for name, value in variables.items()
        }
    )
    return masked


def _mask_setting(named: object, key: object, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(key, str) and is_secret_name(key):
        return MASK
    return MASK if isinstance(named, str) and _names_a_secret(named) else mask_config(value)


def _is_option(item: object) -> bool:
    return isinstance(item, str) and item[:1] == "-" and "=" not in item and _names_a_secret(item)


@functools.lru_cache(maxsize=4096)
def _names_a_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _ABOUT_WORDS:
        return False
    if words[-1] in _SECRET_LAST_WORDS:
        return True
    # PGPASSWORD, dbpassword: names that run words together
    if any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words):
        return True
    return any(
        (second == "key" and first in _KEY_OWNERS) or (first, second) in _SECRET_WORD_PAIRS
        for first, second in itertools.pairwise(words)
    )


def _mask_urls(text: str) -> str:
    if "://" not in text:
        return text
    text = _URL_PASSWORD.sub(rf"\1{MASK}@", text)
    text = _URL_ODD_PASSWORD.sub(rf"\1{MASK}@", text)
    return _URL_TOKEN.sub(rf"\1{MASK}@", text)


class _Value(NamedTuple):
    start: int
    end: int
    masked: str = MASK
    quoted: bool = False


def _mask_pairs(text: str) -> str:
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
    if found["sql"] is not None:
        return _value_at(text, found.end())
    name, at = found[0][-_LONGEST_NAME:], found.end()
    if not _names_a_secret(name):
        escape = _ESCAPE.match(text, found.start())
        name = text[escape.end() : at] if escape else ""
        if len(name) > _LONGEST_NAME or not _names_a_secret(name):
            return None
    before = _BEFORE.search(text, max(0, found.start() - 40), found.start())
    if join := _JOIN.match(text, at):
        return _joined(text, name, join, before["quote"] if before and not join["closed"] else "")
    if field := _VALUE_FIELD.match(text, at):
        return _tag_value(text, field.end()) if field["tag"] else _value_at(text, field.end())
    if (tag := _TAG.match(text, at)) and (tag["closed"] or _opens_a_tag(text, found.start())):
        return _tag_value(text, tag.end())
    return _listed(text, name, at, before is not None and before["tuple"] is not None) or _spaced(
        text, name, found.start(), at
    )


def _joined(text: str, name: str, join: re.Match[str], within: str) -> _Value | None:
    at = join.end()
    if join["colon"]:
        if kind := _TYPE.match(text, at):
            return _value_at(text, kind.end()) if kind["default"] else None
        # "argument --token: expected one argument"
        if name[0] == "-" and text[at - 1].isspace() and not _OPENING.match(text, at):
            return None
    header = _WORD.findall(name)[-1].lower() in _HEADERS
    if within and (header or name[0] == "-"):
        return _Value(at, _end_of_quoted(text, at, within))
    value = _value_at(text, at)
    if header and (value is None or not value.quoted) and (rest := _HEADER_VALUE.match(text, at)):
        return _Value(at, len(rest[0].rstrip()) + at)
    return value


def _opens_a_tag(text: str, start: int) -> bool:
    # Not the type of a "Seq<Token>".
    return re.search(r"(?:(?<!\w)<|&lt;)(?:\w{1,40}:)?\Z", text[max(0, start - 50) : start]) is not None


def _tag_value(text: str, at: int) -> _Value | None:
    value = _TAG_VALUE.match(text, at)
    return value and _Value(at, value.end())


def _listed(text: str, name: str, at: int, pair: bool) -> _Value | None:
    """Return the value of ``'--password', 'x'`` or ``('password', 'x')``; a list of columns has none."""
    comma = _COMMA.match(text, at)
    if comma is None or not (pair or name[0] == "-"):
        return None
    value = _value_at(text, comma.end())
    if value is None or not value.quoted:
        return None
    if name[0] == "-":
        return None if re.compile(r"[^-\s]{0,20}-").match(text, comma.end()) else value
    return value if re.compile(r"\W{0,20}\)|\W?\Z").match(text, value.end) else None


def _spaced(text: str, name: str, start: int, at: int) -> _Value | None:
    """Return the value of ``--password x`` or SQL's ``PASSWORD 'x'``, ``SECRET 'x'``, ``PASSWORD('x')``."""
    space = _SPACE.match(text, at)
    if space is None:
        return None
    value = _value_at(text, space.end())
    if value is None or (space["closed"] and (name[0] != "-" or not value.quoted)):
        return None
    if name[0] == "-":
        begins = text[space.end()]
        return None if begins in "-([{|<" or _SENTENCE.match(text, space.end()) else value
    # "unexpected token 'x'" is no option of a statement
    option = (
        name.isupper() or _PASSWORD_NAME.search(name) or _SQL_BEFORE.search(text[max(0, start - 20) : start])
    )
    return value if option and value.quoted else None


def _value_at(text: str, at: int) -> _Value | None:
    opening = _OPENING.match(text, at)
    if opening is None:
        bare = _BARE.match(text, at)
        return bare and _Value(at, bare.end())
    if opening["bracket"]:
        return _Value(at, _end_of_brackets(text, opening.start("bracket")), MASK, True)
    quote = opening["quote"]
    end = _end_of_quoted(text, opening.end(), quote)
    close = quote if text.startswith(quote, end) else ""
    return _Value(at, end + len(close), f"{opening['literal']}{quote}{MASK}{close}", True)


def _end_of_quoted(text: str, at: int, quote: str) -> int:
    """Return where the quote closes that opens before ``at``, or else the line's end.

    ``quote`` has as many backslashes as texts it is quoted in ask for: ``\\"`` in JSON within JSON.
    """
    line = text.find("\n", at)
    line = len(text) if line < 0 else line
    if quote[0] == "&":
        end = text.find(quote, at, line)
        return line if end < 0 else end
    level, mark = len(quote) - 1, quote[-1]
    marks = re.compile(rf"\\*{mark}")
    found = marks.search(text, at)
    while found is not None:
        escapes, end = len(found[0]) - 1, found.end()
        if escapes < level:
            return found.start()  # the text around it ends first
        if escapes % (2 * level + 2) == level:
            # A doubled one is SQL's for one, one before a letter is part of a value nobody escaped.
            doubled = level == 0 and text[end : end + 1] == mark
            if end > line or not (doubled or text[end : end + 1].isalnum()):
                return end - len(quote)
            end += doubled
        found = marks.search(text, end)
    return line


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


def _env_secrets(env: Mapping[str, str]) -> list[str]:
    """Return the values to look for, longest first, also as they stand in a URL."""
    values = {
        value
        for name, value in env.items()
        if len(value) >= _SHORTEST_ENV_SECRET
        and value.lower() not in _PLAIN_VALUES
        and name != "PWD"  # the shell's working directory
        and _names_a_secret(name)
    }
    return sorted(values | {quote(value, safe="") for value in values}, key=len, reverse=True)
