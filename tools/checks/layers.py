#!/usr/bin/env python3
"""Checks that every #include in src/, include/, tools/, python/ and integrations/ points upwards.

The layers are listed bottom-up in LAYERS, and in src/README.md in the same order; a folder may
include only itself and folders above its own line. src/README.md says the rule in full.

Usage: layers.py [ROOT]     Prints file:line for every violation and exits 1 if there is one.
"""

import re
import sys
from pathlib import Path

LAYERS = [
    "base",
    "hal",
    "hal/conformance",
    "drivers",
    "telemetry",
    "memory",
    "graph",
    "task",
    "trace",
    "capi",
]
# Beside src/, and free to include any layer.
OUTER = ["tools", "python", "integrations"]
# Only tests, and the layer itself, may include these.
TEST_ONLY = {"hal/conformance"}
# Stand-ins for vendors' libraries, which only tests load: the core runs on the simulated device, and
# a vendor's stand-in (drivers/<vendor>/<vendor>_standin*) on the core.
STANDIN = "drivers/standin"
STANDIN_RUNS_ON = "drivers/sim"
# Installed headers directly in include/keel/. The umbrella may include every installed header.
TOP_HEADERS = {"c.h": "capi", "c_graph.h": "capi", "c_task.h": "capi", "keel.h": "umbrella"}

CODE_SUFFIXES = {".h", ".cc", ".c", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
RANK = {name: rank for rank, name in enumerate(LAYERS + ["umbrella"] + OUTER)}


def rank(layer):
    """The place of a layer in the list; drivers/x stands where drivers stands."""
    return RANK["drivers" if layer.startswith("drivers/") else layer]


def layer_of_path(parts):
    """The layer of a file, given its path under src/ or include/keel/; None if there is none."""
    if len(parts) > 2 and "/".join(parts[:2]) in RANK:
        return "/".join(parts[:2])
    if len(parts) > 1 and parts[0] == "drivers":
        # drivers/sim/x.cc and keel/drivers/sim.h are the driver sim; drivers/builtin_drivers.cc is
        # the list of all of them.
        if len(parts) > 2:
            return f"drivers/{parts[1]}"
        return "drivers"
    if len(parts) > 1 and parts[0] in LAYERS:
        return parts[0]
    return None


def layer_of_public_header(parts):
    if len(parts) == 1:
        return TOP_HEADERS.get(parts[0])
    if len(parts) == 2 and parts[0] == "drivers":
        return f"drivers/{Path(parts[1]).stem}"
    return layer_of_path(parts)


def layer_of_include(target):
    """(layer, is_public) of an #include's text; (None, False) for what is not ours."""
    parts = target.split("/")
    if parts[0] == "keel" and len(parts) > 1:
        return layer_of_public_header(parts[1:]) or "?", True
    return layer_of_path(parts), False


def is_test(path):
    return re.search(r"_test\.(cc|h|inc)$", path.name) is not None


def is_standin(path):
    return re.search(r"_standin\w*\.(cc|h|inc)$", path.name) is not None


def complaint(own, own_is_public, test, delimiter, target, standin=False):
    """What is wrong with a file of layer `own` including `target`, or None."""
    if own not in OUTER and delimiter == '"' and ("/" not in target or target.startswith(".")):
        return f'write the path from src/ or include/, not relative to the file: "{target}"'
    layer, public = layer_of_include(target)
    if layer is None:
        return None
    if layer == "?":
        return f"keel/ has no such layer: {target}; see the list in src/README.md"
    if own_is_public and not public:
        return f"an installed header may include installed headers only, not {target}"
    if own in OUTER or own == layer:
        return None
    if layer == "umbrella":
        return "keel/keel.h is for users; include the header that is needed"
    if layer in TEST_ONLY and not test:
        return f"{layer} is for tests only; move the use into a *_test.cc"
    if test and (layer.startswith("drivers/") or layer in TEST_ONLY):
        return None
    if own.startswith("drivers/") and layer.startswith("drivers"):
        if layer == "drivers/shared":
            return None
        if layer == STANDIN and standin:
            return None
        if own == STANDIN and layer == STANDIN_RUNS_ON and public:
            return None
        return f"a driver may not include another ({layer}); share through drivers/shared"
    if rank(layer) > rank(own) or (rank(layer) == rank(own) and own != "drivers"):
        return (
            f"{own} may not include {layer}, which comes after it in src/README.md; "
            "move the code to the layer it belongs to, or pass in what is needed"
        )
    return None


def our_files(root):
    """(path, layer, is_public) of every code file that the rule covers; layer None if unknown."""
    for top in ["src", "include"] + OUTER:
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in CODE_SUFFIXES or not path.is_file():
                continue
            parts = path.relative_to(root).parts
            if top == "include":
                known = len(parts) > 2 and parts[1] == "keel"
                yield path, layer_of_public_header(parts[2:]) if known else None, True
            elif top == "src":
                yield path, layer_of_path(parts[1:]), False
            else:
                yield path, top, False


def check_includes(root):
    for path, layer, public in our_files(root):
        where = path.relative_to(root)
        if layer is None:
            yield f"{where}:1: belongs to no layer; move it into a folder that src/README.md lists"
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            wrong = complaint(
                layer, public, is_test(path), match[1], match[2], is_standin(path)
            )
            if wrong:
                yield f"{where}:{number}: {wrong}"


def check_readme(root):
    readme = root / "src" / "README.md"
    if not readme.is_file():
        yield "src/README.md:1: missing; it must list the layers"
        return
    listed = []
    for number, line in enumerate(readme.read_text(encoding="utf-8").splitlines(), 1):
        match = re.match(r"- `([\w/]+)/`:", line)
        if match:
            listed.append((match[1], number))
    names = [name for name, _ in listed]
    if names != LAYERS:
        first = next(
            (i for i, pair in enumerate(zip(names, LAYERS)) if pair[0] != pair[1]),
            min(len(names), len(LAYERS)),
        )
        number = listed[first][1] if first < len(listed) else 1
        expected = LAYERS[first] if first < len(LAYERS) else "the end of the list"
        yield (
            f"src/README.md:{number}: the list of layers differs from the table in "
            f"tools/checks/layers.py: {expected} is expected here"
        )


def check(root):
    return list(check_readme(root)) + list(check_includes(root))


def main(argv):
    root = Path(argv[1]) if len(argv) > 1 else Path(__file__).resolve().parents[2]
    problems = check(root)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
