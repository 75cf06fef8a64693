"""Files and folders that are no records: each is named, the rest goes on, nothing reaches a terminal raw."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.records.rights import without_rights
from ubunye_orchestrate.records.codec import MAX_RECORD_BYTES, encode
from ubunye_orchestrate.records.store import RecordStore

Run = Callable[..., Any]
Damage = Callable[[Path, bytes], None]

TASK = Path(".ubunye/lineage/default/raw/raw__flights")
COMMANDS: dict[str, tuple[str, ...]] = {
    "list": (),
    "show": (),
    "compare": (),
    "why": (),
    "trace": (),
    "search": (),
    "assets": (),
    "gate": (),
    "verify": ("--allow-unknown",),
    "prune": ("--keep", "1"),
    "accept": ("--why", "as meant"),
}
NASTY = "\x1b[2J\x9b1m\u202eevil\x07"


def edited(**fields: Any) -> Damage:
    """Write the record with some fields of another kind."""

    def damage(path: Path, good: bytes) -> None:
        path.write_bytes(json.dumps({**json.loads(good), **fields}).encode("utf-8", "surrogatepass"))

    return damage


def holding(data: bytes) -> Damage:
    return lambda path, good: path.write_bytes(data) and None


def giant(path: Path, good: bytes) -> None:
    with path.open("wb") as file:
        file.truncate(MAX_RECORD_BYTES + 1)  # a hole: it takes no room


DAMAGES: dict[str, Damage] = {
    "truncated": lambda path, good: path.write_bytes(good[: len(good) // 2]) and None,
    "empty": holding(b""),
    "blank": holding(b" \n\t" * 100),
    "binary": holding(bytes(range(256)) * 20),
    "zeros": holding(b"\0" * 5000),
    "utf-16": lambda path, good: path.write_bytes(good.decode().encode("utf-16")) and None,
    "giant": giant,
    "nested lists": holding(b"[" * 200_000),
    "nested objects": holding(b'{"a":' * 200_000),
    "nested in a field": lambda path, good: (
        path.write_bytes(good.rstrip()[:-1] + b', "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}") and None
    ),
    "a list": holding(b"[1, 2]"),
    "a text": holding(b'"hello"'),
    "null": holding(b"null"),
    "foreign": holding(b'{"name": "package", "version": "1.0.0"}'),
    "not a number": edited(duration_sec=float("nan")),
    "infinite": edited(duration_sec=float("inf")),
    "too many digits": lambda path, good: (
        path.write_bytes(good.replace(b'"duration_sec": 5.0', b'"duration_sec": ' + b"9" * 20_000)) and None
    ),
    "future": edited(record_version=3),
    "far future": edited(record_version=10**30),
    "version is text": edited(record_version="2"),
    "version is null": edited(record_version=None),
    "run id is a number": edited(run_id=17),
    "inputs are a mapping": edited(inputs={"a": 1}),
    "an input is a text": edited(inputs=["a"]),
    "an input without a name": edited(inputs=[{"direction": "input"}]),
    "rows are a text": edited(outputs=[{"name": "a", "direction": "output", "row_count": "3"}]),
    "a status of its own": edited(status=NASTY),
    "variables are a list": edited(variables=[1]),
    "code is a list": edited(code=[1]),
    "environment is a text": edited(environment="python"),
    "dagster is a text": edited(dagster="here"),
    "a lone surrogate": edited(profile="\ud800"),
}


@pytest.fixture
def good(flights: Path) -> bytes:
    return (flights / TASK / "dddd5555.json").read_bytes()


def checked(done: Any, command: str) -> Any:
    """What holds of every answer: no traceback, nothing raw, a code that the documentation has."""
    assert "Traceback" not in done.err + done.out
    for line in (done.out + done.err).split("\n"):
        assert line.isprintable(), line
    assert done.code in (0, 1), command
    return done


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_command_names_a_bad_file_and_goes_on(
    run: Run, flights: Path, good: bytes, damage: str
) -> None:
    bad = flights / TASK / "zzzz.json"
    DAMAGES[damage](bad, good)
    for command, options in COMMANDS.items():
        done = checked(run(command, "-d", flights, *options), command)
        # It may be the newest run, so the gate does not let the one behind it pass for it.
        assert done.code == (1 if command == "gate" else 0), (command, done.err)
        assert [line for line in done.err.splitlines() if "zzzz.json" in line], command
        assert len(done.err.splitlines()) == 1, command
        assert done.out, command
    done = checked(run("show", "-d", flights, "--run-id", "zzzz"), "show")
    assert (done.code, done.out) == (1, "")
    assert "zzzz.json" in done.err
    assert "expected" in done.err


@pytest.mark.parametrize("damage", ["truncated", "nested lists", "giant", "future", "an input is a text"])
def test_with_json_the_document_stays_whole(run: Run, flights: Path, good: bytes, damage: str) -> None:
    DAMAGES[damage](flights / TASK / "zzzz.json", good)
    for command, options in COMMANDS.items():
        done = checked(run(command, "-d", flights, *options, "--json"), command)
        assert json.loads(done.out), command
        assert "zzzz.json" in done.err, command


def test_hostile_text_in_a_record_that_is_one(run: Run, flights: Path, good: bytes) -> None:
    hostile = json.loads(good)
    hostile["run_id"] = "zzzz"
    for field in ("profile", "version", "error", "backend", "engine_version", "started_at", "time_zone"):
        hostile[field] = NASTY * 3
    hostile["dagster"] = {
        "asset_key": [NASTY, {"a": [NASTY]}],
        "partition_keys": NASTY,
        "baseline": {"run_id": NASTY},
        "attempt": NASTY,
        "declared_inputs": {NASTY: NASTY},
    }
    hostile["code"] = {"function": {"x": NASTY}, "functions": {NASTY: [NASTY]}, "error": [NASTY]}
    hostile["timings"] = [{"step": [NASTY], "seconds": NASTY}]
    hostile["expectations"] = [{"passed": NASTY, "severity": [NASTY], "detail": {NASTY: NASTY}}]
    hostile["environment"] = {"python": NASTY, "packages": {NASTY: NASTY}, "of": [NASTY]}
    hostile["inputs"][0] |= {
        "name": NASTY,
        "location": NASTY,
        "producer": [{"partition": NASTY, "run_id": NASTY, "storage_id": -1}],
        "hash_error": NASTY,
        "data_hash": NASTY,
    }
    hostile["outputs"][0] |= {"location": f"/{NASTY}", "format": "parquet", "columns": [[NASTY, NASTY]]}
    hostile["unknown to us"] = {NASTY: NASTY}
    (flights / TASK / "zzzz.json").write_text(json.dumps(hostile))
    for command, options in COMMANDS.items():
        for more in ((), ("--json",)):
            if command == "accept":
                continue  # it says nothing of a record but its name
            done = checked(run(command, "-d", flights, *options, *more), command)
            if more:
                json.loads(done.out)
    summary = flights / "summary.md"
    run("gate", "-d", flights, "--summary", summary)
    assert all(line.isprintable() for line in summary.read_text().split("\n"))


def test_a_key_twice_in_an_object_and_a_byte_order_mark_are_read(
    run: Run, flights: Path, good: bytes
) -> None:
    (flights / TASK / "zzzz.json").write_bytes(
        b"\xef\xbb\xbf" + good.replace(b'"run_id": "dddd5555"', b'"run_id": "x", "run_id": "zzzz"')
    )
    assert run("show", "-d", flights, "--run-id", "zzzz").json["run_id"] == "zzzz"


# ---------------------------------------------------------------- what is no file of the right kind


def circle(path: Path) -> None:
    path.symlink_to(path.name)


def into_the_void(path: Path) -> None:
    path.symlink_to("nowhere.json")


PLACES: dict[str, Callable[[Path], None]] = {
    "a link in a circle": circle,
    "a link into the void": into_the_void,
    "a pipe": os.mkfifo,
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_is_no_file_is_named_and_never_opened(run: Run, flights: Path, place: str) -> None:
    PLACES[place](flights / TASK / "zzzz.json")
    for command, options in COMMANDS.items():
        done = checked(run(command, "-d", flights, *options), command)
        assert done.out, command
        if command in ("list", "search", "prune"):
            assert "zzzz.json" in done.err, command


def test_a_folder_that_is_named_like_a_record(run: Run, flights: Path) -> None:
    (flights / TASK / "zzzz.json").mkdir()
    (flights / TASK / ".json").write_text("{")
    for command, options in COMMANDS.items():
        done = checked(run(command, "-d", flights, *options), command)
        assert (done.code, done.err) == (0, ""), command


def test_folders_in_a_circle_end(run: Run, flights: Path) -> None:
    (flights / ".ubunye/lineage/default/raw/loop").symlink_to(flights / ".ubunye/lineage")
    (flights / ".ubunye/lineage/again").symlink_to(flights / ".ubunye")
    for command in ("search", "assets", "gate", "prune", "verify"):
        checked(run(command, "-d", flights, *COMMANDS[command]), command)
    assert len(run("search", "-d", flights, "-t", "raw__flights", "--json").json) == 5


@pytest.fixture
def locked(flights: Path) -> Iterator[Path]:
    """A second task whose folder nobody may list, and a file that nobody may read."""
    folder = flights / ".ubunye/lineage/default/raw/secret"
    folder.mkdir()
    folder.chmod(0)
    (flights / TASK / "aaaa1111.json").chmod(0)
    # As root made them, the way to them is root's alone.
    opened = [path for path in (flights, *flights.parents) if path.is_relative_to("/tmp")]
    modes = [(path, path.stat().st_mode) for path in opened]
    for path in opened:
        path.chmod(0o755)
    yield flights
    for path, mode in modes:
        path.chmod(mode)
    folder.chmod(0o755)


@pytest.mark.skipif(os.name == "nt", reason="rights of POSIX")
def test_what_may_not_be_read_is_named_and_the_rest_goes_on(run: Run, locked: Path) -> None:
    with without_rights():
        done = checked(run("search", "-d", locked, "--json"), "search")
        assert (done.code, len(done.json)) == (0, 4)
        assert [("secret" in line, "aaaa1111.json" in line) for line in sorted(done.err.splitlines())] == [
            (False, True),
            (True, False),
        ]
        assert "Permission denied" in done.err
        done = checked(run("show", "-d", locked, "--asset", "raw/flights", "--run-id", "aaaa1111"), "show")
        assert (done.code, "Permission denied" in done.err) == (1, True)
        done = checked(run("list", "-d", locked, "-u", "default", "-p", "raw", "-t", "secret"), "list")
        assert (done.code, len(done.err.splitlines())) == (1, 1)
        done = checked(run("accept", "-d", locked, "--asset", "raw/flights", "--why", "x"), "accept")
        assert (done.code, "cannot be written" in done.err) == (1, True)
        done = checked(run("prune", "-d", locked, "--asset", "raw/flights", "--keep", "1", "--yes"), "prune")
        assert (done.code, "cannot be deleted" in done.err) == (1, True)
    assert len(list((locked / TASK).iterdir())) == 5


def test_a_file_where_a_folder_belongs(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".ubunye").write_text("not a folder")
    for command, options in COMMANDS.items():
        done = checked(run(command, "-d", tmp_path, *options), command)
        assert (done.code, len(done.err.splitlines())) == (1, 1), command
    (tmp_path / "root").write_text("not a folder")
    for command, options in COMMANDS.items():
        assert checked(run(command, "-d", tmp_path / "root", *options), command).code == 1


# ---------------------------------------------------------------- names


def test_names_of_another_system(run: Run, tmp_path: Path, make: SimpleNamespace) -> None:
    data = encode(make.record("one", 1))
    names = ["a b", "ä ö", "CON", "a:b", "x\x1b[2Jy", "x\ny", ".hidden", "~", "a%2Fb", "\u202eevil", "-d"]
    for name in names:
        folder = tmp_path / ".ubunye/lineage/u/p" / name
        folder.mkdir(parents=True)
        (folder / "one.json").write_bytes(data)
    odd = os.fsencode(tmp_path) + b"/.ubunye/lineage/u/p/\xff\xfe"
    os.mkdir(odd)
    (Path(os.fsdecode(odd)) / "one.json").write_bytes(data)
    (Path(os.fsdecode(odd)) / os.fsdecode(b"\xff.json")).write_bytes(data)
    for command in ("search", "assets", "gate", "prune"):
        for more in ((), ("--json",)):
            done = checked(run(command, "-d", tmp_path, *COMMANDS[command], *more), command)
            assert done.out
    # All but the hidden one, and the same again for the second file that claims its run id.
    found = run("assets", "-d", tmp_path, "--json").json
    assert len(found) == len(names)
    for name in ("a b", "ä ö", "a:b"):
        assert run("show", "-d", tmp_path, "-u", "u", "-p", "p", "-t", name).code == (
            0 if ":" not in name else 1
        )
    assert "12 tasks fit" not in run("show", "-d", tmp_path).err
    assert "tasks fit" in checked(run("show", "-d", tmp_path), "show").err


def test_two_files_that_claim_one_run_id(run: Run, flights: Path, good: bytes) -> None:
    (flights / TASK / "zzzz.json").write_bytes(good)
    for command, options in COMMANDS.items():
        done = checked(run(command, "-d", flights, *options), command)
        assert "zzzz.json: found run id 'dddd5555', which has a file of its own" in done.err, command
    (flights / TASK / "dddd5555.json").rename(flights / TASK / "yyyy.json")
    done = checked(run("list", "-d", flights, "--json"), "list")
    assert [record["run_id"] for record in done.json].count("dddd5555") == 1
    assert "which 'zzzz.json' has too" in done.err


def test_a_run_id_that_leads_out_of_the_mirror(run: Run, flights: Path, make: SimpleNamespace) -> None:
    outside = flights / ".ubunye/lineage/default/secret.json"
    outside.write_bytes(encode(make.record("secret", 1)))
    for text in ("../../secret", "..%2F..%2Fsecret", "/etc/passwd", "..", ".", "a\0b", "x" * 5000):
        done = checked(run("show", "-d", flights, "--run-id", text), "show")
        assert done.code == 1, text
    done = checked(run("show", "-d", flights, "-u", "..", "-p", "..", "-t", ".."), "show")
    assert done.code == 1
    assert RecordStore(flights).run_ids("default", "raw", "raw__flights")
