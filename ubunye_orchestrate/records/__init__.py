"""Fingerprints and evidence in, a stored record out."""
