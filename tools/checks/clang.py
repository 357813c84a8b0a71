#!/usr/bin/env python3
"""Shows the sources to clang: its warnings, its analysis of locks, and clang-tidy.

Usage: clang.py BUILD_DIR STAMP_DIR JOBS [FOLDER]     (BUILD_DIR has compile_commands.json)

clang compiles everything that BUILD_DIR builds (from FOLDER, a prefix of paths), as far as warnings
need it, whichever compiler BUILD_DIR is for; clang-tidy reads what is no test as well. Most of that
work is to read the headers of the libraries, so files of one folder that are compiled alike are read
together, as one translation unit that includes them all. Files that do not compile with the others
(two of them use one name for different things) are put apart. A file is read again only when it, a
header, or what decides the flags has changed.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

MOST_TOGETHER = 12
# What is right in one file and wrong beside others: it includes sources, and names meet.
NOT_TOGETHER = "-bugprone-suspicious-include,-bugprone-forward-declaration-namespace"


def digest(*parts):
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


def tracked(*patterns):
    listed = subprocess.run(
        ("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns),
        check=True, capture_output=True, text=True)
    return [path for path in sorted(set(listed.stdout.splitlines())) if os.path.isfile(path)]


def contents(paths):
    return "".join(path + "\n" + pathlib.Path(path).read_text() for path in paths)


def flags_of(entry):
    """The command's arguments without compiler, input, output and what matters when it runs."""
    kept, skip = ["-Wno-unknown-warning-option"], False  # those of other compilers
    for argument in shlex.split(entry["command"])[1:]:
        if skip:
            skip = False
        elif argument == "-o":
            skip = True
        elif argument not in ("-c", entry["file"]) and not argument.startswith("-fsanitize"):
            kept.append(argument)
    return tuple(kept)


def sources(build, folder):
    """{path from here: flags} of our C++ sources; one way to compile each is enough."""
    with open(os.path.join(build, "compile_commands.json")) as file:
        entries = json.load(file)
    ours = set(tracked("*.cc"))
    found = {}
    for entry in entries:
        path = os.path.relpath(entry["file"])
        if path in ours and path.startswith(folder):
            found.setdefault(path, flags_of(entry))
    return found


def is_tidy(path):
    """Tests are long and plain: what clang-tidy finds in them is not worth its time."""
    return (path.startswith(("src/", "tools/", "python/")) and not path.endswith("_test.cc")
            and not path.startswith("src/hal/conformance/"))


def groups(paths, flags_by_path):
    """Files of one folder, of one kind and with the same flags, not too many in each."""
    alike = {}
    for path in paths:
        key = (os.path.dirname(path), flags_by_path[path], is_tidy(path))
        alike.setdefault(key, []).append(path)
    for members in alike.values():
        pieces = -(-len(members) // MOST_TOGETHER)
        yield from (members[i::pieces] for i in range(pieces))


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def compile_only(path, flags):
    return run("clang++-19", "-fsyntax-only", "-ferror-limit=0", *flags, path)


def tidy(path, flags, *options):
    """(whether it is clean, what was said)"""
    found = run("clang-tidy-19", "--quiet", *options, path, "--", *flags)
    noise = "warnings generated"
    errors = "".join(line for line in found.stderr.splitlines(True) if noise not in line)
    return found.returncode == 0, found.stdout + (errors if found.returncode else "")


def check_one(flags, path):
    if is_tidy(path):
        return tidy(path, flags)
    compiled = compile_only(path, flags)
    return compiled.returncode == 0, compiled.stderr


def check_together(flags, members, together):
    """(whether they are clean, what was said, files that do not compile with the others)"""
    together.write_text("".join(f'#include "{os.path.abspath(path)}"\n' for path in members))
    try:
        compiled = compile_only(str(together), flags)
        if compiled.returncode == 0:
            if not is_tidy(members[0]):
                return True, "", []
            return (*tidy(str(together), flags, f"--checks={NOT_TOGETHER}"), [])
    finally:
        together.unlink()
    errors = "".join(line for line in compiled.stderr.splitlines(True) if " error: " in line)
    return False, "", [path for path in members if f"{os.path.abspath(path)}:" in errors]


def check(flags, members, folder):
    """(clean files, what was said, groups that are to be looked at instead)"""
    if len(members) == 1:
        good, said = check_one(flags, members[0])
        return (members if good else []), said, []
    good, said, apart = check_together(flags, members, folder / f"{digest(*members)}.cc")
    if good or said:
        return (members if good else []), said, []
    rest = [path for path in members if path not in apart]
    if not apart or not rest:  # no file is to blame, or every one
        return [], "", [[path] for path in members]
    return [], "", [rest, apart]


def main():
    build, stamps, jobs = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    stamps.mkdir(parents=True, exist_ok=True)
    flags_by_path = sources(build, sys.argv[4] if len(sys.argv) > 4 else "")
    common = contents(tracked("*.h", "*.inc", ".clang-tidy", "CMakePresets.json", "CMakeLists.txt",
                              "*/CMakeLists.txt", "cmake/*", "tools/checks/clang.py"))
    stamp_of = {path: stamps / digest(common, contents([path])) for path in flags_by_path}
    todo = [path for path in flags_by_path if not stamp_of[path].exists()]
    if todo:
        print(f"clang: {len(todo)} files", flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        def start(members):
            return pool.submit(check, flags_by_path[members[0]], members, stamps)

        # The large ones first, so that no core waits for another at the end.
        largest_first = sorted(groups(todo, flags_by_path), key=len, reverse=True)
        running = {start(members) for members in largest_first}
        while running:
            done, running = concurrent.futures.wait(
                running, return_when=concurrent.futures.FIRST_COMPLETED)
            for clean, said, instead in (each.result() for each in done):
                for path in clean:
                    stamp_of[path].touch()
                if said:
                    print(said, end="", flush=True)
                running |= {start(members) for members in instead}
    sys.exit(any(not stamp_of[path].exists() for path in todo))


if __name__ == "__main__":
    main()
