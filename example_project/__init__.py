"""The flights that left New York in 2013, as a Dagster project with receipts: assets and a guided demo."""
