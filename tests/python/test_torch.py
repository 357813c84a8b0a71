"""keel.torch where there is no PyTorch; integrations/torch/torch_test.py is for a GPU."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import keel
import keel.torch
import pytest
from keel.torch import _build

if importlib.util.find_spec("torch") is not None:
    pytest.skip("PyTorch is here", allow_module_level=True)


def test_without_pytorch_it_says_so() -> None:
    for call in (keel.torch.install, lambda: keel.torch.install("functions"), keel.torch.mem_pool):
        with pytest.raises(keel.UnavailableError, match="pip install torch"):
            call()
    assert keel.torch.installed() is None


def test_a_route_that_is_none() -> None:
    with pytest.raises(ValueError, match=r"full or functions, not 'fast'"):
        keel.torch.install("fast")  # type: ignore[arg-type]


def test_the_package_has_what_it_is_built_from() -> None:
    sources = {file.name for file in _build._SOURCES.iterdir()}
    assert {"install.cc", "keel_allocator.cc", "keel_allocator.h"} <= sources
    assert (_build._KEEL / "include/keel/memory/process_memory.h").exists()
    assert _build._keel_library().name.startswith("libkeel.so")
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", str(_build._PACKAGE / "libkeel_torch.so")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert " keel_torch_alloc\n" in symbols


def test_the_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "/nowhere/c++ -flag")
    with pytest.raises(_build.BuildError, match=r"no C\+\+ compiler \(/nowhere/c\+\+\).*set CXX"):
        _build._compiler()
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(_build.BuildError, match=r"g\+\+ 11"):
        _build._compiler()
    fake = tmp_path / "clang++"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    assert _build._compiler() == ["clang++"]


def test_the_headers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    package = tmp_path / "nvidia/cu13/include"
    (package / "crt").mkdir(parents=True)
    (package / "crt/host_defines.h").touch()
    (package / "cuda_runtime_api.h").touch()
    given = tmp_path / "toolkit"
    monkeypatch.setenv("CUDA_HOME", str(given))
    found = _build._cuda_headers(tmp_path)
    assert found in (package, Path("/usr/local/cuda/include"))  # the machine's own, if it has one
    (given / "include/crt").mkdir(parents=True)
    (given / "include/crt/host_defines.h").touch()
    (given / "include/cuda_runtime_api.h").touch()
    assert _build._cuda_headers(tmp_path) == given / "include"


def test_a_failed_build_shows_the_error_and_the_command() -> None:
    with pytest.raises(_build.BuildError, match=r"(?s)could not be built:.*unknown.*was: ls"):
        _build._run(["ls", "--unknown"])


def test_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KEEL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _build._cache() == tmp_path / "keel"
    monkeypatch.setenv("KEEL_CACHE", os.fspath(tmp_path / "other"))
    assert _build._cache() == tmp_path / "other"
