"""What the results of a step on Spark depend on beside its packages."""

from __future__ import annotations

from typing import Any

from ubunye_orchestrate.dagster_io.receipts.ledger import StepEntry

__all__ = ["note_session"]


def note_session(entry: StepEntry, session: Any) -> None:
    """Note once a step the driver's Java and the session's time zone."""
    if entry.time_zone is None:
        zone = str(session.conf.get("spark.sql.session.timeZone"))
        entry.java, entry.time_zone = _java_of(session), zone


def _java_of(session: Any) -> str | None:
    """Return the version of the driver's Java; None where the session does not tell (a shared cluster)."""
    try:
        query = "select java_method('java.lang.System', 'getProperty', 'java.version') from values (1)"
        return str(session.sql(query).first()[0])
    except Exception:  # noqa: BLE001 - services that share a JVM between users refuse it, each in its way
        return None
