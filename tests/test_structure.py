"""The shape of the code: who may import what, and how long a file may grow."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "attention").rglob("*.py"))

ALLOWED = {
    "gradio": {"page.py"},
    "matplotlib": {"figures.py", "figure_parts.py", "figure_layout.py"},
    "spaces": {"compute.py"},
}
TORCH_ALONE = {"module.py": {"trace"}, "trace.py": set()}  # of our own, what they may import


def imports(path: Path) -> set[str]:
    """The top-level names of all that a file imports, also inside functions; our own modules with a leading dot."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {"." * node.level + name.split(".")[0] for name in names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.name)
def test_each_library_is_imported_where_it_belongs(path):
    for library, files in ALLOWED.items():
        if library in imports(path):
            assert path.name in files, f"{path.name} imports {library}"


@pytest.mark.parametrize("name", TORCH_ALONE)
def test_the_mathematics_knows_torch_alone(name):
    own = {imported for imported in imports(ROOT / "attention" / name) if imported.startswith(".")}
    assert own <= {f".{allowed}" for allowed in TORCH_ALONE[name]}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.name)
def test_no_process_wide_state_of_the_libraries(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in [node.module or ""]}
    seeds = {"torch.manual_seed", "random.seed", "np.random.seed"}
    assert not {name for name in used if "pyplot" in name} | used & seeds


def test_explorer_modules_import_one_another_without_a_circle():
    folder = ROOT / "assets" / "explorer"
    graph = {}
    for path in folder.glob("*.js"):
        lines = path.read_text(encoding="utf-8").splitlines()
        graph[path.name] = {line.split('"./')[1].split('"')[0] for line in lines if line.startswith("import ")}
    assert all(target in graph for targets in graph.values() for target in targets)
    done: set[str] = set()
    while rest := {name: targets - done for name, targets in graph.items() if name not in done}:
        free = {name for name, targets in rest.items() if not targets}
        assert free, f"a circle among {sorted(rest)}"
        done |= free
