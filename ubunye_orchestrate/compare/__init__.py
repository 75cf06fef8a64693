"""Two records in, a verdict out. Pure: reads no files and knows no Dagster."""
