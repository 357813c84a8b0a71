#!/usr/bin/env python3
"""The tests of the workers and of the orchestrator, with ranks as workers."""

import ctypes
import re
import unittest

from runs import KEEL, LIBC, TASK_TEST, MpiTest

ADDR_NO_RANDOMIZE = 0x0040000

WORKERS = 4

# Of the random programs, each with other delays.
RUNS = 2


class SuiteTest(MpiTest):
    def setUp(self):
        # Then devices of different workers have equal addresses. What is started inherits it, where
        # the system allows it.
        before = LIBC.personality(ctypes.c_ulong(0xFFFFFFFF))
        LIBC.personality(ctypes.c_ulong(before | ADDR_NO_RANDOMIZE))
        self.addCleanup(LIBC.personality, ctypes.c_ulong(before))

    def check(self, run, tests):
        code, output = run.finish()
        self.assertEqual(code, 0, output)
        passed = re.search(r"\[  PASSED  \] (\d+) test", output)
        self.assertIsNotNone(passed, output)
        skipped = re.search(r"\[  SKIPPED \] (\d+) test", output)
        ran = int(passed.group(1)) + (int(skipped.group(1)) if skipped else 0)
        self.assertGreaterEqual(ran, tests, output)
        self.assertEqual(run.processes(), {})
        # Where the system refuses what setUp asks for. All else of it has passed.
        if missing := re.search(r"(?m)^equal addresses of two workers: .*$", output):
            self.skipTest(missing.group())

    def test_all_of_it_passes(self):
        run = self.start_workers(
            WORKERS, TASK_TEST, "--gtest_filter=*/Mpi-RandomProgramTest*", "--gtest_color=no",
            variables={"KEEL_TEST_TRANSPORT": "mpi"})
        self.check(run, 40)

    def test_random_programs_with_delays(self):
        # Other ones in each worker and in each run: a rank has those that it was started with.
        for first in range(1, 1 + RUNS * WORKERS, WORKERS):
            with self.subTest(first=first):
                workers = []
                for seed in range(first, first + WORKERS):
                    delays = f"KEEL_SIM=delay:30,seed:{seed}"
                    workers += (":", "-n", "1", "env", delays, KEEL, "worker")
                run = self.start("-n", "1", TASK_TEST, "--gtest_filter=RandomProgramTest*/Mpi",
                                 "--gtest_color=no", *workers,
                                 variables={"KEEL_TEST_TRANSPORT": "mpi"})
                self.check(run, 1)


if __name__ == "__main__":
    unittest.main()
