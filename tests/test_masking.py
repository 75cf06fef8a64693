"""Secrets never in clear, and nothing hidden that is no secret."""

from __future__ import annotations

import datetime
import hashlib
import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ubunye_orchestrate.masking import (
    is_secret_name,
    mask_config,
    mask_location,
    mask_text,
    mask_variables,
)
from ubunye_orchestrate.records.evidence import LONGEST_ERROR, config_hash, error_text

SECRETS = [
    *("password", "passwd", "pwd", "db_password", "DB_PASSWORD"),
    *("dbPassword", "PGPASSWORD", "passphrase", "secret", "client_secret"),
    *("clientSecret", "SECRET_KEY", "secrets", "token", "api_token"),
    *("apiToken", "access_token", "auth_token", "sas_token", "token_value"),
    *("credential", "credentials", "google_credentials", "key", "api_key"),
    *("apikey", "api-key", "apiKey", "APIKey", "x-api-key"),
    *("access_key", "aws_access_key_id", "aws_secret_access_key", "account_key", "storage_key"),
    *("private_key", "ssh_key", "encryption_key", "signing_key", "authorization"),
    *("bearer", "cookie", "session_token", "jwt", "sig"),
    *("signature", "X-Amz-Signature", "connection_string", "AccountKey", "SharedAccessKey"),
    *("pass", "pw", "db_pass", "DB_PASS", "dbPass", "cred", "creds", "gcp_creds", "pat", "github_pat"),
    *("conn_str", "connStr", "conn_string", "connectionString", "service_account_json", "keyfile_dict"),
]
PLAIN = [
    *("key_column", "keyboard", "partition_key", "primary_key", "foreign_key"),
    *("sort_key", "asset_key", "keys", "key_id", "monkey"),
    *("turkey", "token_url", "token_count", "max_tokens", "tokenizer"),
    *("secret_name", "secrets_path", "password_column", "password_policy", "passport"),
    *("bypass", "compass", "author", "authority", "signature_version"),
    *("credentials_file", "username", "user", "host", "port"),
    *("table", "mode", "dt", "dtf", "region"),
    *("keyspace", "hotkey_map", "donkey", "passed", "pass_rate", "pass_count", "path", "pattern", "pat_id"),
    *("credit", "account", "service_account", "connection", "conn_id", "info"),
]


@pytest.mark.parametrize("name", SECRETS)
def test_a_secrets_name(name: str) -> None:
    assert is_secret_name(name)
    assert mask_config({name: "s3cr3t", "nested": [{name: ["s3cr3t"]}]}) == {
        name: "***",
        "nested": [{name: "***"}],
    }
    assert mask_variables({name: 1234}) == {name: "***"}


@pytest.mark.parametrize("name", PLAIN)
def test_a_name_that_is_no_secrets(name: str) -> None:
    assert not is_secret_name(name)
    assert mask_config({name: "value"}) == {name: "value"}
    assert mask_text(f"{name}=value", {}) == f"{name}=value"


def test_what_says_nothing_stays() -> None:
    assert mask_config({"password": None, "use_token": True, "secret": False}) == {
        "password": None,
        "use_token": True,
        "secret": False,
    }


