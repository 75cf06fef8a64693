"""What a function was made with, where the source of its makers does not say it."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.records.projects import changed, evidence, imported, write
from ubunye_orchestrate.records.code import CodeEvidence, code_evidence

BUILD = "job:make.<locals>.build"


def both(folder: Path, job: str, old: str = "2", new: str = "3") -> tuple[CodeEvidence, CodeEvidence]:
    """Return the evidence of a job with ``$`` as one value, and as another."""
    job = dedent(job)
    return evidence(folder, job.replace("$", old)), evidence(folder, job.replace("$", new))


OPEN = {
    "a part of a parameter": """
        def make(spec):
            name, factor = spec["name"], spec["factor"]
            def build(x): return x * factor
            return build
        work = make({"name": "a", "factor": $})
    """,
    "an expression of a parameter": """
        def make(k):
            factor = k + 0
            def build(x): return x * factor
            return build
        work = make($)
    """,
    "by way of other names": """
        def make(k):
            first = k
            second = [first]
            third = max(second)
            def build(x): return x * third
            return build
        work = make($)
    """,
    "keywords": """
        def make(**kw):
            k = kw["k"]
            def build(x): return x * k
            return build
        work = make(k=$)
    """,
    "a condition on a parameter": """
        def make(k):
            factor = 1
            if k > 2:
                factor = 5
            def build(x): return x * factor
            return build
        work = make($)
    """,
    "a loop over a parameter": """
        def make(ks):
            factor = 1
            for _ in range(ks):
                factor = factor * 2
            def build(x): return x * factor
            return build
        work = make($)
    """,
    "a list that is filled": """
        def make(k):
            factors = []
            factors.append(k)
            def build(x): return x * factors[0]
            return build
        work = make($)
    """,
    "a list that an inner function fills": """
        def make(k):
            factors = []
            def add(): factors.append(k)
            add()
            def build(x): return x * factors[0]
            return build
        work = make($)
    """,
    "nonlocal": """
        def make(v):
            k = 0
            def set_k():
                nonlocal k
                k = v
            set_k()
            def build(x): return x * k
            return build
        work = make($)
    """,
    "what an inner function returns": """
        def make(v):
            def value(): return v
            k = value()
            def build(x): return x * k
            return build
        work = make($)
    """,
    "a default of an inner function": """
        def make(k):
            def helper(x, k=k): return x * k
            def build(x): return helper(x)
            return build
        work = make($)
    """,
    "a named default": """
        def make(k):
            def build(x, *, by=k): return x * by
            return build
        work = make($)
    """,
    "a class": """
        def make(k):
            class Scaler:
                factor = k
                def go(self, x): return x * self.factor
            def build(x): return Scaler().go(x)
            return build
        work = make($)
    """,
    "a method of a class": """
        def make(k):
            class Scaler:
                def go(self, x): return x * k
            def build(x): return Scaler().go(x)
            return build
        work = make($)
    """,
    "a comprehension": """
        def make(ks):
            return [lambda x: x * k for k in ks]
        work = make([$])[0]
    """,
    "a lambda beside another": """
        def make(k): return [lambda x, k=k: x * k, lambda: k]
        work = make($)[0]
    """,
    "a comprehension outside of any function": """
        work = [lambda x: x * k for k in [$]][0]
    """,
    "a match": """
        def make(spec):
            match spec:
                case {"k": k}: pass
            def build(x): return x * k
            return build
        work = make({"k": $})
    """,
    "a project's module": """
        def make(k):
            import job
            held = getattr(job, "VALUES")[k]
            def build(x): return x * held
            return build
        VALUES = {2: 1, 3: 5}
        work = make($)
    """,
}


@pytest.mark.parametrize("form", OPEN)
def test_a_value_that_depends_on_a_parameter_counts(tmp_path: Path, form: str) -> None:
    assert changed(*both(tmp_path, OPEN[form]))


def test_a_nested_factory_and_a_factory_method(tmp_path: Path) -> None:
    assert changed(
        *both(
            tmp_path,
            """
            def outer(k):
                def make():
                    factor = k
                    def build(x): return x * factor
                    return build
                return make()
            work = outer($)
            """,
        )
    ) == {"job:outer.<locals>.make.<locals>.build (closure factor)"}
    assert changed(
        *both(
            tmp_path,
            """
            class Factory:
                def __init__(self, k): self.k = k
                def build(self):
                    k = self.k
                    def work(x): return x * k
                    return work
            work = Factory($).build()
            """,
        )
    ) == {"job:Factory.build.<locals>.work (closure k)"}


SETTLED = {
    "a clock": "now = __import__('time').time()",
    "an object of a library": "now = object()",
    "an object of a library in a condition": "now = None\n    if LIMIT: now = object()",
    "a memory of earlier runs": "now = {}",
}


@pytest.mark.parametrize("form", SETTLED)
def test_what_a_maker_makes_by_itself_counts_by_its_expression(tmp_path: Path, form: str) -> None:
    job = f"LIMIT = 1\ndef make(name):\n    {SETTLED[form]}\n    def build(): return now\n    return build\n"
    job += "work = make('a')\n"
    found = evidence(tmp_path, job)
    assert changed(found, evidence(tmp_path, job)) == set()
    assert not [name for name in found.functions if "(" in name]


def test_what_a_run_leaves_in_a_cell_does_not_count(tmp_path: Path) -> None:
    job = dedent("""
        def make(name):
            last, seen = None, []
            def remember(x):
                nonlocal last
                last = x
                seen.append(x)
            def build(x):
                remember(x)
                return last, seen, name
            return build
        work = make("a")
    """)
    with imported(write(tmp_path, {"job.py": job}), "job") as module:
        before = code_evidence(module.work)
        module.work(object())
        assert changed(before, code_evidence(module.work)) == set()


def test_what_follows_from_a_value_that_is_held_is_not_held_again(tmp_path: Path) -> None:
    job = """
        def make(url):
            connection = (object(), url)
            def build(): return connection, url
            return build
        work = make("$")
    """
    assert changed(*both(tmp_path, job)) == {f"{BUILD} (closure url)"}


def test_a_value_of_a_parameter_that_cannot_be_held_is_said(tmp_path: Path) -> None:
    job = """
        import pandas
        def make(rows):
            frame = pandas.DataFrame({"x": rows})
            def build(): return frame
            return build
        work = make([$])
    """
    found, _ = both(tmp_path, job)
    assert "was made with a pandas" in str(found.error)
    assert "DataFrame, whose content is not judged" in str(found.error)


def test_inner_functions_that_a_settled_value_comes_from_count(tmp_path: Path) -> None:
    job = """
        def make(name):
            def value(): return $
            k = value()
            def build(x): return x * k, name
            return build
        work = make("a")
    """
    assert changed(*both(tmp_path, job)) == {"job:make.<locals>.value"}


def test_a_name_that_a_maker_imports_is_followed(tmp_path: Path) -> None:
    files = {
        "job.py": dedent("""
            def make():
                from shop import parse
                from shop.parse import RATE
                def build(x): return parse.times(x) * RATE
                return build
            work = make()
        """),
        "shop/__init__.py": "",
        "shop/parse.py": "RATE = 2\ndef times(x): return x\ndef other(x): return x\n",
    }
    found = evidence(tmp_path, files)
    assert found.error is None
    assert {"shop.parse:RATE", "shop.parse:times"} < set(found.functions)
    assert "shop.parse:other" not in found.functions


class TestDagster:
    SPEC = """
        from dagster import AssetKey, AssetSpec, EnvVar, StaticPartitionsDefinition
        def make(spec):
            def build(x): return BODY
            return build
        work = make(VALUE)
    """

    @pytest.mark.parametrize(
        ("body", "value", "counts"),
        [
            ("spec.metadata['k']", "AssetSpec('a', metadata={'k': $})", True),
            ("spec.key.path", "AssetSpec('a$')", True),
            ("spec.tags", "AssetSpec('a', tags={'k': '$'})", True),
            ("spec.key.path", "AssetSpec('a', description='$')", False),
            ("str(spec)", "AssetSpec('a', metadata={'k': [$]})", True),
            ("spec.replace_attributes(key='b')", "AssetSpec('a', metadata={'k': $})", True),
            ("spec[0].metadata", "[AssetSpec('a', metadata={'k': $})]", True),
            ("spec", "AssetKey(['a', '$'])", True),
            ("spec.get_value()", "EnvVar('A$')", True),
            ("spec.get_partition_keys()", "StaticPartitionsDefinition(['$'])", True),
        ],
    )
    def test_what_an_object_of_dagsters_says_counts(
        self, tmp_path: Path, body: str, value: str, counts: bool
    ) -> None:
        job = self.SPEC.replace("BODY", body).replace("VALUE", value)
        assert changed(*both(tmp_path, job)) == ({f"{BUILD} (closure spec)"} if counts else set())

    def test_what_a_maker_takes_of_it_counts(self, tmp_path: Path) -> None:
        job = """
            from dagster import AssetSpec
            def make(spec):
                factor = spec.metadata["k"]
                def build(x): return factor, spec.key
                return build
            work = make(AssetSpec("a", metadata={"k": $}))
        """
        assert changed(*both(tmp_path, job)) == {f"{BUILD} (closure factor)"}

    def test_an_object_that_does_not_say_what_it_is_made_of_is_unknown(self, tmp_path: Path) -> None:
        job = """
            from dagster import asset
            def make(other):
                def build(x): return str(other)
                return build
            @asset
            def upstream(): return 1
            work = make(upstream)
        """
        found, _ = both(tmp_path, job)
        assert "AssetsDefinition, whose content is not judged" in str(found.error)
        found, _ = both(tmp_path, job.replace("str(other)", "other.key"))
        assert found.error is None


class TestValues:
    @pytest.mark.parametrize(
        "value",
        [
            "__import__('numpy').int64($)",
            "__import__('numpy').float64($)",
            "__import__('fractions').Fraction($)",
            "__import__('types').SimpleNamespace(k=$)",
            "Slotted($)",
            "Mode($)",
            "__import__('typing').Literal[$] | None",
            "__import__('typing').TypeVar('T$')",
            "{'k': [$]}.keys() | {$}",
            "__import__('helpers')",
        ],
    )
    def test_they_count(self, tmp_path: Path, value: str) -> None:
        job = dedent(f"""
            import enum
            class Mode(enum.Enum):
                A, B = 2, 3
            class Slotted:
                __slots__ = ("k",)
                def __init__(self, k): self.k = k
            def make(v):
                def build(): return v
                return build
            work = make({value})
        """)
        files = {"job.py": job, "helpers.py": "K = $\n"}
        before, after = (
            evidence(tmp_path, {name: text.replace("$", k) for name, text in files.items()}) for k in "23"
        )
        assert changed(before, after)

    def test_a_value_that_holds_itself_comes_to_an_end(self, tmp_path: Path) -> None:
        job = """
            def make(v):
                def build(): return v
                return build
            v = [$]
            v.append(v)
            work = make(v)
        """
        assert changed(*both(tmp_path, job)) == {f"{BUILD} (closure v)"}

    def test_a_type_of_pythons_own_is_no_unknown(self, tmp_path: Path) -> None:
        job = "def make(v):\n    def build(x): return v(x)\n    return build\nwork = make(int)\n"
        assert evidence(tmp_path, job).error is None

    def test_hashes_are_the_same_in_another_process(self, tmp_path: Path) -> None:
        job = dedent(TestDagster.SPEC).replace("BODY", "str(spec)")
        job = job.replace("VALUE", "[AssetSpec('a', metadata={'k': {1, 'b'}}), object, {'x', 'y', 'z'}]")
        root = write(tmp_path, {"job.py": job})
        program = (
            "import sys, json; sys.path[:0] = sys.argv[1:]\nimport job\n"
            "from ubunye_orchestrate.records.code import code_evidence\n"
            "print(json.dumps(dict(code_evidence(job.work).functions)))"
        )
        run = functools.partial(subprocess.run, capture_output=True, text=True, check=True)
        done = [run([sys.executable, "-c", program, str(root)]).stdout for _ in range(2)]
        assert json.loads(done[0]) == json.loads(done[1]) != {}
