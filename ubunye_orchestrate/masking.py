"""Secrets out of everything that is stored or shown: locations, messages, configuration, variables.

A secret is recognised by where it stands (the password of a URL, a value under a name such as ``api_token``),
by its shape (a bearer token, a private key) or because it is the value of an environment variable with such a
name. What is masked becomes ``***``, nothing of it remains.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Mapping
from datetime import date, time
from typing import Any
from urllib.parse import quote

__all__ = ["MASK", "is_secret_name", "mask_config", "mask_location", "mask_text", "mask_variables"]

MASK = "***"

# A name with one of these words is a secret's …
_SECRET_WORDS = frozenset(
    (
        *("password", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "token", "credential"),
        *("credentials", "authorization", "bearer", "cookie", "jwt", "sas", "sig", "signature", "apikey"),
        *("accesskey", "secretkey", "privatekey", "accountkey", "authtoken", "accesstoken"),
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
_SHAPES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"  # JSON web token
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"  # AWS access key id
    r"|\b(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{20,}"
    r"|\bxox[abeprs]-[A-Za-z0-9-]{10,}"
    r"|\bdapi[0-9a-f]{32}\b",
    re.DOTALL,
)
# name=value, name: value, "name": "value" in running text, connection strings and queries.
_NAME = re.compile(r"""(?<![\w.-])([A-Za-z_][\w.-]*)["']?\s*(?:=>|[=:])\s*""")
_VALUE = re.compile(
    r"""(?:(?:Bearer|Basic)\s+)?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;&)}\]"']+)""", re.IGNORECASE
)

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
    return _mask_pairs(_mask_urls(text))


def mask_config(config: Any) -> Any:
    """Return a copy of a configuration (mappings, lists, scalars to any depth) without secrets.

    What stands under a secret's name is masked whole, other texts as messages are. Booleans and None stay:
    ``use_token: true`` says nothing.
    """
    if isinstance(config, Mapping):
        return {key: _mask_setting(key, value) for key, value in config.items()}
    if isinstance(config, (list, tuple)):
        return [mask_config(item) for item in config]
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


def _mask_setting(name: object, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(name, str) and is_secret_name(name):
        return MASK
    return mask_config(value)


@functools.lru_cache(maxsize=4096)
def _names_a_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _ABOUT_WORDS:
        return False
    # PGPASSWORD, dbpassword: names that run words together
    if any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words):
        return True
    return any(
        (second == "key" and first in _KEY_OWNERS) or (first, second) == ("connection", "string")
        for first, second in itertools.pairwise(words)
    )


def _mask_urls(text: str) -> str:
    if "://" not in text:
        return text
    text = _URL_PASSWORD.sub(rf"\1{MASK}@", text)
    text = _URL_ODD_PASSWORD.sub(rf"\1{MASK}@", text)
    return _URL_TOKEN.sub(rf"\1{MASK}@", text)


def _mask_pairs(text: str) -> str:
    out = []
    done = 0
    # From name to name: a value is looked through for names too ("config: password=x").
    while (name := _NAME.search(text, done)) is not None:
        out.append(text[done : name.end()])
        done = name.end()
        if _names_a_secret(name[1]) and (value := _VALUE.match(text, done)) is not None:
            quoted = value[0][-1] if value[0][-1] in "\"'" else ""
            out.append(f"{quoted}{MASK}{quoted}")
            done = value.end()
    return "".join(out) + text[done:]


def _env_secrets(env: Mapping[str, str]) -> list[str]:
    """Return the values to look for, longest first, also as they stand in a URL."""
    values = {
        value
        for name, value in env.items()
        if len(value) >= _SHORTEST_ENV_SECRET and value.lower() not in _PLAIN_VALUES and _names_a_secret(name)
    }
    return sorted(values | {quote(value, safe="") for value in values}, key=len, reverse=True)