@pytest.mark.parametrize(
    ("location", "masked"),
    [
        ("postgresql://user:pa55@host:5432/db", "postgresql://user:***@host:5432/db"),
        ("postgresql://user:p@55@host/db", "postgresql://user:***@host/db"),
        ("postgresql://user:p/5?5@host/db", "postgresql://user:***@host/db"),
        ("postgresql://:pa55@host/db", "postgresql://:***@host/db"),
        ("https://t0ken@github.com/x", "https://***@github.com/x"),
        ("s3://key:secret@bucket/path", "s3://key:***@bucket/path"),
        (
            "abfss://container@account.dfs.core.windows.net/x",
            "abfss://container@account.dfs.core.windows.net/x",
        ),
        (
            "https://h/x?sig=abc&se=2024&X-Amz-Signature=def&part=1#access_token=ghi",
            "https://h/x?sig=***&se=2024&X-Amz-Signature=***&part=1#access_token=***",
        ),
        (
            "jdbc:sqlserver://h:1433;user=sa;password=pa55;database=x",
            "jdbc:sqlserver://h:1433;user=sa;password=***;database=x",
        ),
        ("http://host:8080/path?mail=a@b.c", "http://host:8080/path?mail=a@b.c"),
        ("http://[::1]:8080/a@b", "http://[::1]:8080/a@b"),
        ("/data/a:b@c/x=1/part=2", "/data/a:b@c/x=1/part=2"),
        ("C:\\data\\x", "C:\\data\\x"),
        ("s3://bucket/dt=2024-01-01/key=7", "s3://bucket/dt=2024-01-01/key=7"),
    ],
)
def test_a_location_loses_its_credentials_only(location: str, masked: str) -> None:
    assert mask_location(location) == masked
    assert mask_location(masked) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (
            "could not connect to postgres://u:pa55@h/db (timeout)",
            "could not connect to postgres://u:***@h/db (timeout)",
        ),
        ("login failed: password=pa55, user=x", "login failed: password=***, user=x"),
        ("{'user': 'x', 'password': 'pa 55'}", "{'user': 'x', 'password': '***'}"),
        ('{"api_key": "a\\"b", "n": 1}', '{"api_key": "***", "n": 1}'),
        ("config: password=pa55", "config: password=***"),
        ("Authorization: Bearer abc.def-ghi123", "Authorization: ***"),
        ("sent header Bearer abcdef123456", "sent header Bearer ***"),
        ("AccountName=x;AccountKey=abc==;Suffix=y", "AccountName=x;AccountKey=***;Suffix=y"),
        ("key AKIAIOSFODNN7EXAMPLE is revoked", "key *** is revoked"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl expired", "*** expired"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nx", "***\nx"),
        ("pushed with ghp_abcdefghijklmnopqrstuvwxyz0123", "pushed with ***"),
        ("KeyError: 'flight'", "KeyError: 'flight'"),
        ("duplicate key: 42", "duplicate key: 42"),
        ("column 'key' = 7 of key_column: x", "column 'key' = 7 of key_column: x"),
        ("no exchange rate for region 'west'", "no exchange rate for region 'west'"),
        ("ratio 3:4, time 10:30", "ratio 3:4, time 10:30"),
    ],
)
def test_a_message_loses_its_secrets_only(text: str, masked: str) -> None:
    assert mask_text(text, {}) == masked
    assert mask_text(masked, {}) == masked


