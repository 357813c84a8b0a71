"""How the tests run bin/keel: always on the simulated driver, whatever devices the machine has.

KEEL_CLI is the path of the program.
"""

import json
import os
import pty
import subprocess
import unittest

KEEL = os.environ["KEEL_CLI"]
ESCAPE = "\x1b"
# Seconds; the long versions of the tests take minutes.
PATIENCE = 3600 if os.environ.get("KEEL_SOAK") else 120
OURS = ("KEEL_ALLOC_CONF", "KEEL_DRIVER", "KEEL_SIM", "KEEL_LOG", "NO_COLOR", "TERM")


def environment(**variables):
    """The caller's, without what would change the result, plus `variables` (None: not set)."""
    env = {key: value for key, value in os.environ.items() if key not in OURS}
    env.update({"KEEL_DRIVER": "sim", "TERM": "xterm"})
    env.update(variables)
    return {key: value for key, value in env.items() if value is not None}


def keel(*arguments, **variables):
    return subprocess.run(
        (KEEL, *arguments),
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def keel_on_terminal(*arguments, **variables):
    """(exit code, output) with standard output and error on a terminal."""
    master, slave = pty.openpty()
    try:
        process = subprocess.Popen(
            (KEEL, *arguments),
            env=environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
        )
    finally:
        os.close(slave)
    output = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the other end was closed
            piece = b""
        if not piece:
            break
        output += piece
    os.close(master)
    return process.wait(timeout=PATIENCE), output.decode()


class CliTest(unittest.TestCase):
    def assert_ok(self, run):
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(run.stderr, "")

    def assert_fails(self, run, code, *mentions):
        """Ended with `code` and one line on standard error that mentions all of these."""
        self.assertEqual(run.returncode, code, (run.stdout or "") + run.stderr)
        lines = run.stderr.splitlines()
        self.assertEqual(len(lines), 1, run.stderr)
        self.assertTrue(lines[0].startswith("keel"), lines[0])
        for text in mentions:
            self.assertIn(text, lines[0])

    def json_of(self, *arguments, **variables):
        run = keel(*arguments, **variables)
        self.assert_ok(run)
        return json.loads(run.stdout)
