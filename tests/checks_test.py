#!/usr/bin/env python3
"""Tests of tools/checks: each check must pass a good tree and name what is wrong in a bad one."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "checks"))
sys.dont_write_bytecode = True

import layers  # noqa: E402
import vendor_names  # noqa: E402


class TreeTest(unittest.TestCase):
    """A temporary tree; `check` is the module under test."""

    check = None

    def setUp(self):
        self._dir = tempfile.TemporaryDirectory()
        self.addCleanup(self._dir.cleanup)
        self.root = Path(self._dir.name)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def run_check(self):
        """(exit code, lines printed) of the check as a program."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = self.check.main(["check", str(self.root)])
        return code, out.getvalue().splitlines()

    def assert_passes(self):
        self.assertEqual(self.run_check(), (0, []))

    def assert_fails_at(self, *places):
        code, lines = self.run_check()
        self.assertEqual(code, 1)
        self.assertEqual([line.split(": ")[0] for line in lines], list(places), lines)


class LayersTest(TreeTest):
    check = layers

    def setUp(self):
        super().setUp()
        self.write_readme(layers.LAYERS)

    def write_readme(self, names):
        self.write("src/README.md", "".join(f"- `{name}/`: a layer.\n" for name in names))

    def test_upward_includes_pass(self):
        self.write("include/keel/base/a.h", "#include <vector>\n")
        self.write("include/keel/hal/b.h", '#include "keel/base/a.h"\n#include "keel/hal/c.h"\n')
        self.write("include/keel/c.h", "#include <stdint.h>\n")
        self.write("include/keel/keel.h", '#include "keel/memory/x.h"\n#include "keel/c.h"\n')
        self.write("src/hal/b.cc", '#include "keel/hal/b.h"\n#include "hal/inner.h"\n')
        self.write("src/memory/d.cc", '#include "keel/hal/b.h"\n#include "telemetry/t.h"\n')
        self.write("src/drivers/sim/s.cc", '#include "drivers/shared/u.h"\n#include "drivers/sim/s.h"\n')
        self.write("src/drivers/builtin_drivers.cc", '#include "drivers/sim/s.h"\n#include "hal/r.h"\n')
        self.write("src/capi/c.cc", '#include "keel/c.h"\n#include "trace/t.h"\n')
        self.write("tools/keel/main.cc", '#include "keel/capi/x.h"\n#include "command.h"\n')
        self.assert_passes()

    def test_downward_includes_fail(self):
        self.write("include/keel/hal/b.h", '\n#include "keel/memory/pool.h"\n')
        self.write("src/base/a.cc", '#include "keel/hal/b.h"\n')
        self.write("src/hal/b.cc", '#include <a>\n#include <keel/drivers/sim.h>\n')
        self.write("src/memory/m.cc", '#include "graph/g.h"\n')
        self.assert_fails_at(
            "src/base/a.cc:1", "src/hal/b.cc:2", "src/memory/m.cc:1", "include/keel/hal/b.h:2"
        )

    def test_drivers_do_not_know_each_other(self):
        self.write("src/drivers/sim/s.cc", '#include "drivers/other/o.h"\n')
        self.write("src/drivers/other/o.cc", '#include "keel/drivers/sim.h"\n')
        self.write("src/drivers/shared/u.cc", '#include "drivers/sim/s.h"\n')
        self.assert_fails_at(
            "src/drivers/other/o.cc:1", "src/drivers/shared/u.cc:1", "src/drivers/sim/s.cc:1"
        )

    def test_stand_ins_run_on_the_simulated_device(self):
        self.write("src/drivers/standin/core.cc", '#include "keel/drivers/sim.h"\n')
        self.write("src/drivers/other/other_standin.cc", '#include "drivers/standin/core.h"\n')
        self.assert_passes()
        self.write("src/drivers/other/o.cc", '#include "drivers/standin/core.h"\n')
        self.write("src/drivers/standin/inside.cc", '#include "drivers/sim/s.h"\n')
        self.assert_fails_at("src/drivers/other/o.cc:1", "src/drivers/standin/inside.cc:1")

    def test_tests_may_use_drivers_and_the_suite(self):
        text = '#include "keel/drivers/sim.h"\n#include "hal/conformance/suite.h"\n'
        self.write("src/hal/b_test.cc", text)
        self.write("src/drivers/sim/s_test.cc", text)
        self.assert_passes()

    def test_tests_obey_the_order_otherwise(self):
        self.write("src/base/a_test.cc", '#include "memory/pool.h"\n')
        self.assert_fails_at("src/base/a_test.cc:1")

    def test_conformance_is_for_tests_only(self):
        self.write("src/hal/conformance/suite.cc", '#include "hal/conformance/suite.h"\n')
        self.assert_passes()
        self.write("src/drivers/sim/s.cc", '#include "hal/conformance/suite.h"\n')
        self.assert_fails_at("src/drivers/sim/s.cc:1")

    def test_installed_headers_stay_among_themselves(self):
        self.write("include/keel/hal/b.h", '#include "hal/inner.h"\n')
        self.assert_fails_at("include/keel/hal/b.h:1")

    def test_relative_includes_fail(self):
        self.write("src/base/a.cc", '#include "a.h"\n#include "../hal/b.h"\n')
        self.assert_fails_at("src/base/a.cc:1", "src/base/a.cc:2")

    def test_unknown_folders_fail(self):
        self.write("src/misc/a.cc", "")
        self.write("src/base/b.cc", '#include "keel/misc/a.h"\n')
        self.assert_fails_at("src/base/b.cc:1", "src/misc/a.cc:1")

    def test_umbrella_is_not_for_us(self):
        self.write("src/capi/c.cc", '#include "keel/keel.h"\n')
        self.assert_fails_at("src/capi/c.cc:1")

    def test_readme_must_agree(self):
        swapped = list(layers.LAYERS)
        swapped[4], swapped[5] = swapped[5], swapped[4]
        self.write_readme(swapped)
        self.assert_fails_at("src/README.md:5")
        self.write_readme(layers.LAYERS[:-1])
        self.assert_fails_at("src/README.md:1")
        (self.root / "src" / "README.md").unlink()
        self.assert_fails_at("src/README.md:1")