# Each holds secrets with "hunter" in them; beside it what is left.
HUNTED = [
    ("Command '['x', '--password=hunter2']' failed", "Command '['x', '--password=***']' failed"),
    ("Command '['x', '--password', 'hunter-2', '-v']'", "Command '['x', '--password', '***', '-v']'"),
    ("mysql --password hunter2 --host db", "mysql --password *** --host db"),
    ("mysql --password 'hunter 2' x", "mysql --password '***' x"),
    ("plink -pw hunter2 h", "plink -pw *** h"),
    ("java -Ddb.password=hunter2 -jar x", "java -Ddb.password=*** -jar x"),
    ("'--password=hunter 2', 'x'", "'--password=***', 'x'"),
    ("--password: hunter2", "--password: ***"),
    ("('--password', 'hunter2')", "('--password', '***')"),
    ("['--password', b'hunter2']", "['--password', b'***']"),
    ("('password', 'hunter2')", "('password', '***')"),
    ('(b"password", b"hunter2")', '(b"password", b"***")'),
    ("['curl', '-u', 'me:hunter2', 'h']", "['curl', '-u', 'me:***', 'h']"),
    ("curl --user me:hunter2 h", "curl --user me:*** h"),
    ("Authorization: token hunter2\nx", "Authorization: ***\nx"),
    ("Authorization: some custom hunter words", "Authorization: ***"),
    ('Authorization: Digest a="b (c)", response="hunter2", d="hunter"', "Authorization: ***"),
    ("Authorization: AWS4-HMAC-SHA256 Credential=hunter/x, Signature=hunter", "Authorization: ***"),
    ("Proxy-Authorization: Negotiate hunter2==", "Proxy-Authorization: ***"),
    ("{'Authorization': 'token hunter2', 'x': 1}", "{'Authorization': '***', 'x': 1}"),
    ("{'Authorization': ['token hunter2'], 'x': 1}", "{'Authorization': [***], 'x': 1}"),
    ("curl -H 'Authorization: token hunter2' h", "curl -H 'Authorization: ***' h"),
    (r'-H "Authorization: Digest response=\"hunter2\"" h', '-H "Authorization: ***" h'),
    ("Cookie: a=hunter2; b=hunter3", "Cookie: ***"),
    ("{'password': b'hunter2', 'n': 1}", "{'password': b'***', 'n': 1}"),
    ("{'password': ['hunter2', \"hunter]\"], 'n': 1}", "{'password': [***], 'n': 1}"),
    ("{'password': ('hunter2',), 'n': 1}", "{'password': (***), 'n': 1}"),
    ("C(password=SecretStr('hunter2'), n=1)", "C(password=***, n=1)"),
    ('C(password=m.Secret(value="hunter2", n=(1, 2)), n=1)', "C(password=***, n=1)"),
    ('{"credentials": {"a": ["hunter2"], "b": "hunter"}, "n": 1}', '{"credentials": {***}, "n": 1}'),
    ("credentials=['hunter2', 'hunter", "credentials=[***"),
    (r'{"b": "{\"password\": \"hunter2\"}"}', r'{"b": "{\"password\": \"***\"}"}'),
    (r'{"b": "{\"password\": \"a\\\" hunter2\", \"n\": 1}"}', r'{"b": "{\"password\": \"***\", \"n\": 1}"}'),
    (r'"{\\\"password\\\": \\\"hunter2\\\"}"', r'"{\\\"password\\\": \\\"***\\\"}"'),
    (r'{"b": "{\"password\": \"hunter2 cut", "n": 1}', r'{"b": "{\"password\": \"***", "n": 1}'),
    ('password="hunter2 cut', 'password="***'),
    ("password='hunter2\nx", "password='***\nx"),
    ("pass=hunter2", "pass=***"),
    ("pw=hunter2", "pw=***"),
    ("db_pass: hunter2", "db_pass: ***"),
    ("ALTER USER x PASSWORD 'hunter2'", "ALTER USER x PASSWORD '***'"),
    ("alter user x password 'hunter2'", "alter user x password '***'"),
    ("CREATE USER x IDENTIFIED BY 'hunter''hunter'", "CREATE USER x IDENTIFIED BY '***'"),
    ("CREATE USER x IDENTIFIED BY hunter2 QUOTA 5", "CREATE USER x IDENTIFIED BY *** QUOTA 5"),
    ("create user x identified by 'hunter2'", "create user x identified by '***'"),
    ("ALTER USER x IDENTIFIED WITH p BY 'hunter2'", "ALTER USER x IDENTIFIED WITH p BY '***'"),
    ("ALTER LOGIN x WITH PASSWORD = N'hunter2'", "ALTER LOGIN x WITH PASSWORD = N'***'"),
    ("(type s3, key_id 'a', secret 'hunter2')", "(type s3, key_id 'a', secret '***')"),
    ("password%3Dhunter2", "password%3D***"),
    ("?a=b%26api_key%253Dhunter2&n=1", "?a=b%26api_key%253D***&n=1"),
    ("<password>hunter2 hunter</password>", "<password>***</password>"),
    ('<n:password x="y">hunter2</n:password>', '<n:password x="y">***</n:password>'),
    ("&lt;password&gt;hunter2&lt;/password&gt;", "&lt;password&gt;***&lt;/password&gt;"),
    ("<name>secret.key</name><value>hunter2</value>", "<name>secret.key</name><value>***</value>"),
    ('<p name="password">hunter2</p>', '<p name="password">***</p>'),
    ('{"name": "DB_PASSWORD", "value": "hunter2"}', '{"name": "DB_PASSWORD", "value": "***"}'),
    ("&quot;password&quot;: &quot;hunter 2&quot;", "&quot;password&quot;: &quot;***&quot;"),
    ("password := hunter2", "password := ***"),
    ("password == 'hunter2'", "password == '***'"),
    ('c["password"] = "hunter2"', 'c["password"] = "***"'),
    ("Map(password -> hunter2, n -> 1)", "Map(password -> ***, n -> 1)"),
    ("def f(password: str = 'hunter2')", "def f(password: str = '***')"),
    ("password=a,hunter2, n=1", "password=***, n=1"),
    ("password=&hunter2 n", "password=*** n"),
    ("password=a\"hunter)hunter'hunter n", "password=*** n"),
    ("password=a(b)hunter2 n", "password=*** n"),
    ("password='a'hunter2', n=1", "password='***', n=1"),
    (r"first\napi_key=hunter2", r"first\napi_key=***"),
]


