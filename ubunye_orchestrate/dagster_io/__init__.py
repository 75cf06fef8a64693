"""The only room that imports Dagster: IO managers, receipts, sensors and checks."""
