"""Which names of settings, variables and parameters are those of secrets."""

from __future__ import annotations

import functools
import itertools
import re

__all__ = ["WORD", "is_secret_name", "names_a_secret"]

# A name with one of these words, or with two that make one, is a secret's …
_SECRET_WORDS = frozenset(
    (
        *("password", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "token", "credential"),
        *("credentials", "authorization", "bearer", "cookie", "jwt", "sas", "sig", "signature", "apikey"),
        *("accesskey", "secretkey", "privatekey", "accountkey", "authtoken", "accesstoken"),
        *("connstr", "connstring", "connectionstr", "connectionstring", "accountjson", "accountinfo"),
        *("keyfilejson", "keyfiledict", "dbpass", "userpass", "sshpass", "storepass", "keypass", "dbpw"),
    )
)
# These only as a name's last word: db_pass, but not pass_rate or pat_id.
_SECRET_LAST_WORDS = frozenset(["pass", "pw", "cred", "creds", "pat"])
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

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
"""A word of a name, however the name joins its words."""


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Tell whether a setting, a variable or a query parameter of this name holds a secret."""
    return name.lower() in _SECRET_SETTINGS or names_a_secret(name)


@functools.lru_cache(maxsize=4096)
def names_a_secret(name: str) -> bool:
    """Tell the same of a name in running text, where ``key`` and ``auth`` are plain words."""
    words = [word.lower() for word in WORD.findall(name)]
    if not words or words[-1] in _ABOUT_WORDS or words[-1] in _SECRET_LAST_WORDS:
        return bool(words) and words[-1] in _SECRET_LAST_WORDS
    # PGPASSWORD, dbpassword: names that run words together
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words) or any(
        (second == "key" and first in _KEY_OWNERS) or first + second in _SECRET_WORDS
        for first, second in itertools.pairwise(words)
    )
