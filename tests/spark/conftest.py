"""Sessions, classic and Connect, that nobody else has set anything in."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewSession = Callable[..., Any]

# PySpark 3.5 may stand still where a Connect session is collected as garbage: see SparkResource's module.
_never_collected: list[Any] = []


@pytest.fixture(params=["classic", "connect"])
def new_session(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[NewSession]:
    """Make sessions of one kind with settings of their own."""
    if request.param == "connect":
        address: str = request.getfixturevalue("connect_address")
    opened: list[Any] = []

    def make(**settings: str) -> Any:
        session = _connect(address) if request.param == "connect" else spark.newSession()
        if request.param == "connect":
            opened.append(session)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some settings are deprecated, and users have them all the same
            for key, value in settings.items():
                session.conf.set(key, value)
        return session

    yield make
    for session in opened:
        session.stop()


def _connect(address: str) -> Any:
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    session = ConnectSession.builder.remote(address).create()
    _never_collected.append(session)
    return session
