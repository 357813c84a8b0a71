#!/usr/bin/env python3
"""Checks that docs/reference.md names every C function and every name of the Python modules.

Usage: reference_test.py [ROOT]   Prints what is missing and what is too much, and exits 1.
"""

import ast
import re
import sys
from pathlib import Path


def rows(page, section):
    """The first and the second column of a section's table."""
    text = re.search(rf"^## {re.escape(section)}$(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    lines = text[1].splitlines() if text else []
    return [[cell.strip() for cell in line.strip("|").split("|")][:2]
            for line in lines if line.startswith("| `")]


def names(cell):
    return re.findall(r"`(\w+)`", cell)


def compare(what, listed, there):
    problems = [f"docs/reference.md lacks {what}{name}" for name in there if name not in listed]
    problems += [f"docs/reference.md has {what}{name}, which is not there" for name in listed
                 if name not in there]
    problems += [f"docs/reference.md has {what}{name} twice" for name in sorted({*listed})
                 if listed.count(name) > 1]
    return problems


def exported(file):
    """`__all__` of a module, which is not imported: it may need what is not installed."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        if any(isinstance(each, ast.Name) and each.id == "__all__" for each in targets):
            return ast.literal_eval(node.value)
    return None


def public_modules(folder):
    """The modules of the package that say what they export, but for the package itself."""
    files = [*folder.glob("[a-z]*.py"), *folder.glob("[a-z]*/__init__.py")]
    for file in sorted(files):
        name = file.parent.name if file.name == "__init__.py" else file.stem
        there = exported(file)
        if there is not None and name != "errors":  # those are under `keel`
            yield f"keel.{name}", there


def check(root):
    page = (root / "docs" / "reference.md").read_text(encoding="utf-8")
    functions = [line.split()[1] for line in
                 (root / "src" / "capi" / "functions.txt").read_text(encoding="utf-8").splitlines()
                 if line.strip() and not line.startswith("#")]
    listed = [f"keel_{name}" for row in rows(page, "C interface") for name in names(row[0])]
    problems = compare("", listed, functions)
    modules = {row[0].strip("`"): row[1] for row in rows(page, "Python")}
    for module, there in public_modules(root / "python" / "keel"):
        if module not in modules:
            problems.append(f"docs/reference.md lacks the module {module}")
        else:
            problems += compare(f"{module}.", names(modules[module]), there)
    return problems


def main(argv):
    problems = check(Path(argv[1]) if len(argv) > 1 else Path(__file__).resolve().parents[1])
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