@pytest.mark.parametrize(("text", "masked"), HUNTED)
def test_however_a_value_follows_its_name_it_is_masked(text: str, masked: str) -> None:
    assert mask_text(text, {}) == masked
    assert mask_text(masked, {}) == masked


@pytest.mark.parametrize(
    "text",
    [
        *("1 row passed", "path=/a", "pattern=x", "bypass=3", "compass: north", "passed=3"),
        *("the checks pass (3 of 3)", "pass, fail or warn", "unexpected token 5", "unexpected token 'x'"),
        *("KeyError: 'password'", "the password is wrong", "secret 'db' not found", "secret (see the docs)"),
        *("Unexpected token '<', \"<!DOC\"", "no column password in table 'x'", "password (optional)"),
        *("id: int64\npassword_hash: string", "password_hash: string not null, n: int64"),
        *("{'id': Int64, 'password_hash': String}", "[('password_hash', String), ('n', Int64)]"),
        *("StructField('password_hash', StringType(), True)", "token: decimal128(10, 2)"),
        *("columns ['id', 'password_hash', 'n'] are missing", "columns ['password', 'user'] are missing"),
        *("columns ('id', 'password') are missing", "columns ('password', 'user', 'id') are missing"),
        *("argument --password: expected one argument", "the option --password is required"),
        *("Option '--password' requires an argument.", "x --token --host db", "x [--token TOKEN] [-h]"),
        *("mysql -u <user> -p <password> -h", "a Seq<Token> is no Map<String, Secret> here"),
        *("the row is identified by 'key'", "docker run -u 1000:1000 x", "Invalid credentials (401)"),
        *(
            "sk-learn-is-a-package-of-words",
            "hf_hub_download_of_some_file",
            "the task-1234567890123456789012",
        ),
    ],
)
def test_an_ordinary_message_stays(text: str) -> None:
    assert mask_text(text, {}) == text


@pytest.mark.parametrize(
    "token",
    [
        *("sk_live_" + "a1B2" * 6, "rk_live_" + "a1B2" * 6, "sk_test_" + "a1B2" * 6, "whsec_" + "a1B2" * 8),
        *("sk-" + "a1B2" * 12, "sk-proj-" + "a1_B2-" * 12, "sk-ant-api03-" + "a1B2" * 12),
        *("glpat-" + "a1B2" * 5, "gldt-" + "a1B2" * 5, "hf_" + "a1B2" * 8, "AIzaSy" + "a-B_2" * 6 + "abc"),
        *("npm_" + "a1B2" * 9, "ya29." + "a1B2" * 9, "hvs." + "a1B2" * 9, "xapp-1-" + "A1B2" * 4),
        *("SG." + "a1B2" * 5 + "." + "a1B2" * 5, "dapi" + "0a1b" * 8 + "-2", "ghs_" + "a1B2" * 9),
    ],
)
def test_a_token_is_known_by_its_form(token: str) -> None:
    assert mask_text(f"sent {token}, refused", {}) == "sent ***, refused"
    assert mask_text(rf"sent\n{token}", {}) == r"sent\n***"
    assert token not in mask_text(f"?x%3D{token}", {})
    assert mask_config({"x": token}) == {"x": "***"}


