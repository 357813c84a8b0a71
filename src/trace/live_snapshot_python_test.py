#!/usr/bin/env python3
"""What a live process writes, read by Python as PyTorch's viewer reads it, and by `keel replay`.

Usage: live_snapshot_python_test.py TRACE_LIVE KEEL
"""

import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time
import unittest

STATES = ["active_allocated", "active_pending_free", "inactive"]
SEGMENT = ["device", "address", "total_size", "allocated_size", "active_size", "requested_size",
           "stream", "segment_type", "segment_pool_id", "is_expandable", "frames", "blocks"]
ACTIONS = {"alloc", "free_requested", "free_completed", "segment_map", "segment_unmap", "oom",
           "snapshot"}


class LiveSnapshotTest(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.pickle = pathlib.Path(folder.name) / "memory.pickle"
        as_json = pathlib.Path(folder.name) / "memory.json"
        environment = dict(os.environ, KEEL_SIM="devices:2,memory:1GiB,arena:16GiB",
                           KEEL_ALLOC_CONF="history:100000,history_stacks:true,upkeep:0")
        cls.began = time.time()
        printed = subprocess.run([LIVE, as_json, cls.pickle], check=True, capture_output=True,
                                 text=True, env=environment)
        cls.ended = time.time()
        assert not printed.stderr, printed.stderr
        cls.lines = [line.split() for line in printed.stdout.splitlines()]
        cls.snapshot = pickle.loads(cls.pickle.read_bytes())
        cls.json = json.loads(as_json.read_text())

    def test_both_files_say_the_same(self):
        self.assertEqual(self.json, json.loads(json.dumps(self.snapshot)))

    def test_segments_and_blocks_are_those_of_the_process(self):
        written = []
        for segment in self.snapshot["segments"]:
            self.assertEqual(list(segment), SEGMENT)
            written.append(["segment", str(segment["device"]), str(segment["address"]),
                            str(segment["total_size"]), str(segment["stream"])])
            for block in segment["blocks"]:
                tag = block.get("user_metadata")
                written.append(["block", str(block["address"]), str(block["size"]),
                                str(block["requested_size"]), str(STATES.index(block["state"]))]
                               + ([tag] if tag else []))
        expected = [line for line in self.lines if line[0] in ("segment", "block")]
        self.assertGreater(len(expected), 20)
        self.assertEqual(written, expected)
        self.assertEqual({line[4] for line in expected if line[0] == "block"}, {"0", "1", "2"})

    def test_sums_are_the_statistics(self):
        totals = {line[0]: int(line[1]) for line in self.lines if len(line) == 2}
        of = lambda key: sum(segment[key] for segment in self.snapshot["segments"])
        self.assertEqual(of("total_size"), totals["reserved"])
        self.assertEqual(of("allocated_size"), totals["allocated"])
        self.assertEqual(of("active_size"), totals["active"])

    def test_the_history_ends_in_what_is_there(self):
        """Played from its start, it leaves exactly the blocks and the mapped bytes."""
        self.assertEqual(self.snapshot["device_traces"][0], [])
        events = self.snapshot["device_traces"][1]
        self.assertEqual({event["action"] for event in events}, ACTIONS)
        self.assertEqual(events[-1]["action"], "snapshot")
        live, mapped = {}, 0
        for event in events:
            if event["action"] == "alloc":
                self.assertNotIn(event["addr"], live)
                live[event["addr"]] = (event["size"], event["stream"])
            elif event["action"] == "free_completed":
                self.assertEqual(live.pop(event["addr"]), (event["size"], event["stream"]))
            elif event["action"] == "segment_map":
                mapped += event["size"]
            elif event["action"] == "segment_unmap":
                mapped -= event["size"]
        there = {block["address"]: (block["requested_size"], segment["stream"])
                 for segment in self.snapshot["segments"] for block in segment["blocks"]
                 if block["state"] != "inactive"}
        self.assertEqual(live, there)
        self.assertEqual(mapped, sum(s["total_size"] for s in self.snapshot["segments"]))

    def test_times_are_of_the_wall(self):
        times = [event["time_us"] / 1e6 for event in self.snapshot["device_traces"][1]]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[0], self.began - 1)
        self.assertLess(times[-1], self.ended + 1)

    def test_stacks_say_where(self):
        events = self.snapshot["device_traces"][1]
        blocks = [block for segment in self.snapshot["segments"] for block in segment["blocks"]]
        live = [block for block in blocks if block["state"] != "inactive"]
        self.assertTrue(live)
        for thing in [event for event in events if event["action"] == "alloc"] + live:
            names = [frame["name"] for frame in thing["frames"]]
            self.assertIn("keel::memory::DeviceAllocator::Allocate", " ".join(names))
            for frame in thing["frames"]:
                self.assertEqual(list(frame), ["name", "filename", "line"])

    def test_settings(self):
        settings = self.snapshot["allocator_settings"]
        self.assertIn("history:100000", settings["KEEL_ALLOC_CONF"])
        self.assertIs(settings["expandable_segments"], True)
        self.assertEqual(settings["max_split_size"], -1)
        self.assertEqual(settings["limit"], 1 << 30)
        self.assertEqual(settings["roundup_power2_divisions"]["1"], 0)

    def test_it_can_be_replayed(self):
        result = subprocess.run([KEEL, "replay", self.pickle, "--recorded-device", "1", "--json"],
                                check=True, capture_output=True, text=True)
        (row,) = json.loads(result.stdout)
        self.assertEqual(row["operations"], 40 + 20)
        self.assertEqual(row["peak_requested"], 70_001 * sum(range(1, 41)))
        self.assertEqual(row["ooms"], 0)


if __name__ == "__main__":
    LIVE, KEEL = (pathlib.Path(argument) for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1])
