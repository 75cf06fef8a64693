"""Conformance suites for authors of other backends. Needs pytest."""

from ubunye_orchestrate.testing.conformance import ConformanceSuite as ConformanceSuite

__all__ = ["ConformanceSuite"]