def test_options_and_named_values_of_a_configuration() -> None:
    assert mask_config({"args": ["--password", "x", "--token", "-v", "--host", "h"]}) == {
        "args": ["--password", "***", "--token", "-v", "--host", "h"]
    }
    assert mask_config([{"name": "DB_PASSWORD", "value": "x"}, {"name": "HOST", "value": "h"}]) == [
        {"name": "DB_PASSWORD", "value": "***"},
        {"name": "HOST", "value": "h"},
    ]
    assert mask_config({"columns": ["password", "user"]}) == {"columns": ["password", "user"]}


def test_the_working_directory_is_no_password() -> None:
    assert mask_text("no file /srv/x", {"PWD": "/srv", "DB_PWD": "/else"}) == "no file /srv/x"


def test_values_of_environment_variables_with_secret_names_are_masked() -> None:
    env = {
        "WAREHOUSE_PASSWORD": "p@55/w",
        "API_TOKEN": "longtoken",
        "LONG_SECRET": "longtoken-and-more",
        "TEST_PASSWORD": "test",
        "FLAG_TOKEN": "true",
        "SHORT_SECRET": "ab",
        "HOME": "/root",
    }
    assert mask_text("denied for p@55/w", env) == "denied for ***"
    assert mask_text("GET http://h/?q=p%4055%2Fw", env) == "GET http://h/?q=***"
    assert mask_text("longtoken-and-more longtoken", env) == "*** ***"
    assert mask_text("pytest tested ab true /root", env) == "pytest tested ab true /root"
    assert mask_text("value 'test'", env) == "value '***'"


def test_the_process_environment_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "hunter22")
    assert mask_text("it was hunter22.") == "it was ***."
    assert mask_config({"a": ["x hunter22"]}) == {"a": ["x ***"]}


def test_lone_surrogates_become_their_escapes() -> None:
    assert mask_text("file \udc80.csv", {}) == "file \\udc80.csv"


def test_a_configuration_is_copied_and_not_changed() -> None:
    config = {"a": {"password": "x", "urls": ("postgres://u:p@h/x",)}}
    assert mask_config(config) == {"a": {"password": "***", "urls": ["postgres://u:***@h/x"]}}
    assert config == {"a": {"password": "x", "urls": ("postgres://u:p@h/x",)}}


def test_variables_keep_dates_as_text() -> None:
    variables = {
        "dt": datetime.date(2024, 1, 2),
        "at": datetime.datetime(2024, 1, 2, 3),
        "n": 1,
        "api_token": "x",
    }
    assert mask_variables(variables) == {
        "dt": "2024-01-02",
        "at": "2024-01-02T03:00:00",
        "n": 1,
        "api_token": "***",
    }


