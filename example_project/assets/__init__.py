"""The pipeline: tables as published (``raw``), cleaned (``staging``), joined and summed up (``marts``)."""
