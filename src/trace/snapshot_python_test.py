#!/usr/bin/env python3
"""What Keel writes, as Python reads it: the values that PyTorch's tools expect, unharmed.

A snapshot goes through the converter, which reads it with Keel's readers and writes it with its
writers, and is compared with itself. Every protocol of pickle, JSON, and gzip are tried on the way
in.

Usage: snapshot_python_test.py CONVERTER SAMPLE
"""

import gzip
import json
import lzma
import pathlib
import pickle
import pickletools
import subprocess
import sys
import tempfile
import unittest

CONVERTER = None
SAMPLE = None

# The instructions that PyTorch's web viewer knows and that we write.
VIEWER_KNOWS = {
    "PROTO", "STOP", "MARK", "EMPTY_DICT", "SETITEMS", "EMPTY_LIST", "APPENDS", "TUPLE2",
    "SHORT_BINUNICODE", "BINUNICODE", "MEMOIZE", "BINGET", "LONG_BINGET", "BININT", "BININT1",
    "BININT2", "LONG1", "BINFLOAT", "NEWTRUE", "NEWFALSE",
}


def frames(depth):
    return [{"name": f"call {i} \"x\" \\", "filename": f"/src/grün{i}.py", "line": i}
            for i in range(depth)]


def event(action, **fields):
    entry = {"action": action, "addr": 0, "size": 0, "stream": 0, "time_us": 0,
             "compile_context": "N/A", "user_metadata": ""}
    entry.update(fields)
    return entry


def snapshot():
    """One with everything: all actions and states, stacks, large addresses, long lists."""
    stack = frames(3)
    high = 0xFF00000000200000
    events = [event(name, addr=high + i, size=1 << i, stream=93825009184768, time_us=17 + i,
                    frames=stack, user_metadata=f"tag {i % 2}")
              for i, name in enumerate(("alloc", "free_requested", "free_completed",
                                        "segment_alloc", "segment_free", "segment_map",
                                        "segment_unmap", "snapshot"))]
    oom = event("oom", device_free=12345, size=1 << 40)
    del oom["addr"]
    events += [oom] + [event("alloc", addr=2**k, size=2**k - 1, stream=2**64 - 2**k,
                             time_us=2**min(k, 62)) for k in range(64)]
    segment = {
        "device": 1, "address": high, "total_size": 3 << 20, "allocated_size": 1 << 20,
        "active_size": 2 << 20, "requested_size": 1000001, "stream": 7, "segment_type": "small",
        "segment_pool_id": (3, 4), "is_expandable": True, "frames": frames(2),
        "blocks": [
            {"address": high, "size": 1 << 20, "requested_size": 10**6,
             "state": "active_allocated", "frames": stack},
            {"address": high + (1 << 20), "size": 1 << 20, "requested_size": 1,
             "state": "active_pending_free", "frames": []},
            {"address": high + (2 << 20), "size": 1 << 20, "requested_size": 0,
             "state": "inactive", "frames": []}]}
    return {
        "segments": [segment],
        "device_traces": [[], events, [event("alloc", addr=i, size=i) for i in range(3001)]],
        "allocator_settings": {"PYTORCH_ALLOC_CONF": "expandable_segments:True",
                               "max_split_size": -1, "garbage_collection_threshold": 0.8,
                               "expandable_segments": True,
                               "roundup_power2_divisions": {"1": 0, "2": 4}},
        "external_annotations": [
            {"stage": "START", "name": "step", "device": 1, "time_us": 10},
            {"stage": "END", "name": "step", "device": 1, "time_us": 20}]}


def as_json(value):
    """JSON has no tuples."""
    return json.loads(json.dumps(value))


class SnapshotTest(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def convert(self, contents, to):
        source, target = self.folder / "source", self.folder / "target"
        source.write_bytes(contents)
        subprocess.run([CONVERTER, to, source, target], check=True)
        self.assertEqual(sorted(self.folder.iterdir()), [source, target])
        return target.read_bytes()

    def check(self, contents, expected):
        written = self.convert(contents, "json")
        self.assertEqual(json.loads(written), as_json(expected))
        written = self.convert(contents, "pickle")
        self.assertEqual(pickle.loads(written), expected)
        used = {op.name for op, _, _ in pickletools.genops(written)}
        self.assertLessEqual(used, VIEWER_KNOWS)

    def test_every_way_in_and_both_ways_out(self):
        expected = snapshot()
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            # The oldest one escapes letters beyond ASCII, which is refused.
            if protocol > 0:
                with self.subTest(protocol=protocol):
                    self.check(pickle.dumps(expected, protocol), expected)
        with self.subTest("gzip"):
            self.check(gzip.compress(pickle.dumps(expected)), expected)
        with self.subTest("json"):
            self.check(json.dumps(expected).encode(), expected)
        with self.subTest("json without escapes, indented"):
            self.check(json.dumps(expected, ensure_ascii=False, indent=1).encode(), expected)

    def test_blocks_tile_their_segments(self):
        written = json.loads(self.convert(pickle.dumps(snapshot()), "json"))
        for segment in written["segments"]:
            end = segment["address"]
            for block in segment["blocks"]:
                self.assertEqual(block["address"], end)
                end += block["size"]
            self.assertEqual(end, segment["address"] + segment["total_size"])

    def test_stacks_are_shared(self):
        """A thousand events with one stack of a hundred frames: the stack is there once."""
        stack = frames(100)
        given = snapshot()
        given["device_traces"] = [[event("alloc", frames=stack) for _ in range(1000)]]
        written = self.convert(json.dumps(given).encode(), "pickle")
        self.assertEqual(pickle.loads(written), given)
        self.assertLess(len(written), 100_000)

    def test_long_lists_come_in_pieces(self):
        """As Python writes them; the viewer takes each from its stack in one call."""
        given = {"segments": [], "device_traces": [[event("alloc", addr=i) for i in range(3001)]],
                 "allocator_settings": {}, "external_annotations": []}
        written = self.convert(json.dumps(given).encode(), "pickle")
        pieces = [op for op, _, _ in pickletools.genops(written) if op.name == "APPENDS"]
        self.assertEqual(len(pieces), 5)  # three of a thousand, one of one, and the outer list

    def test_a_real_snapshot(self):
        try:
            expected = pickle.loads(lzma.decompress(SAMPLE.read_bytes()))
        except ImportError:
            self.skipTest("this Python has no lzma")
        self.check(pickle.dumps(expected), expected)


if __name__ == "__main__":
    CONVERTER = pathlib.Path(sys.argv[1])
    SAMPLE = pathlib.Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1])
