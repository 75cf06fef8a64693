"""Secrets out of everything that is stored or shown: locations, messages, configuration, variables.

A secret is recognised by where it stands (the password of a URL, a value under a name such as ``api_token``),
by its shape (a bearer token, a private key) or because it is the value of an environment variable with such a
name. What is masked becomes ``***``, nothing of it remains. In doubt too much is masked: a message that says
less is better than a record that shows a password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import date, time
from typing import Any
from urllib.parse import quote

from ubunye_orchestrate.secret_names import is_secret_name, names_a_secret
from ubunye_orchestrate.secret_pairs import MASK, mask_pairs

__all__ = ["MASK", "is_secret_name", "mask_config", "mask_location", "mask_text", "mask_variables"]

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
    rf"|{_START}(?:eyJ[\w-]{{8,}}\.[\w-]{{8,}}\.[\w-]*"  # JSON web token
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}\b|dapi[0-9a-f]{32}(?:-\d)?\b"  # AWS, Databricks
    r"|(?:gh[pousr]|github_pat)_\w{20,}|gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent)-[\w.-]{16,}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"  # Slack
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{8,}|whsec_[A-Za-z0-9+/=]{16,}"  # Stripe
    r"|(?<!-)sk-(?=[A-Za-z_-]*[0-9])[\w-]{20,}"  # OpenAI and others; a name in words has no digit
    r"|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{36}|pypi-AgEI[\w-]{20,}|dckr_pat_[\w-]{20,}"
    r"|AIza[\w-]{35,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}"  # Google
    r"|SG\.[\w-]{16,}\.[\w-]{16,}|hv[sb]\.[\w-]{20,})",  # SendGrid, Vault
    re.DOTALL | re.ASCII,
)

_SHORTEST_ENV_SECRET = 4
_PLAIN_VALUES = frozenset(["true", "false", "none", "null", "default"])


def mask_location(location: str) -> str:
    """Return a path or URL without passwords, tokens and signatures. User and bucket names stay."""
    if "://" not in location and "=" not in location:
        return location
    return mask_pairs(_mask_urls(location))


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
    return mask_pairs(_mask_urls(text))


def mask_config(config: Any) -> Any:
    """Return a copy of a configuration (mappings, lists, scalars to any depth) without secrets.

    What stands under a secret's name is masked whole, also as the ``value`` beside such a ``name`` and behind
    an option in a list (``["--password", "x"]``); other texts are masked as messages are. Booleans and None
    stay: ``use_token: true`` says nothing.
    """
    if isinstance(config, Mapping):
        return {key: _mask_setting(key, value, config.get("name")) for key, value in config.items()}
    if isinstance(config, (list, tuple)):
        return [
            MASK if _is_option(before) and isinstance(item, str) and item[:1] != "-" else mask_config(item)
            for before, item in zip([None, *config], config, strict=False)
        ]
    return mask_text(config) if isinstance(config, str) else config


def mask_variables(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a run's variables without secrets; dates and times are written in ISO 8601."""
    return {
        name: _mask_setting(name, value.isoformat() if isinstance(value, (date, time)) else value, None)
        for name, value in variables.items()
    }


def _mask_setting(key: object, value: Any, named: object) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(key, str) and is_secret_name(key):
        return MASK
    # An entry of a list of variables, as a container has: {"name": "DB_PASSWORD", "value": "x"}.
    secret = key == "value" and isinstance(named, str) and names_a_secret(named)
    return MASK if secret else mask_config(value)


def _is_option(item: object) -> bool:
    return isinstance(item, str) and item[:1] == "-" and "=" not in item and names_a_secret(item)


def _mask_urls(text: str) -> str:
    if "://" not in text:
        return text
    text = _URL_PASSWORD.sub(rf"\1{MASK}@", text)
    text = _URL_ODD_PASSWORD.sub(rf"\1{MASK}@", text)
    return _URL_TOKEN.sub(rf"\1{MASK}@", text)


def _env_secrets(env: Mapping[str, str]) -> list[str]:
    """Return the values to look for, longest first, also as they stand in a URL."""
    values = {
        value
        for name, value in env.items()
        if len(value) >= _SHORTEST_ENV_SECRET and value.lower() not in _PLAIN_VALUES
        # PWD is the shell's working directory
        if name != "PWD" and names_a_secret(name)
    }
    return sorted(values | {quote(value, safe="") for value in values}, key=len, reverse=True)
