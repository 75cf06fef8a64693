"""Conformance suites for authors of other backends."""