class VendorNamesTest(TreeTest):
    check = vendor_names

    def test_neutral_text_passes(self):
        self.write("src/hal/a.cc", "// A chip; a relationship; an amd64 machine; accumulate; mutex_\n")
        self.write("src/hal/README.md", "CUDA\n")
        self.assert_passes()

    def test_names_fail_wherever_they_stand(self):
        bad = [
            "// as on CUDA",
            "int x = cuMemAlloc();",
            "CUresult r;",
            "enum { kHip };",
            "hipMalloc(&p);",
            "#ifdef KEEL_HIP_X",
            '"AMD"',
            "// rocm",
            "NvidiaThing t;",
            "muMemAlloc();",
            "// Musa",
        ]
        self.write("src/memory/a.cc", "\n".join(bad) + "\n")
        self.assert_fails_at(*[f"src/memory/a.cc:{n}" for n in range(1, len(bad) + 1)])

    def test_a_driver_may_name_its_own_vendor_only(self):
        self.write("src/drivers/cuda/d.cc", "cuMemAlloc();  // NVIDIA\n")
        self.write("include/keel/drivers/cuda.h", "// CUDA\n")
        self.assert_passes()
        self.write("src/drivers/hip/d.cc", "hipMalloc();\ncudaMalloc();\n")
        self.assert_fails_at("src/drivers/hip/d.cc:2")

    def test_builtin_drivers_is_outside_the_drivers(self):
        self.write("src/drivers/builtin_drivers.cc", "cuda::Driver();\n")
        self.assert_fails_at("src/drivers/builtin_drivers.cc:1")

    def test_file_names_count(self):
        self.write("include/keel/hal/cuda_types.h", "\n")
        self.assert_fails_at("include/keel/hal/cuda_types.h:1")

    def test_allowance_needs_a_reason(self):
        self.write("src/hal/a.cc", "cuda::Driver();  // vendor-ok: the list of drivers\n")
        self.assert_passes()
        self.write("src/hal/a.cc", "cuda::Driver();  // vendor-ok:\n")
        self.assert_fails_at("src/hal/a.cc:1")


class IfInstalledTest(unittest.TestCase):
    """What runs the tests that need a tool: found when they run, and missed loudly."""

    def run_with(self, folder, *command):
        """(exit code, what was said) where only the programs in `folder` are installed."""
        ran = subprocess.run(
            [sys.executable, "-B", str(ROOT / "tests" / "if_installed.py"), *command],
            env={**os.environ, "PATH": str(folder)}, capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout

    def test_a_missing_tool_is_said_and_skipped(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.run_with(folder, "the-tool", "/bin/true"),
                             (77, "skipped: the-tool is not installed\n"))
            tool = Path(folder) / "the-tool"
            tool.write_text("#!/bin/sh\necho ran; exit 3\n", encoding="utf-8")
            tool.chmod(0o755)
            self.assertEqual(self.run_with(folder, "the-tool", "the-tool"), (3, "ran\n"))

    def test_no_test_depends_on_what_cmake_found(self):
        """A tool that is found when the tree is configured is missing in one that was before."""
        found = [str(path.relative_to(ROOT)) for path in ROOT.glob("*/**/CMakeLists.txt")
                 if path.relative_to(ROOT).parts[0] in ("src", "tests", "tools", "benchmarks")
                 and "find_program(" in path.read_text(encoding="utf-8")]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
