"""The page of an asset links to its code, where with_receipts went around the project."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from dagster import (
    AssetKey,
    AssetOut,
    AssetSpec,
    CodeReferencesMetadataValue,
    Definitions,
    LocalFileCodeReference,
    asset,
    graph_asset,
    multi_asset,
    op,
)

from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts

from .conftest import Project

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


@asset
def plain() -> int:
    return 1


@multi_asset(outs={"left": AssetOut(), "right": AssetOut()})
def both() -> tuple[int, int]:
    return 1, 2


@op
def one() -> int:
    return 1


@graph_asset
def backed() -> int:
    return one()


def links(defs: Definitions, key: str) -> Any:
    metadata = defs.resolve_assets_def(AssetKey(key)).metadata_by_key[AssetKey(key)]
    value = metadata.get("dagster/code_references")
    return None if value is None else [one.source for one in value.code_references]


def line_of(function: Any) -> str:
    return f"{__file__}:{inspect.getsourcelines(function)[1]}"


def test_each_asset_links_to_its_function(project: Project) -> None:
    defs = with_receipts(Definitions(assets=[plain, both, backed, AssetSpec("outside")]), project.receipts)
    assert links(defs, "plain") == [line_of(plain.op.compute_fn.decorated_fn)]  # type: ignore[union-attr]
    assert links(defs, "left") == links(defs, "right") == [line_of(both.op.compute_fn.decorated_fn)]  # type: ignore[union-attr]
    assert links(defs, "backed") == [line_of(backed.node_def.composition_fn)]  # type: ignore[attr-defined]
    assert links(defs, "outside") is None
    # And they still run.
    job = defs.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(instance=project.instance).success
    assert len(project.mirrored("left")) == 1


def test_the_users_own_link_stays() -> None:
    own = CodeReferencesMetadataValue(code_references=[LocalFileCodeReference(file_path="/mine.py")])

    @asset(metadata={"dagster/code_references": own})
    def linked() -> int:
        return 1

    assert links(with_receipts(Definitions(assets=[linked])), "linked") == ["/mine.py"]


def test_a_function_typed_in_a_shell_has_none() -> None:
    made: dict[str, Any] = {"asset": asset}
    exec("@asset\ndef typed() -> int:\n    return 1\n", made)
    assert links(with_receipts(Definitions(assets=[made["typed"]])), "typed") is None


def test_it_does_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    with_receipts(Definitions(assets=[plain]))
    assert [str(one.message) for one in recwarn] == []
