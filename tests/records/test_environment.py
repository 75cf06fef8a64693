"""The environment: what is installed, without importing it, and the engine's hash of it."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.records.samples import GENUINE_FILES, a_record, genuine_id
from ubunye_orchestrate import __version__
from ubunye_orchestrate.records import environment
from ubunye_orchestrate.records.codec import decode, encode
from ubunye_orchestrate.records.environment import current_environment, environment_hash
from ubunye_orchestrate.records.model import Environment


@pytest.mark.parametrize(
    "path", [path for path in GENUINE_FILES if b"environment_hash" in path.read_bytes()], ids=genuine_id
)
def test_the_hash_is_the_engines(path: Path) -> None:
    record = decode(path.read_bytes(), source=path.name)
    assert record.environment is not None
    assert environment_hash(record.environment) == record.environment_hash


def test_the_hash_is_of_the_environment_as_the_record_has_it() -> None:
    for found in (current_environment(), current_environment().model_copy(update={"java": "21.0.4"})):
        record = a_record(environment=found, environment_hash=environment_hash(found))
        stored = decode(encode(record), source="x")
        assert stored.environment is not None
        assert environment_hash(stored.environment) == record.environment_hash


def test_java_stands_there_on_spark_only() -> None:
    assert "java" not in json.loads(encode(a_record(environment=current_environment())))["environment"]
    on_spark = current_environment().model_copy(update={"java": "17"})
    assert json.loads(encode(a_record(environment=on_spark)))["environment"]["java"] == "17"
    assert environment_hash(on_spark) != environment_hash(current_environment())


def test_what_is_installed_is_there_and_what_is_not_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found = current_environment()
    assert found.packages["ubunye-orchestrate"] == __version__
    for name in ("dagster", "pandas", "pyarrow", "numpy"):
        assert found.packages[name] == importlib.metadata.version(name)
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert found.platform == sys.platform
    monkeypatch.setattr(environment, "PACKAGES", ("pandas", "no-such-package-at-all"))
    assert list(current_environment.__wrapped__().packages) == ["ubunye-orchestrate", "pandas"]


def test_no_package_is_imported() -> None:
    code = (
        "import sys; from ubunye_orchestrate.records.environment import current_environment;"
        "assert current_environment().packages['pandas'];"
        "print([name for name in ('pandas', 'numpy', 'pyarrow', 'dagster', 'polars') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_it_is_read_once_per_process() -> None:
    assert current_environment() is current_environment()


def test_a_change_of_one_version_changes_the_hash() -> None:
    a = Environment(python="3.11.7", packages={"pandas": "2.3.3"})
    b = Environment(python="3.11.7", packages={"pandas": "2.3.4"})
    assert environment_hash(a) != environment_hash(b)
