"""A frame in, a Fingerprint out. Knows no Dagster and writes no files."""
