"""What counts as an asset's own code, what it reaches, and what is honestly unknown."""

from __future__ import annotations

import functools
import json
import linecache
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.records.projects import changed, evidence, imported, write
from ubunye_orchestrate.records import syntax
from ubunye_orchestrate.records.code import code_evidence

JOB = '''
import math
from dagster import asset

LIMIT = 5

def helper(x):
    """What it does."""
    return math.sqrt(x) + LIMIT

def unused(x):
    return x

def work(rows, *, scale=1):
    """Reads rows."""
    kept = [helper(row) * scale for row in rows if row]  # a comment
    return f"{kept!r:>{10}} of {len(rows)}"
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # a comment", ""),
        ('"""Reads rows."""', '"""Reads all of them."""'),
        ('    """Reads rows."""\n', ""),
        ('    """What it does."""\n', "\n\n\n"),
        (
            "kept = [helper(row) * scale for row in rows if row]",
            "kept = [\n  (helper(row) * scale)\n  for row in rows if (row)\n  ]",
        ),
        ("def unused(x):\n    return x", "def unused(y):\n    return y + 1"),
        ("rows, *, scale=1", "rows,\n    *,\n    scale = 1,\n"),
        ('f"{kept!r:>{10}} of {len(rows)}"', "f'{kept!r:>{10}} of ' f'{len(rows)}'"),
        ("return math.sqrt(x) + LIMIT", "pass\n    return (math.sqrt(x)) + LIMIT"),
        ("import math\n", "import math\nimport json\n"),
    ],
)
def test_what_says_the_same_has_the_same_evidence(tmp_path: Path, old: str, new: str) -> None:
    assert old in JOB
    before, after = evidence(tmp_path, JOB), evidence(tmp_path, JOB.replace(old, new))
    assert changed(before, after) == set()
    assert before.folder_hash != after.folder_hash


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("scale=1", "scale=2", {"job:work"}),
        ("if row", "if not row", {"job:work"}),
        ("!r", "!s", {"job:work"}),
        (":>{10}", ":>{11}", {"job:work"}),
        (" of ", " von ", {"job:work"}),
        ("+ LIMIT", "- LIMIT", {"job:helper"}),
        ("LIMIT = 5", "LIMIT = 6", {"job:LIMIT"}),
        ("LIMIT = 5", "LIMIT = 5.0", {"job:LIMIT"}),
        ("LIMIT = 5", 'LIMIT = "5"', {"job:LIMIT"}),
        ("LIMIT = 5", "LIMIT = 5\nLIMIT += 1", {"job:LIMIT"}),
        ("def helper(x):", "@staticmethod\ndef helper(x):", {"job:helper"}),
        ("def helper(x):", "async def helper(x):", {"job:helper"}),
        ("def helper(x):", "def helper(x: int):", {"job:helper"}),
        ("helper(row)", "unused(row)", {"job:work", "job:helper", "job:unused", "job:LIMIT"}),
    ],
)
def test_what_says_something_else_is_named(tmp_path: Path, old: str, new: str, names: set[str]) -> None:
    assert old in JOB
    assert changed(evidence(tmp_path, JOB), evidence(tmp_path, JOB.replace(old, new))) == names


def test_the_evidence_of_a_function(tmp_path: Path) -> None:
    found = evidence(tmp_path, JOB)
    assert found.function == "job:work"
    assert list(found.functions) == ["job:LIMIT", "job:helper", "job:work"]
    assert found.error is None
    assert Path(str(found.folder)).name.startswith("project-")
    assert found.as_record() == {"function": "job:work", "functions": dict(found.functions), "error": None}
    json.dumps(found.as_record())


def test_the_hash_of_a_text_is_the_same_on_every_python(tmp_path: Path) -> None:
    # If this fails on a new Python, the tree of some syntax changed: join the two forms in syntax.py.
    job = dedent('''
        LIMITS: dict[str, int] = {"a": 0x10, **{"b": 1_000}}

        class Base:
            """Doc."""
            rate: float = 1e3
            def go(self, /, a, *args, b=..., **kw) -> "Base":
                return self

        def work(rows):
            match rows:
                case {"a": [first, *rest], **more} if first:
                    yield from rest
                case Base(rate=1.5) | None:
                    pass
            with open("x") as f, open("y"):
                data = [y := f.read(), *(lambda z: z)(b"\\x00")]
            try:
                del data[1:2, ::3]
            except (OSError, ValueError) as e:
                raise KeyError from e
            else:
                assert LIMITS, f"{data!r} {{}} {y:>{LIMITS['a']}.2f}" "tail" f"{data=}"
            finally:
                global total
                total = 1 if not data else -2j
            return {k: v async for k, v in Base().go(1)} if 1 < 2 <= 3 else None
    ''')
    job = job.replace("async for", "for")
    hashes = {name: value[7:19] for name, value in evidence(tmp_path, job).functions.items()}
    assert hashes == GOLDEN


# The same on Python 3.10 to 3.13.
GOLDEN = {"job:Base": "30a2873112e0", "job:LIMITS": "490f0cefa332", "job:work": "0b15af08f35d"}


class TestReach:
    def test_through_imports_of_every_form(self, tmp_path: Path) -> None:
        files = {
            "job.py": """
                import shop.clean
                import shop.parse as p
                from shop import facts, late as l
                from shop.clean import strip as s
                from shop.star import *

                def work(x):
                    from shop.local import inner
                    import shop.deep.er
                    return shop.clean.tidy(p.times(x)), facts.RATE, s(x), starred(x), inner(x), \\
                        shop.deep.er.down(x), l.later(x), shop.exported(x)
            """,
            "shop/__init__.py": "from .clean import renamed as exported\n",
            "shop/clean.py": """
                from ._private import base as _base
                def tidy(x): return _base(x)
                def strip(x): return x.strip()
                def renamed(x): return x
                def untouched(x): return x
            """,
            "shop/_private.py": "from .. import job\ndef base(x): return x\n",
            "shop/parse.py": "from . import facts\ndef times(x): return x * facts.RATE\n",
            "shop/facts.py": "RATE = 1 if False else 2\nOTHER = 3\n",
            "shop/star.py": "def starred(x): return x\ndef _hidden(x): return x\n",
            "shop/local.py": "def inner(x): return x\n",
            "shop/deep/er.py": "def down(x): return x\n",
            "shop/late.py": "def later(x): return x\n",
        }
        files = {name: dedent(text) for name, text in files.items()}
        files["shop/_private.py"] = "def base(x): return x\n"
        found = evidence(tmp_path, files)
        assert found.error is None
        assert set(found.functions) == {
            "job:work",
            *("shop.clean:tidy", "shop.clean:strip", "shop.clean:renamed", "shop._private:base"),
            *("shop.parse:times", "shop.facts:RATE", "shop.star:starred", "shop.local:inner"),
            *("shop.deep.er:down", "shop.late:later"),
        }

    def test_what_a_package_binds_goes_before_its_module_of_that_name(self, tmp_path: Path) -> None:
        files = {
            "job.py": "import shop\nfrom shop import parse\ndef work(x): return shop.parse(x), parse(x)\n",
            "shop/__init__.py": "import shop.parse\ndef parse(x): return x\n",
            "shop/parse.py": "def x(): return 1\n",
        }
        assert set(evidence(tmp_path, files).functions) == {"job:work", "shop:parse"}

    def test_a_module_is_found_without_being_imported(self, tmp_path: Path) -> None:
        root = write(
            tmp_path,
            {
                "job.py": "def work(x):\n    from shop.lazy import slow\n    return slow(x)\n",
                "shop/__init__.py": "",
                "shop/lazy.py": "raise SystemExit('imported')\ndef slow(x): return x\n",
            },
        )
        with imported(root, "job") as job:
            assert "shop.lazy:slow" in code_evidence(job.work).functions
            assert "shop" not in sys.modules

    def test_classes_with_their_methods_and_bases(self, tmp_path: Path) -> None:
        job = dedent("""
            class Base:
                def shared(self): return deep(1)
            class Cleaner(Base):
                RULES = {"a": 1}
                def go(self, x): return other(x)
            def deep(x): return x
            def other(x): return x
            CLEANER = Cleaner()
            def work(x): return CLEANER.go(x)
        """)
        before = evidence(tmp_path, job)
        assert set(before.functions) == {
            f"job:{name}" for name in ("work", "CLEANER", "Cleaner", "Base", "deep", "other")
        }
        after = evidence(tmp_path, job.replace("{'a': 1}", "").replace('{"a": 1}', '{"a": 2}'))
        assert changed(before, after) == {"job:Cleaner"}

    def test_a_table_that_is_filled_after_it_was_made(self, tmp_path: Path) -> None:
        job = dedent("""
            from functools import singledispatch
            TABLE, NAMES = {}, []
            TABLE["a"] = 1
            NAMES.append("x")
            for number in range(3):
                NAMES.append(number)
            def first(x): return x
            TABLE["f"] = first
            @singledispatch
            def convert(x): return x
            @convert.register
            def _(x: int): return x + 1
            def work(x): return TABLE["f"](convert(x)), NAMES
        """)
        before = evidence(tmp_path, job)
        assert "job:first" in before.functions
        for old, new, name in (
            ('TABLE["a"] = 1', 'TABLE["a"] = 2', "job:TABLE"),
            ('NAMES.append("x")', 'NAMES.append("y")', "job:NAMES"),
            ("return x + 1", "return x + 2", "job:convert"),
        ):
            assert name in changed(before, evidence(tmp_path, job.replace(old, new)))

    def test_a_condition_around_a_definition_counts(self, tmp_path: Path) -> None:
        job = "import os\nif os.sep == '/':\n    LIMIT = 1\nelse:\n    LIMIT = 2\ndef work(): return LIMIT\n"
        assert changed(evidence(tmp_path, job), evidence(tmp_path, job.replace("==", "!="))) == {"job:LIMIT"}

    def test_a_condition_around_a_function_counts_where_the_function_is_called(self, tmp_path: Path) -> None:
        job = "import os\nif os.sep == '/':\n    def f(): return 1\ndef work(): return f()\n"
        assert changed(evidence(tmp_path, job), evidence(tmp_path, job.replace("==", "!="))) == {"job:f"}

    def test_a_method_does_not_see_the_names_of_its_class(self, tmp_path: Path) -> None:
        job = dedent("""
            def rate(): return 1
            def scale(): return 1
            class Task:
                rate = 5
                doubled = rate * 2
                def __call__(self): return rate()
                def scale(self): return 1
            def work(): return Task()()
        """)
        assert {"job:rate", "job:scale"} & set(evidence(tmp_path, job).functions) == {"job:rate"}

    def test_names_that_are_bound_inside_are_not_the_modules(self, tmp_path: Path) -> None:
        job = dedent("""
            def a(): return 1
            def b(): return 1
            def c(): return 1
            def d(): return 1
            def e(): return 1
            def f(): return 1
            def g(): return 1
            def work(a, *args):
                b = a
                [c for c in args]
                (lambda d: d)(1)
                try: pass
                except ValueError as e: print(e)
                def f(): return b
                import json as g
                return g.dumps(f())
        """)
        assert set(evidence(tmp_path, job).functions) == {"job:work"}

    def test_names_that_are_the_modules_although_bound_elsewhere_inside(self, tmp_path: Path) -> None:
        job = dedent("""
            def a(): return 1
            def b(): return [1]
            def c(): return 1
            def d(): return 1
            total = 1
            def work(x):
                global total
                total += a()
                return [b for b in b()], [c for x in [1]], [(lambda d: d)(d) for _ in x]
        """)
        assert set(evidence(tmp_path, job).functions) == {
            f"job:{name}" for name in ("work", "a", "b", "c", "d", "total")
        }

    def test_functions_that_call_each_other_come_to_an_end(self, tmp_path: Path) -> None:
        job = (
            "def work(n): return odd(n)\ndef odd(n): return even(n)\ndef even(n): return odd(n) or work(n)\n"
        )
        assert set(evidence(tmp_path, job).functions) == {"job:work", "job:odd", "job:even"}

    def test_libraries_do_not_count(self, tmp_path: Path) -> None:
        job = dedent("""
            import json, numpy as np
            from pathlib import Path
            def work(): return json.dumps(np.mean([1])), Path()
        """)
        assert set(evidence(tmp_path, job).functions) == {"job:work"}

    def test_dagsters_decorators_do_not_count_and_others_do(self, tmp_path: Path) -> None:
        job = dedent("""
            import dagster as dg
            from dagster import asset
            import functools
            RETRIES = 3
            DESCRIPTION = "old"
            def retry(times):
                def decorate(function):
                    @functools.wraps(function)
                    def wrapper(*args):
                        for _ in range(times): return function(*args)
                    return wrapper
                return decorate
            @retry(RETRIES)
            def work(): return 1
            @asset(description=DESCRIPTION, owners=["a@b.com"])
            def table(): return 1
            @dg.asset(group_name="x")
            def other(): return 1
            def inner_of(a): return a.op.compute_fn.decorated_fn
            table_function, other_function = inner_of(table), inner_of(other)
        """)
        before = evidence(tmp_path, job)
        assert "job:RETRIES" in before.functions
        assert "job:work" in changed(before, evidence(tmp_path, job.replace("@retry(RETRIES)", "@retry(4)")))
        for target in ("table_function", "other_function"):
            shown = evidence(tmp_path, job, target)
            later = job.replace('"old"', '"new"').replace("a@b.com", "d@e.com").replace('"x"', '"y"')
            assert len(shown.functions) == 1
            assert changed(shown, evidence(tmp_path, later, target)) == set()


class TestForms:
    FORMS = dedent("""
        import functools
        def helper(x): return x + 1
        def timed(function):
            @functools.wraps(function)
            def wrapper(*args): return function(*args)
            return wrapper
        def unnamed(function):
            def wrapper(*args): return function(*args)
            return wrapper
        def make(name, threshold, clean):
            extra = threshold + 1
            def build(x): return clean(x) > threshold + extra, name
            return build

        @timed
        @timed
        def wrapped(x): return helper(x)
        @functools.lru_cache
        def cached(x): return helper(x)
        held = unnamed(wrapped)
        made = make("a", 5, helper)
        made_of_lambda = make("a", 5, lambda x: helper(x))
        bound = functools.partial(functools.partial(helper, 1), x=2)
        one, two = (lambda x: x + 1), (lambda x: x + 2)

        class Task:
            def __init__(self, limit): self.limit = limit
            def __call__(self, x): return helper(x)
            def run(self, x): return helper(x)
            @staticmethod
            def static(x): return helper(x)
            @classmethod
            def of_class(cls, x): return helper(x)
        class Sub(Task): ...
        called, method, sub = Task(5), Task(5).run, Sub(7)
        static, of_class = Task.static, Task.of_class
    """)

    @pytest.mark.parametrize(
        ("target", "function", "reached"),
        [
            ("wrapped", "job:wrapped", {"job:timed", "job:timed.<locals>.wrapper"}),
            ("cached", "job:cached", set()),
            ("held", "job:unnamed.<locals>.wrapper", {"job:wrapped", "job:unnamed"}),
            ("made", "job:make.<locals>.build", {"job:make", "job:make.<locals>.build (closure threshold)"}),
            ("made_of_lambda", "job:make.<locals>.build", {"job:<lambda>"}),
            ("bound", "job:helper", {"job:helper (partial)"}),
            ("called", "job:Task.__call__", {"job:Task", "job:Task.__call__ (instance)"}),
            ("sub", "job:Task.__call__", {"job:Task", "job:Sub", "job:Task.__call__ (instance)"}),
            ("method", "job:Task.run", {"job:Task", "job:Task.run (instance)"}),
            ("static", "job:Task.static", set()),
            ("of_class", "job:Task.of_class", set()),
            ("Task", "job:Task", set()),
            ("one", "job:<lambda>", set()),
        ],
    )
    def test_every_form_of_a_function_is_followed(
        self, tmp_path: Path, target: str, function: str, reached: set[str]
    ) -> None:
        found = evidence(tmp_path, self.FORMS, target)
        assert found.error is None
        assert found.function == function
        assert reached <= set(found.functions)
        if target != "one":
            later = evidence(
                tmp_path, self.FORMS.replace("return x + 1\ndef timed", "return x + 3\ndef timed"), target
            )
            assert "job:helper" in changed(found, later)

    @pytest.mark.parametrize(
        ("target", "old", "new", "names"),
        [
            ("made", 'make("a", 5', 'make("a", 6', {"job:make.<locals>.build (closure threshold)"}),
            ("made", "extra = threshold + 1", "extra = threshold", {"job:make"}),
            ("made", "return clean(x) >", "return clean(x) <", {"job:make.<locals>.build"}),
            ("made", "return build", "return timed(build)", None),
            ("bound", "x=2", "x=3", {"job:helper (partial)"}),
            ("called", "Task(5)", "Task(6)", {"job:Task.__call__ (instance)"}),
            (
                "wrapped",
                "def wrapper(*args): return function(*args)",
                "def wrapper(*args): return function()",
                None,
            ),
            ("one", "x + 2", "x + 4", {"job:<lambda>"}),  # lambdas of one line are not told apart
        ],
    )
    def test_a_change_is_named(
        self, tmp_path: Path, target: str, old: str, new: str, names: set[str] | None
    ) -> None:
        assert old in self.FORMS
        found = changed(
            evidence(tmp_path, self.FORMS, target), evidence(tmp_path, self.FORMS.replace(old, new), target)
        )
        assert found == names if names is not None else found

    def test_other_functions_of_a_factory_do_not_count(self, tmp_path: Path) -> None:
        job = dedent("""
            def make(limit):
                def build(x): return x > limit
                def other(x): return 1
                return build, other
            work, rest = make(5)
        """)
        assert (
            changed(evidence(tmp_path, job), evidence(tmp_path, job.replace("return 1", "return 2"))) == set()
        )

    def test_values_that_a_function_is_made_with(self, tmp_path: Path) -> None:
        job = dedent("""
            import dataclasses, datetime, enum, functools, re, logging, zoneinfo
            import numpy as np
            from decimal import Decimal
            from pathlib import Path
            import dagster
            class Mode(enum.Enum):
                FAST = 1
            @dataclasses.dataclass
            class Config:
                limit: int
            def make(values):
                def build(x): return values
                return build
            work = make([
                1, 2.5, "x", b"y", None, ..., {"a": {1, 2}}, (Mode.FAST, re.compile("a+")), Decimal("1.50"),
                datetime.date(2024, 1, 1), zoneinfo.ZoneInfo("UTC"), Path("a"), Config(5),
                logging.getLogger(), dagster.AssetKey("x"), len, Config, re, "a".upper, str.lower, np.add,
                functools.partial(len, [1]), functools.partial(np.mean)])
        """)
        before = evidence(tmp_path, job)
        assert set(before.functions) == {
            "job:make.<locals>.build",
            "job:make.<locals>.build (closure values)",
            *("job:make", "job:Config", "job:make.<locals>.build (partial)"),
        }
        for old, new in (
            ("2.5", "2.6"),
            ("a+", "b+"),
            ("1.50", "1.5"),
            ("Config(5)", "Config(6)"),
            ("1, 1", "1, 2"),
            ("{1, 2}", "{1}"),
            ('"a".upper', '"b".upper'),
            ("np.add", "np.subtract"),
        ):
            assert old in job
            later = evidence(tmp_path, job.replace(old, new))
            assert changed(before, later) == {"job:make.<locals>.build (closure values)"}

    def test_sets_have_one_text_in_every_process(self, tmp_path: Path) -> None:
        job = 'def make(v):\n    def build(): return v\n    return build\nwork = make({"a", "b", "c", "d"})\n'
        again = job.replace('{"a", "b", "c", "d"}', '{"d", "c", "b", "a"}')
        assert changed(evidence(tmp_path, job), evidence(tmp_path, again)) == set()

    def test_a_lambda_beside_another_does_not_hide_it(self, tmp_path: Path) -> None:
        job = "a = lambda x: x + 1\nb = lambda x: x + 2\ndef work(x): return HANDLERS\nHANDLERS = [a, b]\n"
        for old, new in (("+ 1", "+ 3"), ("+ 2", "+ 4")):
            assert changed(evidence(tmp_path, job), evidence(tmp_path, job.replace(old, new)))
        made = dedent("""
            def make(f, g):
                def build(x): return f(x) + g(x)
                return build
            work = make(
                lambda x: x + 1,
                lambda x: x + 2,
            )
        """)
        for old, new in (("+ 1", "+ 3"), ("+ 2", "+ 4")):
            assert changed(evidence(tmp_path, made), evidence(tmp_path, made.replace(old, new))) == {
                "job:<lambda>"
            }


class TestUnknown:
    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            (len, "builtin_function_or_method has no Python source"),
            (None, "NoneType has no Python source"),
            (json, "module has no Python source"),
            (json.dumps, "no function of the user's own"),
            (functools.partial(len), "has no Python source"),
            (eval("lambda: 1"), "has no source (<string>): it was typed in or made at run time"),
            (type("Made", (), {}), "was made at run time"),
        ],
        ids=str,
    )
    def test_what_has_no_source_says_so(self, value: object, reason: str) -> None:
        found = code_evidence(value)
        assert found.error is not None
        assert reason in found.error
        assert "\n" not in found.error

    def test_a_function_made_by_exec(self, tmp_path: Path) -> None:
        found = evidence(
            tmp_path,
            "space = {'__name__': __name__}\nexec('def work(): return 1', space)\nwork = space['work']\n",
        )
        assert "typed in or made at run time" in str(found.error)
        assert found.functions == {}

    def test_a_function_made_by_dagster_itself(self, tmp_path: Path) -> None:
        job = "import dagster\nwork = dagster.RetryPolicy.calculate_delay\n"
        assert "no function of the user's own" in str(evidence(tmp_path, job).error)

    def test_a_value_that_is_not_judged(self, tmp_path: Path) -> None:
        job = dedent("""
            import array
            def make(v):
                def build(): return v
                return build
            work = make(array.array("i", [1]))
        """)
        found = evidence(tmp_path, job)
        assert "job:make.<locals>.build was made with a array.array, whose content is not judged" in str(
            found.error
        )
        assert "job:make.<locals>.build" in found.functions

    def test_a_value_that_the_maker_computes_is_judged_by_its_expression(self, tmp_path: Path) -> None:
        job = dedent("""
            import time
            def make():
                now = time.time()
                def build(): return now
                return build
            work = make()
        """)
        assert changed(evidence(tmp_path, job), evidence(tmp_path, job)) == set()

    def test_a_file_that_changed_after_it_was_loaded(self, tmp_path: Path) -> None:
        root = write(tmp_path, {"job.py": JOB, "lib.py": ""})
        with imported(root, "job") as job:
            assert code_evidence(job.work).error is None
            (root / "job.py").write_text(JOB.replace("if row", "if not row"))
            assert "job.py changed after work was loaded" in str(code_evidence(job.work).error)
            (root / "job.py").write_text(JOB.replace("+ LIMIT", "- LIMIT"))
            assert "job.py changed after helper was loaded" in str(code_evidence(job.work).error)
            (root / "job.py").write_text("\n\n" + JOB)
            assert "job.py changed after" in str(code_evidence(job.work).error)
            (root / "job.py").write_text(JOB + "\n# at the end\n")
            assert code_evidence(job.work).error is None

    def test_a_file_that_is_gone_or_no_longer_python(self, tmp_path: Path) -> None:
        root = write(tmp_path, {"job.py": JOB})
        with imported(root, "job") as job:
            (root / "job.py").write_text("def work(:\n")
            assert "job.py cannot be read as Python" in str(code_evidence(job.work).error)
            (root / "job.py").unlink()
            linecache.clearcache()
            assert "has no source" in str(code_evidence(job.work).error)

    def test_a_module_of_the_project_without_source(self, tmp_path: Path) -> None:
        root = write(
            tmp_path,
            {"job.py": "import native\ndef work(x): return native.fast(x)\n", "native.py": "fast = len\n"},
        )
        with imported(root, "job") as job:
            sys.modules["native"].__file__ = str(root / "native.so")
            assert "native.so has no Python source" in str(code_evidence(job.work).error)

    def test_deep_source_is_said(self, tmp_path: Path) -> None:
        job = "def work(x):\n    return " + " + ".join(["x"] * 900) + "\n"
        found = evidence(tmp_path, job)
        assert found.error is None or "nested too deeply" in found.error

    def test_a_folder_that_cannot_be_hashed_is_said(self, tmp_path: Path) -> None:
        root = write(tmp_path, {"job.py": JOB})
        (root / "broken.py").symlink_to("nothing")
        with imported(root, "job") as job:
            found = code_evidence(job.work)
        assert found.folder_hash is None
        assert "broken.py cannot be read" in str(found.error)
        assert set(found.functions) == {"job:work", "job:helper", "job:LIMIT"}


class TestProjects:
    def test_an_installed_package_is_a_project_of_its_own(self, tmp_path: Path) -> None:
        files = {
            "site-packages/mine/__init__.py": "",
            "site-packages/mine/job.py": "import other\nfrom .lib import h\ndef work(): h(other.f())\n",
            "site-packages/mine/lib.py": "def h(): return 1\n",
            "site-packages/other.py": "def f(): return 1\n",
        }
        root = write(tmp_path, files)
        with imported(root / "site-packages", "mine.job") as job:
            found = code_evidence(job.work)
        assert found.error is None
        assert set(found.functions) == {"mine.job:work", "mine.lib:h"}

    def test_a_librarys_wrapper_that_names_nothing_is_followed_inside(self, tmp_path: Path) -> None:
        root = write(
            tmp_path,
            {
                "site-packages/wraps.py": "def wrap(f):\n    def call(): return f()\n    return call\n",
                "job.py": "from wraps import wrap\ndef inner(): return 1\nwork = wrap(inner)\n",
            },
        )
        sys.path.insert(0, str(root / "site-packages"))
        try:
            with imported(root, "job") as job:
                found = code_evidence(job.work)
        finally:
            sys.path.remove(str(root / "site-packages"))
        assert found.error is None
        assert found.function == "job:inner"

    def test_a_project_ends_at_its_project_file(self, tmp_path: Path) -> None:
        root = write(
            tmp_path,
            {
                "src/mine/__init__.py": "",
                "src/mine/job.py": "import shared, outside\ndef work(): return shared.f(), outside.g()\n",
                "libs/shared.py": "def f(): return 1\n",
            },
        )
        outside = write(tmp_path, {"outside.py": "def g(): return 1\n"})
        for path in (root / "libs", outside):
            sys.path.insert(0, str(path))
        try:
            with imported(root / "src", "mine.job") as job, imported(outside, "outside"):
                found = code_evidence(job.work)
        finally:
            for path in (root / "libs", outside):
                sys.path.remove(str(path))
        assert set(found.functions) == {"mine.job:work", "shared:f"}

    def test_a_notebooks_cells(self) -> None:
        space: dict[str, object] = {"__name__": "__main__"}
        space["shape"] = object()  # an attribute's name is no global
        cells = ["def helper(x): return x.shape + LIMIT\n", "LIMIT = 5\n", "def work(x): return helper(x)\n"]
        for number, cell in enumerate(cells):
            name = f"/tmp/ipykernel_1/{number}.py"
            linecache.cache[name] = (len(cell), None, cell.splitlines(True), name)
            exec(compile(cell, name, "exec"), space)
        found = code_evidence(space["work"])
        assert found.error is None
        assert (found.folder, found.folder_hash) == (None, None)
        assert set(found.functions) == {"__main__:work", "__main__:helper", "__main__:work (global LIMIT)"}
        space["LIMIT"] = 6
        assert changed(found, code_evidence(space["work"])) == {"__main__:work (global LIMIT)"}


def test_reading_is_done_once_for_each_state_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path, {"job.py": JOB})
    with imported(root, "job") as job:
        first = code_evidence(job.work)
        parsed: list[object] = []
        monkeypatch.setattr(syntax.ast, "parse", lambda *a, **k: parsed.append(a))
        assert code_evidence(job.work) == first
        assert parsed == []
