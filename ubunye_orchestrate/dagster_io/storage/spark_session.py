"""The ``SparkResource``: one Spark session for assets and IO managers, started when it is first used."""

from __future__ import annotations

import importlib.metadata
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from dagster import ConfigurableResource
from pydantic import Field

from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.hashing.spark.failures import reason

__all__ = ["PinnedTable", "SparkResource", "commits_noted", "delta_coordinates"]

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_TIME_ZONE = {"spark.sql.session.timeZone": "UTC"}
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"

_starting = threading.Lock()
# Connect sessions of this process: each is a connection of its own, and a run should not open one a step.
_remote_sessions: dict[tuple[str, tuple[tuple[str, str], ...]], Any] = {}
# All that were opened, stopped ones too. Where PySpark 3.5 collects a session as garbage, its ``__del__``
# takes a lock (``ExecutePlanResponseReattachableIterator._lock``) whose holder may wait for the very thread
# that happens to collect it: the process then stands still.
_never_collected: list[Any] = []


class PinnedTable(NamedTuple):
    """A Delta table in one version."""

    frame: Any
    """A Spark DataFrame that gives the rows of that version, whatever is committed later."""
    version: dict[str, Any]
    """As ``source_version``."""
    location: str


class SparkResource(ConfigurableResource[Any]):
    """One Spark session: a local or a cluster's, started here, or one behind a Connect URL.

    A session that this process has already is taken as it is (``conf`` is applied to it as far as Spark
    allows). One that is started here has its time zone in UTC and, with ``delta``, Delta's extension and
    catalog; ``conf`` wins over both. It starts when it is first used, is shared by all that uses it in this
    process, and lives as long as the process. ``SparkResource.of`` takes a session, or a builder, that you
    made yourself.
    """

    remote: str | None = Field(default=None, description="URL of a Spark Connect server, sc://host:port.")
    master: str | None = Field(default=None, description="Master to start a session on, e.g. local[4].")
    app_name: str = Field(default="ubunye-orchestrate", description="Name of the application.")
    conf: dict[str, Any] = Field(default_factory=dict, description="Spark's settings, by their names.")
    jars: list[str] = Field(default_factory=list, description="Paths or URLs of jars (spark.jars).")
    packages: list[str] = Field(
        default_factory=list, description="Maven coordinates of jars, which Spark fetches as it starts."
    )
    delta: bool = Field(default=True, description="Set up Delta's extension and catalog.")

    @classmethod
    def of(cls, source: Any) -> SparkResource:
        """Return a resource around a session of your own, classic or Connect, which is never changed.

        ``source`` is the session, a ``SparkSession.builder``, or a function that returns a session; the last
        two are called when the session is first used.
        """
        start = _starter(source)

        class Given(cls):  # type: ignore[misc, valid-type]  # the class that it is called on
            # Dagster makes new objects of a resource's class; what is kept on an object is lost.
            def _start(self) -> Any:
                return start()

        Given.__name__, Given.__qualname__, Given.__doc__ = cls.__name__, cls.__qualname__, cls.__doc__
        return Given()

    @property
    def session(self) -> Any:
        """The session, started now where it was not.

        Raises ConfigurationError where Spark is not installed, or cannot start or be reached, saying why.
        """
        with _starting:
            return self._start()

    def pinned(self, table: str, version: int | None = None) -> PinnedTable:
        """Return a Delta table in one version, by default the newest, with what its log says of the version.

        ``table`` is a path (with a ``/``) or a name in a catalog. For assets that read or store by
        themselves: ``run.wrote("sales", now.frame, source_version=now.version, scope="stored_table")``.
        Raises StorageError where there is no such table.
        """
        from ubunye_orchestrate.dagster_io.storage.spark_delta import DeltaTables, place_of

        place, tables, session = place_of(table), DeltaTables({}), self.session
        found = tables.resolve(session, place, version)
        return PinnedTable(tables.read(session, place, found), found, place.shown)

    @contextmanager
    def commits(self, note: str) -> Iterator[Any]:
        """Give the session, whose Delta commits in this block carry a note (``ReceiptRun.commit_note``).

        Merges, updates and deletes have no option for it, as a writer has.
        """
        session = self.session
        with commits_noted(session, note):
            yield session

    def _start(self) -> Any:
        try:
            import pyspark
        except ImportError as e:
            raise ConfigurationError(
                'PySpark is not installed; pip install "ubunye-orchestrate[spark]"'
            ) from e
        conf = {name: _text(value) for name, value in self.conf.items()}
        # As pyspark has it: the variable is the address where no other session is asked for.
        remote = self.remote or (None if self.master else os.environ.get("SPARK_REMOTE"))
        if remote:
            return _connected(remote, {**_TIME_ZONE, **conf})
        from pyspark.sql import SparkSession

        running = _running()
        if running is not None and not conf:
            return running
        builder = SparkSession.builder
        if running is None:
            conf = {**self._defaults(), **conf}
        for name, value in conf.items():
            builder = builder.config(name, value)
        try:
            return builder.getOrCreate()
        except Exception as e:
            raise _not_started(e, pyspark.__version__, self.packages) from e

    def _defaults(self) -> dict[str, str]:
        """Return the settings of a session that is started here."""
        named = {
            "spark.app.name": self.app_name,
            "spark.master": self.master,
            "spark.jars": ",".join(self.jars),
            "spark.jars.packages": ",".join(self.packages),
        }
        given = {name: value for name, value in named.items() if value}
        return {**_TIME_ZONE, **(_DELTA if self.delta else {}), **given}


