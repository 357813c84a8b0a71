"""Compiles KeelAllocator against the PyTorch that is installed, and keeps the result.

The result's folder is named after everything that went into it, so that another PyTorch, compiler
or Keel gets its own, and several processes that start together build it once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_SOURCES = _PACKAGE / "source"
_KEEL = _PACKAGE.parent
_NAME = "libkeel_torch_allocator.so"
_FLAGS = ("-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-w")


class BuildError(Exception):
    """Why there is no library, and what to do."""


def library() -> Path:
    """The library, made now if it was not made before."""
    torch = _torch_folder()
    compiler = _compiler()
    cuda = _cuda_headers(torch.parent)
    try:
        folder = _cache() / f"torch-{_torch_version()}-{_key(torch, compiler, cuda)}"
    except (OSError, RuntimeError) as error:  # the package's own files; no home
        raise BuildError(f"the allocator for PyTorch cannot be built: {error}") from error
    target = folder / _NAME
    if target.exists():
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            if not target.exists():
                _make(target, torch, compiler, cuda)
    except OSError as error:
        raise BuildError(
            f"the allocator for PyTorch cannot be kept in {folder}: {error.strerror};"
            " set KEEL_CACHE to a folder that can be written"
        ) from error
    return target


def _torch_version() -> str:
    import torch

    return str(torch.__version__)


def _torch_folder() -> Path:
    import torch

    return Path(torch.__file__).resolve().parent


def _cache() -> Path:
    given = os.environ.get("KEEL_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "keel"


def _compiler() -> list[str]:
    given = shlex.split(os.environ.get("CXX", ""))
    for candidate in (given,) if given else (["g++"], ["c++"], ["clang++"]):
        if shutil.which(candidate[0]):
            return candidate
    raise BuildError(
        f"there is no C++ compiler ({given[0] if given else 'g++, c++ or clang++'}) to build the"
        " allocator for PyTorch with: install g++ 11 or later, or set CXX"
    )


def _cuda_headers(site_packages: Path) -> Path:
    candidates = [
        Path(folder) / "include"
        for folder in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
        if folder
    ]
    nvcc = shutil.which("nvcc")
    if nvcc:
        candidates.append(Path(nvcc).resolve().parent.parent / "include")
    # The packages that PyTorch from PyPI comes with.
    candidates += sorted((site_packages / "nvidia").glob("*/include"))
    for folder in candidates:
        if (folder / "cuda_runtime_api.h").exists() and (folder / "crt/host_defines.h").exists():
            return folder
    raise BuildError(
        "the headers of the CUDA toolkit are not there (cuda_runtime_api.h), which the allocator"
        " for PyTorch is built with: install the toolkit, or set CUDA_HOME to its folder"
    )


def _key(torch: Path, compiler: list[str], cuda: Path) -> str:
    digest = hashlib.sha256()
    version = subprocess.run((*compiler, "--version"), capture_output=True, text=True, check=False)
    for part in (str(torch), str(_keel_library()), str(cuda), *compiler, version.stdout, *_FLAGS):
        digest.update(part.encode() + b"\0")
    headers = (_KEEL / "include").rglob("*.h")
    for file in sorted((*_SOURCES.iterdir(), *headers)):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _keel_library() -> Path:
    found = sorted(_KEEL.glob("libkeel.so*"))
    if not found:
        raise BuildError(f"the package is damaged: {_KEEL} has no libkeel.so; install it again")
    return found[0]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(target: Path, torch: Path, compiler: list[str], cuda: Path) -> None:
    start = time.monotonic()
    print(
        f"keel: building the allocator for PyTorch {_torch_version()} (once) ...",
        end="",
        file=sys.stderr,
        flush=True,
    )
    try:
        with tempfile.TemporaryDirectory(dir=target.parent) as work:
            _compile(Path(work) / _NAME, torch, compiler, cuda)
            # In one step: whoever sees the file sees all of it.
            os.replace(Path(work) / _NAME, target)
    except BaseException:
        print(" failed", file=sys.stderr)
        raise
    print(f" {time.monotonic() - start:.0f} s", file=sys.stderr)


def _compile(target: Path, torch: Path, compiler: list[str], cuda: Path) -> None:
    includes = [
        _KEEL / "include",
        torch / "include",
        torch / "include/torch/csrc/api/include",
        cuda,
    ]
    flags = [*_FLAGS, *(f"-I{folder}" for folder in includes)]

    def compiled(source: Path) -> Path:
        result = target.parent / f"{source.stem}.o"
        _run([*compiler, *flags, "-c", str(source), "-o", str(result)])
        return result

    sources = sorted(_SOURCES.glob("*.cc"))
    with ThreadPoolExecutor(min(len(sources), os.cpu_count() or 1)) as pool:
        objects = list(pool.map(compiled, sources))
    # The CUDA runtime and the C++ library are those that PyTorch brought: named here, the compiler
    # could put in others, even copies, and two C++ libraries in one process do not know each
    # other's streams and exceptions.
    libraries = ["-lc10", "-lc10_cuda", "-ltorch_cuda", "-ltorch_cpu", "-ltorch"]
    _run(
        [
            *compiler,
            "-shared",
            "-nodefaultlibs",
            *map(str, objects),
            "-o",
            str(target),
            f"-L{torch / 'lib'}",
            *libraries,
            f"-Wl,-rpath,{torch / 'lib'}",
            f"-L{_KEEL}",
            f"-l:{_keel_library().name}",
            f"-Wl,-rpath,{_KEEL}",
            "-lm",
            "-lc",
            "-lgcc_s",
        ]
    )


def _run(command: list[str]) -> None:
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        lines = [
            line for line in run.stderr.splitlines() if "error" in line
        ] or run.stderr.splitlines()
        raise BuildError(
            "the allocator for PyTorch could not be built:\n  "
            + "\n  ".join(lines[:5])
            + f"\n  the command was: {shlex.join(command)}"
        )
