"""The ``ubunye-orchestrate`` command. Thin: it reads stored records and never imports Dagster."""
