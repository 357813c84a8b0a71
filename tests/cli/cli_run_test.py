#!/usr/bin/env python3
"""Tests of `keel run` as far as it is the command's: which Python, and what it is given.

What Python then does is tested with the package, in tests/python.
"""

import os
import stat
import tempfile
import unittest

from command_line import CliTest, keel


class RunTest(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.version = keel("--version").stdout.split()[1]

    def program(self, text, name="python"):
        """A program in the place of Python."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def python(self, name="python"):
        """One that has the package, and shows what it is to run."""
        return self.program(
            f"if [ \"$1\" = -c ]; then echo warning; echo; echo 'keel version {self.version}'\n"
            "else for argument; do printf '[%s]' \"$argument\"; done; exit 7; fi", name)

    def test_help(self):
        run = keel("run", "--help")
        self.assert_ok(run)
        for text in ("keel run", "--python PATH", "--conf CONF", "--history", "--stacks",
                     "--snapshot FILE", "--oom-snapshot FILE|none", "--summary", "--no-summary",
                     "--json FILE", "--no-torch", "--no-cupy", "--strict", "--children",
                     "--no-children", "SCRIPT", "-m MODULE", "-c CODE", "docs/run.md"):
            self.assertIn(text, run.stdout)
        for line in run.stdout.splitlines():
            self.assertLessEqual(len(line), 100, line)

    def assert_runs(self, *arguments, gets, **variables):
        run = keel("run", *arguments, **variables)
        self.assertEqual(run.stderr, "")
        self.assertEqual(run.returncode, 7)
        self.assertEqual(run.stdout, "".join(f"[{part}]" for part in ("-m", "keel.run", *gets)))

    def test_what_python_gets(self):
        python = ("--python", self.python())
        self.assert_runs(*python, "a.py", gets=("a.py",))
        self.assert_runs("--history", *python, "--history=5", "--conf", "a:b, c", "--no-summary",
                         "a.py", "--history", "", "x y", "--python", "--help",
                         gets=("--history=5", "--history=5", "--conf=a:b, c", "--no-summary", "a.py",
                               "--history", "", "x y", "--python", "--help"))
        self.assert_runs(*python, "--json=x", "--json=y", "-m", "info", "--strict",
                         gets=("--json=y", "--json=y", "-m", "info", "--strict"))
        self.assert_runs(*python, "-c", "import x; print(1)", "-c",
                         gets=("-c", "import x; print(1)", "-c"))

    def test_which_python(self):
        self.python("venv/bin/python")
        self.python("path/python3")
        path = os.path.join(self.folder, "path") + os.pathsep + os.environ["PATH"]
        self.assert_runs("a.py", gets=("a.py",), VIRTUAL_ENV=os.path.join(self.folder, "venv"))
        self.assert_runs("a.py", gets=("a.py",), VIRTUAL_ENV=None, PATH=path)
        self.assert_runs("--python", "python3", "a.py", gets=("a.py",), PATH=path)

    def test_no_python(self):
        self.assert_fails(keel("run", "--python", "/no/python", "a.py"), 2, "keel run:",
                          "/no/python", "--python")
        self.assert_fails(keel("run", "a.py", VIRTUAL_ENV="/no/where"), 2, "VIRTUAL_ENV",
                          "/no/where/bin/python", "--python")
        self.assert_fails(keel("run", "a.py", VIRTUAL_ENV=None, PATH=self.folder), 2, "python3",
                          "--python")

    def test_no_package(self):
        python = self.program("echo Traceback >&2; echo \"Error: No module named 'keel'\" >&2; exit 1")
        self.assert_fails(keel("run", "--python", python, "a.py"), 2, python,
                          "No module named 'keel'", "pip install")
        silent = self.program("exit 1")
        self.assert_fails(keel("run", "--python", silent, "a.py"), 2, silent, "pip install")

    def test_another_version(self):
        python = self.program("echo 'keel version 99.1.2'")
        self.assert_fails(keel("run", "--python", python, "a.py"), 2, "99.1.2", self.version,
                          "--python")

    def test_mistakes(self):
        self.assert_fails(keel("run"), 2, "keel run:", "script", "-m MODULE",
                          "keel run --help")
        self.assert_fails(keel("run", "--frob", "a.py"), 2, "unknown option '--frob'",
                          "keel run --help")
        self.assert_fails(keel("run", "--conf"), 2, "--conf needs a value", "keel run --help")


if __name__ == "__main__":
    unittest.main()
