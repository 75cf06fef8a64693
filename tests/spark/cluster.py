"""A Spark cluster of real processes on loopback, and a Python for its executors with nothing of ours."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

_DEPLOY = "org.apache.spark.deploy"
_SECONDS = 60


@contextlib.contextmanager
def standalone(jdk: Path, work: Path, *, workers: int = 2) -> Iterator[str]:
    """The address of a standalone master on which all workers have registered; all are ended afterwards."""
    with contextlib.ExitStack() as running:
        log = running.enter_context(_started(jdk, work, "master.Master", "--port", "0", "--webui-port", "0"))
        address = _logged(log, r"Starting Spark master at (spark://\S+)")
        for n in range(workers):
            options = ("--cores", "1", "--memory", "1g", "--port", "0", "--webui-port", "0")
            folder = work / f"worker{n}"
            worker = _started(jdk, work, "worker.Worker", *options, "--work-dir", str(folder), address)
            _logged(running.enter_context(worker), "Successfully registered with master")
        yield address


@contextlib.contextmanager
def _started(jdk: Path, work: Path, service: str, *arguments: str) -> Iterator[Path]:
    import pyspark

    home = Path(pyspark.__file__).parent
    log = work / f"{service}-{time.monotonic_ns()}.log"
    host = ("--host", "127.0.0.1")
    service, arguments = f"{_DEPLOY}.{service}", (*host, *arguments)
    environment = os.environ | {"JAVA_HOME": str(jdk), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_DIRS": str(work)}
    with log.open("wb") as output:
        # spark-class replaces itself with the JVM, so that the process is the JVM.
        command = [str(home / "bin" / "spark-class"), service, *arguments]
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=work
        )
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _logged(log: Path, pattern: str) -> str:
    """What a service says when it is ready: the first group of a pattern, or all of it."""
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        found = re.search(pattern, log.read_text("utf-8", "replace"))
        if found:
            return found.group(found.lastindex or 0)
        time.sleep(0.1)
    pytest.fail(f"{log.name} did not say {pattern!r}: {log.read_text('utf-8', 'replace')[-2000:]}")


def bare_python(folder: Path, *packages: str) -> Path:
    """A Python of this version that finds its standard library and some packages, and nothing else."""
    packages_folder = folder / "packages"
    packages_folder.mkdir(parents=True)
    for package in packages:
        module = sys.modules[package]
        assert isinstance(module, ModuleType)
        origin = Path(str(module.__file__)).parent
        for found in (origin, origin.with_name(f"{package}.libs")):
            if found.exists():
                (packages_folder / found.name).symlink_to(found)
    command = folder / "python"
    # -S leaves out site-packages, and so what is installed here; Spark's own Python comes in PYTHONPATH.
    command.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="$PYTHONPATH:{packages_folder}"\nexec "{sys.executable}" -S "$@"\n'
    )
    command.chmod(0o755)
    return command


def table_for(path: Path, table: Any, files: int) -> None:
    """Store a table as some parquet files, so that there is work for all executors."""
    import pyarrow.parquet as pq

    path.mkdir()
    rows = -(-table.num_rows // files)
    for n in range(files):
        pq.write_table(table.slice(n * rows, rows), path / f"part{n}.parquet")
