"""`spaces` comes before torch wherever both are: ZeroGPU replaces parts of torch as it is imported."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [*sorted(ROOT.glob("attention/**/*.py")), *ROOT.glob("app.py")]
MAY_IMPORT_SPACES = {"app.py", "attention/compute.py"}
HARMLESS = {"__future__", *sys.stdlib_module_names}


def imports(path):
    """Names of the modules that a file imports, in the order of its lines, wherever they stand in it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.lineno, "." * node.level + (node.module or ""))]
    return [name for _, name in sorted(found, key=lambda item: item[0])]


def may_load_torch(name):
    return name.split(".")[0] not in HARMLESS | {"spaces"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_spaces_is_imported_first_and_only_where_it_belongs(path):
    names = imports(path)
    place = path.relative_to(ROOT).as_posix()
    assert ("spaces" in names) == (place in MAY_IMPORT_SPACES)
    if "spaces" in names:
        early = [name for name in names[: names.index("spaces")] if may_load_torch(name)]
        assert not early, f"{place} imports {early[0]} before spaces"


def test_the_package_imports_compute_before_anything_that_needs_torch():
    assert next(name for name in imports(ROOT / "attention" / "__init__.py") if may_load_torch(name)) == ".compute"


WATCH = """
import json, sys
order = []
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("spaces", "torch"):
            order.append(name)
sys.meta_path.insert(0, Watch())
import {module}
print("ORDER", json.dumps(order))
"""


@pytest.mark.parametrize("module", ["attention", pytest.param("app", marks=pytest.mark.zerogpu)])
def test_spaces_is_looked_for_first_when_it_runs(module):
    if module == "app" and not (ROOT / "app.py").exists():
        pytest.skip("there is no app.py yet")
    code = WATCH.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("ORDER "))
    assert json.loads(line.removeprefix("ORDER "))[:1] == ["spaces"]