def delta_coordinates(spark_version: str) -> str:
    """Return the Maven coordinates of Delta for a Spark version; its own version as far as it is known."""
    major, minor = (int(part) for part in spark_version.split(".")[:2])
    if major < 4:
        return "io.delta:delta-spark_2.12:3.3.2"
    if (major, minor) == (4, 0):
        return "io.delta:delta-spark_2.13:4.0.0"
    try:
        version = importlib.metadata.version("delta-spark")
    except importlib.metadata.PackageNotFoundError:
        version = "<version of Delta>"
    return f"io.delta:delta-spark_{major}.{minor}_2.13:{version}"


@contextmanager
def commits_noted(session: Any, note: str) -> Iterator[None]:
    """Let the session's Delta commits in this block carry a note."""
    before = session.conf.get(_USER_METADATA, None)
    session.conf.set(_USER_METADATA, note)
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(_USER_METADATA)
        else:
            session.conf.set(_USER_METADATA, before)


def _connected(remote: str, conf: dict[str, str]) -> Any:
    key = (remote, tuple(sorted(conf.items())))
    known = _remote_sessions.get(key)
    if known is not None and not known.is_stopped:
        return known
    try:
        # Not through pyspark.sql: a process that has a JVM gets no remote session from there.
        from pyspark.sql.connect.session import SparkSession
    except Exception as e:
        raise ConfigurationError(
            f'Spark Connect is not usable here ({reason(e)}); pip install "pyspark[connect]"'
        ) from e
    try:
        session = SparkSession.builder.remote(remote).create()
        _never_collected.append(session)
        for name, value in conf.items():
            session.conf.set(name, value)
    except Exception as e:
        raise ConfigurationError(
            f"no Spark Connect session at {remote}: {reason(e)}; check that the server runs, and "
            "set static settings (extensions, catalogs, jars) on the server"
        ) from e
    _remote_sessions[key] = session
    return session


def _starter(source: Any) -> Callable[[], Any]:
    if hasattr(source, "getOrCreate"):
        return lambda: source.getOrCreate()
    if hasattr(source, "sql") and hasattr(source, "read"):
        return lambda: source
    if callable(source):
        return lambda: source()
    raise ConfigurationError(
        f"SparkResource.of got a {type(source).__name__}; expected a SparkSession, SparkSession.builder, or "
        "a function that returns a session"
    )


def _running() -> Any:
    """Return the session that this process has; None without one."""
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except Exception:  # noqa: BLE001 - it raises where there is none, each version its own
        return None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _not_started(error: Exception, spark_version: str, packages: list[str]) -> ConfigurationError:
    if "JAVA_GATEWAY_EXITED" not in str(error):
        return ConfigurationError(f"Spark {spark_version} cannot start: {reason(error)}")
    home = os.environ.get("JAVA_HOME")
    where = f"JAVA_HOME is {home}" if home else "JAVA_HOME is not set"
    java = "17 or newer" if int(spark_version.split(".")[0]) >= 4 else "8, 11 or 17"
    fetched = f", or its packages cannot be fetched ({', '.join(packages)})" if packages else ""
    return ConfigurationError(
        f"Spark {spark_version} found no Java that it can start ({where}){fetched}; expected Java {java}: "
        "install one and set JAVA_HOME to its folder. What Java said is above this error"
    )
