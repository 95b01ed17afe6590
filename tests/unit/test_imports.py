"""No circle of imports: which module fails would depend on which is imported first."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import harness

PACKAGE = Path(harness.__file__).parent
MODULES = {
    ".".join(("harness", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
    if "data" not in path.relative_to(PACKAGE).parts
}


def list_imported(path):
    """Modules that are imported while the module itself is."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_no_module_imports_itself_by_way_of_others():
    graph = {name: set(list_imported(path)) & MODULES.keys() - {name} for name, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None
