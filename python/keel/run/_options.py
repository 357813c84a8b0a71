"""The options of a run, and which program it is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

HELP = """\
Usage: python -m keel.run [OPTION...] SCRIPT [ARGUMENT...]
       python -m keel.run [OPTION...] -m MODULE [ARGUMENT...]
       python -m keel.run [OPTION...] -c CODE [ARGUMENT...]

Runs a Python program on Keel's memory. The program is not changed.

  --conf CONF           configuration of the allocators, as KEEL_ALLOC_CONF
  --history[=N]         keep the newest N things that happen to memory (100000), for snapshots
  --stacks              with the stacks of native code; --history is implied
  --snapshot FILE       write a snapshot at the end: .pickle or .json
  --oom-snapshot FILE   where to write one when memory runs out (keel-oom-{pid}.pickle); none: not
  --summary, --no-summary
                        a summary on standard error at the end (default: yes)
  --json FILE           the summary as JSON, into a file
  --no-torch            leave PyTorch its own allocator
  --no-cupy             leave CuPy its own allocators
  --strict              end with exit code 1 if one of them cannot use Keel (default: warn, go on)
  --children, --no-children
                        do the same in Python processes that the program starts (default: yes)
  -h, --help            this text

{pid} in the name of a file is the process's number. A name without it is the first process's alone.
"""

DEFAULT_HISTORY = 100_000
_ENDINGS = (".json", ".pickle", ".pkl")


class UsageError(Exception):
    """The command has to be changed; the message says how."""


class HelpAsked(Exception):  # noqa: N818  not an error
    pass


@dataclass(frozen=True)
class Options:
    """Files are absolute paths; an empty one is not written."""

    conf: str | None = None
    history: int = 0
    stacks: bool = False
    snapshot: str = ""
    oom_snapshot: str = "keel-oom-{pid}.pickle"
    summary: bool = True
    json: str = ""
    torch: bool = True
    cupy: bool = True
    strict: bool = False
    children: bool = True


@dataclass(frozen=True)
class Program:
    kind: Literal["script", "module", "code"]
    target: str
    arguments: tuple[str, ...]


_FLAGS: dict[str, tuple[str, bool]] = {
    "--stacks": ("stacks", True),
    "--summary": ("summary", True),
    "--no-summary": ("summary", False),
    "--no-torch": ("torch", False),
    "--no-cupy": ("cupy", False),
    "--strict": ("strict", True),
    "--children": ("children", True),
    "--no-children": ("children", False),
}
_VALUES = {
    "--conf": "conf",
    "--snapshot": "snapshot",
    "--oom-snapshot": "oom_snapshot",
    "--json": "json",
}
NAMES = (*_FLAGS, *_VALUES, "--history", "--help")


def parse(arguments: Sequence[str]) -> tuple[Options, Program]:
    """UsageError; HelpAsked."""
    found: dict[str, str | int | bool] = {}
    rest = list(arguments)
    while rest:
        if not rest[0].startswith("-") or rest[0] == "-" or rest[0][:2] in ("-m", "-c"):
            break
        argument = rest.pop(0)
        if argument == "--":
            break
        if argument in ("-h", "--help"):
            raise HelpAsked
        name, equals, value = argument.partition("=")
        if name in _VALUES:
            if not equals:
                if not rest:
                    raise UsageError(f"{name} needs a value")
                value = rest.pop(0)
            found[_VALUES[name]] = value
        elif name == "--history":
            found["history"] = _count(value) if equals else DEFAULT_HISTORY
        elif name in _FLAGS and not equals:
            field, on = _FLAGS[name]
            found[field] = on
        else:
            raise UsageError(_unknown(argument, name))
    options = replace(Options(), **found)  # type: ignore[arg-type]  # what the tables say
    return _completed(options), _program(rest)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--history={text}: how many things to keep is a number from 1 on")
    return int(text)


def _unknown(argument: str, name: str) -> str:
    import difflib

    if name in _FLAGS:
        return f"{name} takes no value, but there is '{argument}'"
    near = difflib.get_close_matches(name, NAMES, 1)
    return f"unknown option '{argument}'" + (f"; did you mean {near[0]}?" if near else "")


def _program(rest: list[str]) -> Program:
    if not rest:
        raise UsageError("which program? Give a script, -m MODULE or -c CODE")
    first, *arguments = rest
    if first == "-":
        raise UsageError(
            "a program cannot be read from standard input, which is its own; give a file"
        )
    if first[:2] in ("-m", "-c"):
        if len(first) > 2:
            arguments.insert(0, first[2:])
        if not arguments:
            raise UsageError(f"{first} needs {'a module' if first == '-m' else 'the code'}")
        kind: Literal["module", "code"] = "module" if first[:2] == "-m" else "code"
        return Program(kind, arguments[0], tuple(arguments[1:]))
    return Program("script", first, tuple(arguments))


def _completed(options: Options) -> Options:
    snapshots = {"--snapshot": options.snapshot, "--oom-snapshot": options.oom_snapshot}
    if options.oom_snapshot == "none":
        del snapshots["--oom-snapshot"]
        options = replace(options, oom_snapshot="")
    for name, file in snapshots.items():
        if file and os.path.splitext(file)[1].lower() not in _ENDINGS:
            raise UsageError(f"{name} {file}: a snapshot is .json, .pickle or .pkl")
    files = {}
    for field in ("snapshot", "oom_snapshot", "json"):
        file = getattr(options, field)
        if not file:
            continue
        # Also where the program changes its folder.
        files[field] = os.path.abspath(file)
        folder = os.path.dirname(files[field])
        if not os.path.isdir(folder):
            raise UsageError(f"{file}: there is no folder {folder}")
    if options.stacks and not options.history:
        options = replace(options, history=DEFAULT_HISTORY)
    return replace(options, **files)


def from_fields(values: dict[str, object]) -> Options:
    """What a parent handed on, as far as this version knows it."""
    known = {field.name for field in fields(Options)}
    return Options(**{k: v for k, v in values.items() if k in known})  # type: ignore[arg-type]
