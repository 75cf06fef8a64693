"""What a module does at its top, modules that are used as values, and names that no source binds."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import ClassVar

import pytest

from tests.records.projects import changed, evidence
from ubunye_orchestrate.records.code import CodeEvidence


def both(folder: Path, files: Mapping[str, str] | str) -> tuple[CodeEvidence, CodeEvidence]:
    """Return the evidence of a project with ``$`` as 2, and as 3."""
    files = {"job.py": files} if isinstance(files, str) else files
    first, second = (
        evidence(folder, {name: dedent(text).replace("$", value) for name, text in files.items()})
        for value in "23"
    )
    return first, second


HELPERS = {"helpers/__init__.py": "", "helpers/clean.py": "K = 1\ndef apply(x): return x * $\n"}


class TestModules:
    @pytest.mark.parametrize(
        "job",
        [
            "from helpers import clean\nSTEPS = [clean]\ndef work(x): return [s.apply(x) for s in STEPS]\n",
            "from helpers import clean\ndef work(x):\n    m = clean\n    return m.apply(x)\n",
            "import helpers.clean\nm = helpers.clean\ndef work(x): return m.apply(x)\n",
            "import helpers.clean\nm = helpers\ndef work(x): return m.clean.apply(x)\n",
            "import helpers.clean as h\ndef run(m, x): return m.apply(x)\ndef work(x): return run(h, x)\n",
            "from helpers import clean\ndef work(x): return getattr(clean, 'apply')(x)\n",
            "from helpers import clean\ndef work(x): return clean.__dict__['apply'](x)\n",
            "def work(x):\n    from helpers import clean\n    return vars(clean)['apply'](x)\n",
        ],
    )
    def test_a_module_as_a_value_is_followed_whole(self, tmp_path: Path, job: str) -> None:
        before, after = both(tmp_path, {"job.py": job, **HELPERS})
        assert changed(before, after) == {"helpers.clean:apply"}
        assert "helpers.clean:K" in before.functions

    def test_a_package_as_a_value_is_followed_with_what_it_offers(self, tmp_path: Path) -> None:
        files = {
            "job.py": "import helpers as h\nm = h\ndef work(x): return m.clean.apply(x)\n",
            **HELPERS,
            "helpers/__init__.py": "from . import clean\n",
        }
        assert changed(*both(tmp_path, files)) == {"helpers.clean:apply"}

    def test_its_own_means_count_only_where_they_are_used(self, tmp_path: Path) -> None:
        files = {
            "job.py": "import tool\nm = tool\ndef work(x): return m.go(x)\n",
            "tool.py": "from helpers import clean, other\ndef go(x): return clean.apply(x)\n",
            **HELPERS,
            "helpers/other.py": "def untouched(x): return x\n",
        }
        before, after = both(tmp_path, files)
        assert changed(before, after) == {"helpers.clean:apply"}
        assert "helpers.other:untouched" not in before.functions

    def test_modules_that_use_each_other_come_to_an_end(self, tmp_path: Path) -> None:
        files = {
            "job.py": "import a\nm = a\ndef work(): return m\n",
            "a.py": "import b\nB = [b]\ndef f(): return $\n",
            "b.py": "import a\nA = [a]\n",
        }
        assert changed(*both(tmp_path, files)) == {"a:f"}

    def test_what_a_module_says_of_itself_is_no_code(self, tmp_path: Path) -> None:
        files = {
            "job.py": "from helpers import clean\ndef work(): return clean.__name__, __file__\n",
            **HELPERS,
        }
        assert changed(*both(tmp_path, files)) == set()


LAZY = """
def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return len
"""


class TestNames:
    @pytest.mark.parametrize(
        ("job", "name"),
        [
            ("exec('K = 1')\ndef work(): return K\n", "job.K"),
            ("globals().update(K=1)\ndef work(): return K\n", "job.K"),
            ("import lazy\ndef work(): return lazy.f()\n", "lazy.f"),
            ("from lazy import f\ndef work(): return f()\n", "lazy.f"),
            ("import lazy\nlazy.filter = 1\ndef work(): return lazy.open\n", "lazy.open"),
            ("from lazy import *\nexec('K = 1')\ndef work(): return K\n", "job.K"),
        ],
    )
    def test_one_that_no_source_binds_is_unknown(self, tmp_path: Path, job: str, name: str) -> None:
        found = evidence(tmp_path, {"job.py": job, "lazy.py": LAZY})
        assert f"{name}, which job:work uses, is bound by no source" in str(found.error)

    @pytest.mark.parametrize(
        "job",
        [
            "def work(x): return len(x), __name__, ExceptionGroup, WindowsError\n",
            "from os.path import *\ndef work(x): return join(x)\n",
            "try:\n    from helpers import fast\nexcept ImportError:\n    fast = None\n"
            "def work(): return fast\n",
            "try:\n    import absent\nexcept ImportError as e:\n    WHY = e\n"
            "def work(): return WHY, absent.f\n",
            "def work():\n    import absent\n    return absent.f()\n",
            "from __future__ import annotations\nimport typing\nif typing.TYPE_CHECKING:\n"
            "    from helpers import clean\ndef work(x: clean.apply): return x\n",
            "class T:\n    K = 1\n    def go(self, k=K): return k, __class__\n    also = go\n"
            "def work(): return T()\n",
            "class T:\n    K = 1\n    def go(self, k=K): return k, __class__\nwork = T().go\n",
            "def outer(a):\n    b = a\n    def f(c=a): return a, b, c\n    return f\nwork = outer(1)\n",
            "work = [lambda x, k=k: x * k for k in [1]][0]\n",
            "for i in range(2):\n    def work(): return i\n",
            "def work():\n    global total\n    total = 1\n    return total\n",
            "import helpers.clean\nimport helpers\ndef work(x): return helpers.clean.apply(x)\n",
        ],
    )
    def test_ordinary_names_are_known(self, tmp_path: Path, job: str) -> None:
        assert both(tmp_path, {"job.py": job, **HELPERS})[0].error is None

    @pytest.mark.skipif(sys.version_info < (3, 12), reason="no such syntax")
    def test_parameters_of_types_are_known(self, tmp_path: Path) -> None:
        job = dedent("""
            class Box[T]:
                item: T
            type Pair[S] = tuple[S, S]
            def work[U: int](x: U) -> Pair[U]: return Box[U]
        """)
        assert evidence(tmp_path, job).error is None

    def test_a_part_that_a_package_imports_is_followed(self, tmp_path: Path) -> None:
        files = {
            "job.py": "import helpers\ndef work(x): return helpers.clean.apply(x)\n",
            **HELPERS,
            "helpers/__init__.py": "from . import clean\n",
        }
        assert changed(*both(tmp_path, files)) == {"helpers.clean:apply"}

    def test_a_package_binds_its_parts_by_importing_them(self, tmp_path: Path) -> None:
        files = {
            "job.py": "from helpers import go\ndef work(x): return go(x)\n",
            **HELPERS,
            "helpers/__init__.py": "from .clean import K\ndef go(x): return clean.apply(x)\n",
        }
        assert changed(*both(tmp_path, files)) == {"helpers.clean:apply"}


class TestChanges:
    CHANGES: ClassVar = {
        "a chain of calls": "CONF = {}\nCONF.setdefault('a', []).append($)\n",
        "an item of what a call returns": "CONF = {}\nCONF.setdefault('a', {})['b'] = $\n",
        "a kept result": "CONF = {}\nfirst = CONF.setdefault('a', $)\n",
        "setattr": "class CONF: k = 1\nsetattr(CONF, 'k', $)\n",
        "a function's argument": "import heapq\nCONF = []\nheapq.heappush(CONF, $)\n",
        "a comprehension": "CONF = []\n[CONF.append(i) for i in range($)]\n",
        "a condition around it": "import os\nCONF = {}\nif len(os.sep) < $:\n    CONF['a'] = 1\n",
        "a function of the module": "CONF = {}\ndef put(v): CONF['a'] = v\nput($)\n",
        "the body of a function of the module": "CONF = {}\ndef put(): CONF['a'] = $\nput()\n",
        "by way of another function": "CONF = {}\ndef put(v): CONF['a'] = v\ndef go(v): put(v)\ngo($)\n",
        "a function that is given it": "CONF = {}\ndef put(t, v): t['a'] = v\ndone = put(CONF, $)\n",
        "global": "CONF = None\ndef init():\n    global CONF\n    CONF = $\ninit()\n",
        "global, given": "def init(v):\n    global CONF\n    CONF = v\ninit($)\n",
        "match": "match (1, $):\n    case (_, CONF): pass\n",
        "match, the rest": "match {'a': $}:\n    case {**CONF}: pass\n",
        "match, a pattern": "match 2:\n    case $: CONF = 1\n    case _: CONF = 5\n",
        "a decorator": "CONF = {}\ndef reg(f):\n    CONF['f'] = f\n    return f\n@reg\ndef f(): return $\n",
        "a decorator with arguments": "CONF = {}\ndef reg(name):\n    def add(f):\n"
        "        CONF[name] = f\n"
        "        return f\n    return add\n@reg('a')\ndef f(): return $\n",
        "a decorator that is given it": "CONF = {}\ndef reg(to):\n    def add(f):\n"
        "        to['f'] = f\n        return f\n    return add\n@reg(CONF)\ndef f(): return $\n",
        "a class that registers itself": "CONF = []\ndef reg(c):\n    CONF.append(c)\n    return c\n"
        "@reg\nclass F: k = $\n",
    }

    @pytest.mark.parametrize("form", CHANGES)
    def test_what_changes_an_object_at_the_top_counts(self, tmp_path: Path, form: str) -> None:
        assert changed(*both(tmp_path, self.CHANGES[form] + "def work(): return CONF\n"))

    def test_what_is_set_in_an_imported_module_counts_where_it_is_set(self, tmp_path: Path) -> None:
        files = {
            "job.py": "from pk import conf\nconf.K = $\ndef work(): return conf.K\n",
            "pk/conf.py": "K = 1\n",
        }
        assert changed(*both(tmp_path, files)) == {"job:conf"}

    UNCHANGED: ClassVar = {
        "a log": "import logging\nlog = logging.getLogger()\nlog.info('%s %s', CONF, $)\nprint(CONF, $)\n",
        "a constant that is given": "NAME = 'a'\nitems = []\nitems.append((NAME, $))\n",
        "a function that is given": "items = []\nitems.append((helper, $))\n",
        "a result that is kept": "other = dict(CONF, k=$)\nlimit = CONF.get('a', $)\n",
        "a script's own part": "if __name__ == '__main__':\n    CONF.update(a=$)\n",
        "what Dagster is told": "import dagster\ndagster.define_asset_job(str(CONF), selection=str($))\n",
        "a decorator that changes nothing": "import functools\ndef twice(k):\n    return lambda f: f\n"
        "@twice(CONF)\ndef other(): return $\n",
    }

    @pytest.mark.parametrize("form", UNCHANGED)
    def test_what_changes_nothing_does_not_count(self, tmp_path: Path, form: str) -> None:
        job = "NAME = 'a'\nCONF = {}\ndef helper(): return 1\n" + self.UNCHANGED[form]
        assert changed(*both(tmp_path, job + "def work(): return CONF, NAME, helper()\n")) == set()
