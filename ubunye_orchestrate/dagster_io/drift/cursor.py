"""What the drift sensor remembers between two ticks.

Stored as JSON in Dagster. Every field has a default, so that a cursor of an older version loads; fields of a
newer one are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

__all__ = ["DriftCursor"]

_MAX_REPORTED = 100


@dataclass(frozen=True)
class DriftCursor:
    """Where the sensor is in the event log, and what it need not say again."""

    storage_id: int = 0
    """Every materialization up to this storage id was judged."""
    environment: str | None = None
    """Environment hash of the newest run that was judged."""
    reported: tuple[str, ...] = ()
    """Changes of the environment that were reported while it is the current one."""
    observed: int | None = None
    """Every acceptance up to this storage id was taken; None in a cursor of an older version: as far as
    ``storage_id``."""
    period: int | None = None
    """When was last looked for what is overdue, by the number of the five minutes."""
    overdue: tuple[int, ...] = ()
    """Storage ids of materializations that were reported as overdue and still are."""

    @classmethod
    def parse(cls, text: str | None) -> DriftCursor | None:
        """Return the cursor that ``text`` holds; None for no cursor, and for one that cannot be read."""
        try:
            value = json.loads(text or "null")
        except ValueError:
            return None
        storage_id = value.get("storage_id") if isinstance(value, dict) else None
        if not isinstance(storage_id, int) or isinstance(storage_id, bool) or storage_id < 0:
            return None
        observed = value.get("observed")
        known = isinstance(observed, int) and not isinstance(observed, bool) and observed >= 0
        environment, reported = value.get("environment"), value.get("reported")
        period, overdue = value.get("period"), value.get("overdue")
        return cls(
            storage_id=storage_id,
            observed=observed if known else None,
            environment=environment if isinstance(environment, str) else None,
            reported=tuple(str(item) for item in reported) if isinstance(reported, list) else (),
            period=period if isinstance(period, int) else None,
            overdue=tuple(one for one in overdue if isinstance(one, int))
            if isinstance(overdue, list)
            else (),
        )

    def text(self) -> str:
        """Return the cursor as Dagster stores it."""
        return json.dumps(asdict(self))

    def moved_to(self, storage_id: int) -> DriftCursor:
        """Return the cursor after the materialization ``storage_id``; it never goes back."""
        return replace(self, storage_id=max(self.storage_id, storage_id))

    def having_observed(self, storage_id: int) -> DriftCursor:
        """Return the cursor after the observation ``storage_id``; it never goes back."""
        return replace(self, observed=max(self.observed or 0, storage_id))

    def having_looked_for_overdue(self, period: int, overdue: Iterable[int]) -> DriftCursor:
        """Return the cursor after a look at what is overdue."""
        return replace(self, period=period, overdue=tuple(sorted(overdue)))

    def in_environment(self, environment: str | None) -> DriftCursor:
        """Return the cursor after a run in ``environment``: in another one, all is to be said anew."""
        if environment is None or environment == self.environment:
            return self
        return replace(self, environment=environment, reported=())

    def having_reported(self, change: str) -> DriftCursor:
        """Return the cursor after a change of the environment was reported."""
        return replace(self, reported=(*self.reported, change)[-_MAX_REPORTED:])
