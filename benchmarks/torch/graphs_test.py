#!/usr/bin/env python3
"""Tests of graphs.py: what it makes of what was measured."""

import argparse
import contextlib
import io
import unittest

import graphs


def run(way, us, results, turn=0, **more):
    return {"turn": turn, "model": "mlp", "mode": "training", "way": way, "us": us, "host_us": us / 2,
            "results": results, "reserved": 10, **more}


class TableTest(unittest.TestCase):
    def test_the_median_of_the_turns_and_whether_results_are_eagers(self):
        eager, keel, other = graphs.table([
            run("eager", 90, [1.0, 2.0]), run("keel", 30, [1.0, 2.0]), run("other", 9, [1.0, 2.5]),
            run("eager", 80, [1.0, 2.0], 1), run("keel", 10, [1.0, 2.0], 1), run("other", 9, [1.0, 2.0], 1),
            run("eager", 70, [1.0, 2.0], 2), run("keel", 20, [1.0, 2.0], 2, reserved=12)])
        self.assertEqual((eager["us"], eager["host_us"], eager["turns"]), (80, 40, 3))
        self.assertEqual((keel["us"], keel["reserved"], keel["same"]), (20, 12, True))
        self.assertIs(other["same"], False, "once is enough")

    def test_what_failed_is_left_out_and_shown(self):
        failed = {"turn": 0, "model": "mlp", "mode": "inference", "way": "keel", "error": "boom"}
        rows = graphs.table([failed, {**failed, "way": "eager"}])
        self.assertNotIn("us", rows[0])
        with contextlib.redirect_stdout(io.StringIO()) as out:
            graphs.print_rows(rows)
        self.assertRegex(out.getvalue(), r"mlp, inference +keel +failed")
        # Without eager's there is nothing to compare with.
        (row,) = graphs.table([run("keel", 1, [1.0])])
        self.assertIs(row["same"], False)

    def test_everything_once_before_anything_again(self):
        order = list(graphs.in_turns(2, ["mlp"], ["eager", "keel"]))
        self.assertEqual(order[:4], [(0, "mlp", mode, way) for mode in graphs.MODES
                                     for way in ("eager", "keel")])
        self.assertEqual(order[4:], [(1, "mlp", mode, way) for mode in graphs.MODES
                                     for way in ("keel", "eager")])

    def test_names(self):
        self.assertEqual(graphs.names(graphs.WAYS)("keel,eager"), ["keel", "eager"])
        with self.assertRaisesRegex(argparse.ArgumentTypeError, "slow.*make_graphed"):
            graphs.names(graphs.WAYS)("keel,slow")


if __name__ == "__main__":
    unittest.main()