def test_a_long_text_comes_to_an_end() -> None:
    # Each of these takes a careless pattern quadratic time or worse: more than the suite's time limit.
    for text in (
        "a" * 200_000,
        "://" * 60_000,
        "a." * 100_000,
        "x=" * 100_000,
        "://a:b" * 30_000,
        '"\\' * 60_000,
        ":" * 200_000,
        "eyJ" * 60_000,
        *(
            f"{before}{part * (200_000 // len(part))}"
            for before in ("", "password=", 'password="', "password=(", "Authorization: ", "password")
            for part in ("\\", " ", "-", "a-", "password ", "--password ", "password='a'b\n", "password=(\n")
        ),
        *(
            part * (200_000 // len(part))
            for part in (
                *(
                    "password=a,",
                    "password='",
                    'password=\\"',
                    "password: a(",
                    "<password>",
                    "<password ",
                    "%25",
                ),
                *(
                    "'--password', ",
                    "('password', ",
                    "user x identified ",
                    "IDENTIFIED BY ",
                    "sk-",
                    "sk-a_b-",
                ),
                *(
                    "Authorization: 'a\n",
                    "password%3D",
                    "name: password, value",
                    "-u a",
                    "cookie=a=",
                    "SG.a.",
                ),
            )
        ),
    ):
        mask_text(text, {})


@given(st.text(), st.text(alphabet="abc:/@?=&;\"' \\.%", max_size=60))
def test_masking_never_fails_and_is_stable(text: str, tricky: str) -> None:
    for value in (text, tricky, f"postgres://u:{tricky}@h/x password={text}"):
        once = mask_text(value, {})
        once.encode()
        mask_location(value)


@given(st.text(alphabet="abc1\\,;&)]}([{'\"`<>=:%$-", max_size=30), st.sampled_from(["'", '"']))
def test_no_quoted_password_survives_as_json_within_json_or_repr(noise: str, quote: str) -> None:
    secret = f"{noise}hunter{noise}"
    text = json.dumps({"password": secret, "n": 1})
    for _ in range(3):
        assert "hunter" not in mask_text(text, {})
        assert "hunter" not in mask_text(text[:-3], {})
        text = json.dumps({"body": text})
    assert "hunter" not in mask_text(repr({"password": secret}), {})
    assert "hunter" not in mask_text(f"x {[f'--password={secret}']}", {})


@given(
    st.text(
        alphabet=st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="@/?#:"), min_size=8
    )
)
def test_no_password_of_a_url_survives(password: str) -> None:
    assert password not in mask_text(f"cannot reach mysql://user:{password}@host:3306/db", {})


class TestConfigHash:
    def test_order_and_secrets_do_not_count(self) -> None:
        a = {"limit": 5, "password": "one", "tables": ["x", "y"]}
        b = {"tables": ["x", "y"], "password": "two", "limit": 5}
        assert config_hash(a) == config_hash(b)
        assert str(config_hash(a)).startswith("sha256:")

    @pytest.mark.parametrize(
        "other", [{"limit": 6}, {"limit": "5"}, {"limit": 5.0}, {"limit": [5]}, {}, {"limit": 5, "x": None}]
    )
    def test_any_other_value_counts(self, other: dict[str, Any]) -> None:
        assert config_hash({"limit": 5}) != config_hash(other)

    def test_none_is_an_empty_configuration(self) -> None:
        assert config_hash(None) == config_hash({})

    def test_it_is_the_hash_of_canonical_json(self) -> None:
        canonical = b'{"a":[1,"\\u00e9"],"token":"***"}'
        expected = "sha256:" + hashlib.sha256(canonical).hexdigest()
        assert config_hash({"token": "x", "a": [1, "é"]}) == expected

    @pytest.mark.parametrize("value", [float("nan"), datetime.date(2024, 1, 1), {1: 2}, object()])
    def test_what_json_cannot_hold_is_unknown_and_said(
        self, value: object, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING):
            assert config_hash({"x": value}) is None
        assert "The configuration has no hash" in caplog.text


class TestErrorText:
    def test_type_and_message(self) -> None:
        assert error_text(ValueError("no rate")) == "ValueError: no rate"
        assert error_text(KeyboardInterrupt()) == "KeyboardInterrupt"

    def test_secrets_are_masked(self) -> None:
        assert error_text(OSError("postgres://u:p@h/x")) == "OSError: postgres://u:***@h/x"

    def test_a_long_message_is_cut_and_says_so(self) -> None:
        text = error_text(ValueError("x" * 100_000))
        assert len(text) < LONGEST_ERROR + 100
        assert text.endswith("more characters)")

    def test_an_exception_that_cannot_say_what_it_is(self) -> None:
        class BrokenError(Exception):
            def __str__(self) -> str:
                raise RuntimeError

        assert error_text(BrokenError()) == "BrokenError: (its message failed with RuntimeError)"
