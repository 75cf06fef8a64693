"""Records of runs outside Dagster: in a notebook, a script, or as a monitor of another engine."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, TypeVar

from ubunye_orchestrate.errors import ConfigurationError, RecordError, RecordNotFoundError, StoreError
from ubunye_orchestrate.masking import mask_text, mask_variables
from ubunye_orchestrate.records.arguments import refuse_arguments
from ubunye_orchestrate.records.assembly import assemble_record
from ubunye_orchestrate.records.code import CodeEvidence, code_evidence
from ubunye_orchestrate.records.evidence import config_hash, error_text, held_by_a_record, split_foreign
from ubunye_orchestrate.records.model import HashScope, RunRecord, StepRecord
from ubunye_orchestrate.records.monitors import Monitor, kept_from_the_run, tell_end, tell_start
from ubunye_orchestrate.records.paths import is_safe_part, safe_part, stored_run_id, task_name_for_asset
from ubunye_orchestrate.records.settings import ReceiptSettings, resolve_settings
from ubunye_orchestrate.records.steps import step_of_frame, step_without_hash
from ubunye_orchestrate.records.store import RecordStore
from ubunye_orchestrate.records.values import inspect_value

__all__ = ["LineageRecorder", "RecordedRun"]

_logger = logging.getLogger(__name__)

Frame = TypeVar("Frame")


class LineageRecorder:
    """Writes one record for each run, in the same place and under the same identity as Dagster's assets.

    ::

        recorder = LineageRecorder(root="/data", usecase="shop", package="sales")
        with recorder.run("daily_totals", function=daily_totals) as run:
            orders = run.read("orders", pandas.read_parquet("orders.parquet"))
            run.wrote("daily_totals", daily_totals(orders))

    What goes wrong in keeping the record is logged and never reaches the run. The recorder is itself a
    ``Monitor``: an engine that calls ``task_start`` and ``task_end`` may be given it.
    """

    def __init__(
        self,
        root: str | None = None,
        usecase: str | None = None,
        package: str = "default",
        *,
        profile: str | None = None,
        hash_inputs: bool | None = None,
        naive_timestamps: str | None = None,
        max_hash_rows: int | None = None,
        max_hash_seconds: float | None = None,
        monitors: Iterable[Monitor] = (),
        sample_fraction: float | None = None,
    ) -> None:
        """Resolve where records go (see ``resolve_settings``); raises ConfigurationError.

        A table of more than ``max_hash_rows`` rows, or whose hash takes more than ``max_hash_seconds``, has
        no hash, and its record says so. ``sample_fraction`` is accepted and ignored: every row counts.
        """
        if sample_fraction is not None:
            warnings.warn(
                "sample_fraction is ignored: every row is hashed; leave it out",
                DeprecationWarning,
                stacklevel=2,
            )
        self.settings = resolve_settings(
            root,
            usecase,
            profile,
            hash_inputs,
            naive_timestamps,
            max_hash_rows=max_hash_rows,
            max_hash_seconds=max_hash_seconds,
        )
        self.package = package if is_safe_part(package) else safe_part(package)
        self.store = RecordStore(self.settings.root)
        self._monitors = tuple(monitors)
        self._started: dict[tuple[str, str], RecordedRun] = {}
        self._taken: set[tuple[str, str]] = set()

    def run(
        self,
        task: str | Sequence[str],
        *,
        run_id: str | None = None,
        partition_keys: Sequence[str] = (),
        function: Callable[..., object] | None = None,
        config: dict[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        version: str = "",
        model: str = "etl",
    ) -> RecordedRun:
        """Return a run, to be entered with ``with``; its record is written when it is left.

        ``task`` is a task's name, or an asset key as a list or with slashes. ``function`` is what does the
        work: without it the record has no evidence of the code. ``run_id`` is a new one unless given; a
        second run of the same task and id is another try of it (``<run id>.retry-1``). Raises
        ConfigurationError for what a record cannot hold.
        """
        refuse_arguments(
            task=task,
            run_id=run_id,
            partition_keys=partition_keys,
            function=function,
            config=config,
            variables=variables,
            version=version,
            model=model,
        )
        task_name = _task_name(task)
        return RecordedRun(
            self.settings,
            self.store,
            self._monitors,
            package=self.package,
            task_name=task_name,
            run_id=self._free_run_id(task_name, run_id, partition_keys),
            function=function,
            config=config or {},
            variables=variables or {},
            version=version,
            model=model,
        )

    def _free_run_id(self, task_name: str, run_id: str | None, partition_keys: Sequence[str]) -> str:
        """Return the record's run id: of the first try of the run that has no record yet."""
        if not run_id:
            return stored_run_id(str(uuid.uuid4()), partition_keys)
        tries = (stored_run_id(run_id, partition_keys, attempt) for attempt in itertools.count())
        free = next(one for one in tries if not self._is_taken(task_name, one))
        self._taken.add((task_name, free))
        return free

    def _is_taken(self, task_name: str, run_id: str) -> bool:
        if (task_name, run_id) in self._taken:
            return True
        try:
            self.store.load(self.settings.usecase, self.package, task_name, run_id)
        except (RecordNotFoundError, StoreError):
            return False
        except RecordError:
            return True
        return True

    def task_start(self, *, context: Any, config: dict[str, Any]) -> None:
        """Begin the record of a run that an engine runs; ``context`` has ``run_id`` and ``task_name``."""
        with kept_from_the_run("task_start"):
            task, run_id = _named_by(context)
            variables, _ = split_foreign(getattr(context, "variables", None) or {}, "variables")
            run = self.run(task, run_id=run_id or None, config=config, variables=variables)
            self._started[task, run_id] = run.__enter__()

    def task_end(
        self,
        *,
        context: Any,
        config: dict[str, Any],
        outputs: dict[str, Any] | None,
        status: str,
        duration_sec: float,
        inputs: dict[str, Any] | None = None,
        expectations: Sequence[dict[str, Any]] | None = None,
        timings: Sequence[dict[str, Any]] | None = None,
        error: str | None = None,
        **later: Any,
    ) -> None:
        """Write the record of a run that ``task_start`` began, with the frames that were read and written."""
        run = self._started.pop(_named_by(context), None)
        if run is None:
            _logger.warning("A run ended that had not started: %r; it has no record", context)
            return
        with kept_from_the_run("task_end"):
            for name, frame in (inputs or {}).items():
                run.read(name, frame)
            for name, frame in (outputs or {}).items():
                run.wrote(name, frame)
            run.expectations.extend(expectations or ())
            run.timings.extend(timings or ())
            failed = status != "success"
            run.close(
                error=mask_text(str(error or f"ended with status {status}")) if failed else None,
                duration_sec=duration_sec,
            )


