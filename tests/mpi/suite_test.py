#!/usr/bin/env python3
"""The tests of the workers and of the orchestrator, with ranks as workers."""

import re
import unittest

from runs import TASK_TEST, MpiTest


class SuiteTest(MpiTest):
    def test_all_of_it_passes(self):
        run = self.start_workers(4, TASK_TEST, "--gtest_filter=*/Mpi", "--gtest_color=no",
                                 variables={"KEEL_TEST_TRANSPORT": "mpi"})
        code, output = run.finish()
        self.assertEqual(code, 0, output)
        passed = re.search(r"\[  PASSED  \] (\d+) tests", output)
        self.assertIsNotNone(passed, output)
        self.assertGreaterEqual(int(passed.group(1)), 40, output)
        self.assertEqual(run.processes(), {})


if __name__ == "__main__":
    unittest.main()
