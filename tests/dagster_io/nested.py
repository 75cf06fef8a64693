"""An IO manager over another resource. Dagster sees nested resources only where annotations are not text."""

from typing import Any

from dagster import ConfigurableIOManager, ConfigurableResource, InputContext, OutputContext


class Database(ConfigurableResource):  # type: ignore[type-arg]
    name: str


class OverDatabase(ConfigurableIOManager):
    database: Database

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        context.add_output_metadata({"database": self.database.name})

    def load_input(self, context: InputContext) -> Any:
        return None