class RecordedRun:
    """One run while it is recorded: say what it reads and writes. It is its monitors' context too."""

    def __init__(
        self,
        settings: ReceiptSettings,
        store: RecordStore,
        monitors: Sequence[Monitor],
        *,
        package: str,
        task_name: str,
        run_id: str,
        function: Callable[..., object] | None,
        config: dict[str, Any],
        variables: Mapping[str, Any],
        version: str,
        model: str,
    ) -> None:
        """Take the run's identity and evidence; ``LineageRecorder.run`` makes one."""
        self.run_id = run_id
        self.package = package
        self.task_name = task_name
        self.profile = settings.profile
        self.variables = dict(variables)
        self.timings: list[dict[str, Any]] = []
        """``{"step", "input" or "output", "seconds"}``; ``timed`` adds one."""
        self.expectations: list[dict[str, Any]] = []
        """Rules that were checked, as the record has them."""
        self.record: RunRecord | None = None
        """The record, once the run has ended."""
        self.path: str | None = None
        """Where the record was written; None when it could not be."""
        self._settings = settings
        self._store = store
        self._monitors = monitors
        self._function = function
        self._config = config
        self._version = version
        self._model = model
        self._inputs: list[StepRecord] = []
        self._outputs: list[StepRecord] = []
        self._phase = "before"
        # Only monitors need the frames themselves; without any they are let go.
        self._frames: dict[str, dict[str, Any]] = {"input": {}, "output": {}}
        self._backend: str | None = None
        self._code: CodeEvidence | None = None
        self._began = datetime.now(timezone.utc)
        self._mark = time.perf_counter()

    def __enter__(self) -> RecordedRun:
        """Begin the run. Raises ConfigurationError where it has begun before: it has one record."""
        if self._phase != "before":
            raise ConfigurationError(
                f"a run of {self.task_name} was entered a second time; expected a new one: recorder.run(…)"
            )
        self._phase = "in"
        self._began, self._mark = datetime.now(timezone.utc), time.perf_counter()
        if self._function is not None:
            with kept_from_the_run("the code's evidence"):
                self._code = code_evidence(self._function)
        tell_start(self._monitors, context=self, config=self._config)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(error=None if error is None else error_text(error))

    def read(
        self,
        name: str,
        frame: Frame,
        *,
        format: str | None = None,  # noqa: A002 - the field's name in the record
        location: str | os.PathLike[str] | None = None,
        scope: HashScope = "passed_rows",
    ) -> Frame:
        """Note a frame that the run reads, and return it.

        A table in memory is hashed, unless ``hash_inputs`` is off, and so is a Spark frame, which is computed
        for it; a reader or another lazy frame is not touched. Raises ConfigurationError outside of the
        ``with`` block, where nothing is recorded.
        """
        self._refuse_outside("read")
        self._inputs.append(self._step(name, "input", frame, format, location, scope))
        self._keep("input", name, frame)
        return frame

    def wrote(
        self,
        name: str,
        frame: Frame,
        *,
        format: str | None = None,  # noqa: A002 - the field's name in the record
        location: str | os.PathLike[str] | None = None,
        scope: HashScope = "passed_rows",
    ) -> Frame:
        """Note a frame that the run has written, and return it; hashed as ``read`` does."""
        self._refuse_outside("wrote")
        self._outputs.append(self._step(name, "output", frame, format, location, scope))
        self._keep("output", name, frame)
        return frame

    @contextlib.contextmanager
    def timed(self, step: str, *, input: str | None = None, output: str | None = None) -> Iterator[None]:  # noqa: A002 - the fields' names in the record
        """Time a step of the run: ``with run.timed("read", input="orders"): …``; kept also when it fails."""
        mark = time.perf_counter()
        try:
            yield
        finally:
            of = {"input": input, "output": output}
            named = {side: name for side, name in of.items() if name is not None}
            self.timings.append({"step": step, **named, "seconds": round(time.perf_counter() - mark, 6)})

    def close(self, *, error: str | None = None, duration_sec: float | None = None) -> None:
        """Write the record and tell the monitors; leaving the ``with`` block does it.

        ``error`` is the masked text of what the run failed with, ``duration_sec`` how long it took where
        somebody else measured. A run that is closed stays as it is.
        """
        if self._phase == "after":
            return
        self._phase = "after"
        duration = time.perf_counter() - self._mark if duration_sec is None else duration_sec
        with kept_from_the_run("the record"):
            self.record = assemble_record(
                self._settings,
                package=self.package,
                task_name=self.task_name,
                run_id=self.run_id,
                started_at=self._began,
                ended_at=datetime.now(timezone.utc),
                duration_sec=duration,
                inputs=self._inputs,
                outputs=self._outputs,
                error=error,
                code=self._code,
                config_hash=config_hash(self._config),
                variables=split_foreign(mask_variables(self.variables), "variables")[0],
                backend=self._backend,
                timings=[held_by_a_record(one, "timings") for one in self.timings],
                expectations=[held_by_a_record(one, "expectations") for one in self.expectations],
                version=self._version,
                model=self._model,
            )
            self.path = self._store.save(self.record)
        tell_end(
            self._monitors,
            context=self,
            config=self._config,
            outputs=self._frames["output"],
            status="success" if error is None else "error",
            duration_sec=duration,
            inputs=self._frames["input"],
            expectations=self.expectations,
            timings=self.timings,
            error=error,
            record=self.record,
        )

    def _refuse_outside(self, call: str) -> None:
        if self._phase != "in":
            raise ConfigurationError(
                f"run.{call} of {self.task_name} was called {self._phase} its block, where nothing is "
                'recorded; expected it inside of "with recorder.run(…) as run:"'
            )

    def _step(
        self,
        name: str,
        direction: Any,
        frame: object,
        form: str | None,
        location: str | os.PathLike[str] | None,
        scope: HashScope,
    ) -> StepRecord:
        with kept_from_the_run(f"the hash of {name}"):
            self._backend = self._backend or inspect_value(frame).backend
            step, _ = step_of_frame(
                name, direction, frame, self._settings, format=form, location=location, scope=scope
            )
            return step
        return step_without_hash(
            name, direction, reason="hashing failed; see the log", format=form, location=location
        )

    def _keep(self, side: str, name: str, frame: object) -> None:
        if self._monitors:
            self._frames[side][name] = frame


def _task_name(task: str | Sequence[str]) -> str:
    parts = task.split("/") if isinstance(task, str) else list(task)
    if isinstance(task, str) and len(parts) == 1:
        return task if is_safe_part(task) else safe_part(task)
    return task_name_for_asset(parts)


def _named_by(context: Any) -> tuple[str, str]:
    """Return the task and the run id that an engine's context says."""
    return str(getattr(context, "task_name", None) or "task"), str(getattr(context, "run_id", None) or "")
