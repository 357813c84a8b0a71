#!/usr/bin/env python3
"""Tests of `keel report`: what the page and the trace hold. report_browser_test.py opens the page."""

import base64
import json
import os
import re
import tempfile
import unittest

from command_line import ESCAPE, keel, keel_on_terminal
from recordings import MIB, RESNET, RecordingTest, event, history

HOSTILE = "</script><script>window.broken = 1</script><!-- \u2028 ]]> \" ' & {{data}} \x01 \U0001f680"


def page_data(html):
    """The data of a page. There is one script element with data and one with the program."""
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert len(found) == 1 and len(re.findall(r"<script", html)) == 2, len(found)
    return json.loads(found[0])


def column(text):
    values, value, shift = [], 0, 0
    for byte in base64.b64decode(text):
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(value)
            value = shift = 0
    return values


def sums(text):
    values, value = [], 0
    for each in column(text):
        value += -((each + 1) // 2) if each % 2 else each // 2
        values.append(value)
    return values


class ReportTest(RecordingTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def text(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def page(self, file, *arguments):
        """The page, and what --json says about it."""
        result = self.json_of("report", file, "-o", self.path("page.html"), "--json", *arguments)
        return self.text("page.html"), result

    @staticmethod
    def without_speed(rows):
        return [{key: value for key, value in row.items() if key not in ("ns_per_operation", "samples")}
                for row in rows]


class ResnetTest(ReportTest):
    def test_numbers_are_those_of_a_replay(self):
        html, result = self.page(RESNET, "--lag", "5ms")
        replayed = self.json_of("replay", RESNET, "--json", "--lag", "5ms",
                                "--conf", "", "--conf", "expandable_segments:false")
        data = page_data(html)
        self.assertEqual(self.without_speed(data["replays"]), self.without_speed(replayed))
        self.assertEqual(self.without_speed(result["replays"]), self.without_speed(replayed))
        self.assertEqual(result["page"], self.path("page.html"))
        self.assertIsNone(result["perfetto"])
        self.assertEqual(result["peak_requested"], 7810783248)
        self.assertEqual(result["peak_reserved"], 11106516992)
        self.assertEqual(data["recorded"]["peak_requested"], 7810783248)
        # The curve of a replay ends at, and never passes, what it reserved.
        for row in data["replays"]:
            self.assertLessEqual(max(sums(row["samples"]["reserved"])), row["peak_reserved"])
            self.assertGreater(len(sums(row["samples"]["tick"])), 1000)

    def test_the_timeline_adds_up(self):
        html, result = self.page(RESNET)
        self.assertLess(len(html), 1 * MIB)
        data = page_data(html)
        ticks = {name: sums(values) for name, values in data["ticks"].items()}
        self.assertEqual(max(ticks["requested"]), 7810783248)
        self.assertEqual(max(ticks["reserved"]), 11106516992)
        self.assertEqual(ticks["requested"][data["peak"]], 7810783248)
        self.assertEqual(ticks["event"][-1], 46485)
        self.assertEqual(ticks["event"], sorted(set(ticks["event"])))
        blocks = data["blocks"]
        starts, ends, sizes = sums(blocks["start"]), sums(blocks["end"]), column(blocks["size"])
        self.assertEqual(len(sizes) + data["small"]["blocks"], 15448)
        self.assertEqual(result["blocks"], 15448)
        self.assertEqual(result["small_blocks"], data["small"]["blocks"])
        self.assertGreaterEqual(min(sizes), data["small"]["below"])
        # At every tick: the blocks that are drawn, and the band, are what was requested.
        change = [0] * (len(ticks["event"]) + 1)
        for start, end, size in zip(starts, ends, sizes):
            change[start] += size
            if end > 0:
                change[end - 1] -= size
        level = 0
        for tick, small in enumerate(ticks["small_bytes"]):
            level += change[tick]
            self.assertEqual(level + small, ticks["requested"][tick])

    def test_what_made_the_peak(self):
        html, result = self.page(RESNET)
        data = page_data(html)
        groups = data["peak_groups"]["list"]
        self.assertEqual(sum(group[1] for group in groups), 7810783248)
        self.assertEqual([group[1] for group in groups], sorted((g[1] for g in groups), reverse=True))
        self.assertEqual(data["groups"][groups[0][0]], ["256 MiB", "size"])
        self.assertEqual(result["peak_groups"][0],
                         {"name": "256 MiB", "kind": "size", "bytes": 2684354560, "blocks": 10})

    def test_segments(self):
        data = page_data(self.page(RESNET)[0])
        self.assertEqual([picture["name"] for picture in data["pictures"]], ["peak", "end"])
        reserved = sums(data["ticks"]["reserved"])
        for picture in data["pictures"]:
            self.assertEqual(sum(column(picture["size"])), reserved[picture["tick"]])
            self.assertEqual(sum(column(picture["block_size"])), reserved[picture["tick"]])
            self.assertEqual(sum(column(picture["count"])), len(column(picture["block_kind"])))

    def test_asks_nothing_of_a_network(self):
        html = self.page(RESNET)[0]
        self.assertIsNone(re.search(r"(?i)\b(https?|ftp|wss?):", html))
        self.assertIsNone(re.search(r"(?i)<(link|iframe|img|object|embed|base)\b|\bsrc=|@import|url\(", html))
        self.assertIn("default-src 'none'", html)

    def test_small(self):
        data = page_data(self.page(RESNET, "--small", "0")[0])
        self.assertEqual((data["small"]["blocks"], data["blocks"]["count"]), (0, 15448))
        data = page_data(self.page(RESNET, "--small", "1TiB")[0])
        self.assertEqual((data["small"]["blocks"], data["blocks"]["count"]), (15448, 0))
        self.assertEqual(sums(data["ticks"]["small_bytes"]), sums(data["ticks"]["requested"]))

    def test_trace_events(self):
        result = self.json_of("report", RESNET, "--perfetto", self.path("trace.json"), "--json")
        self.assertEqual((result["page"], result["perfetto"]), (None, self.path("trace.json")))
        self.assertEqual(os.listdir(self.folder), ["trace.json"])
        events = json.loads(self.text("trace.json"))["traceEvents"]
        levels = {}
        for each in events:
            if each["ph"] == "C":
                levels.setdefault(each["name"], []).append(each["args"]["bytes"])
        self.assertEqual(max(levels["recorded: requested"]), 7810783248)
        self.assertEqual(max(levels["recorded: reserved"]), 11106516992)
        for name, row in zip(("defaults", "expandable_segments:false"), result["replays"]):
            self.assertLessEqual(max(levels[f"Keel, {name}: reserved"]), row["peak_reserved"])
            self.assertLessEqual(max(levels[f"Keel, {name}: allocated"]), row["peak_allocated"])
        blocks = [each for each in events if each.get("cat") == "block"]
        begun = {each["id"]: each for each in blocks if each["ph"] == "b"}
        ended = {each["id"]: each for each in blocks if each["ph"] == "e"}
        self.assertEqual(len(begun), result["blocks"] - result["small_blocks"])
        self.assertEqual(begun.keys(), ended.keys())
        for number, each in begun.items():
            self.assertLessEqual(each["ts"], ended[number]["ts"])
            self.assertGreaterEqual(each["args"]["bytes"], result["small_below"])


class SmallHistoryTest(ReportTest):
    def test_names_of_a_file_stay_text(self):
        frames = [{"name": HOSTILE, "filename": "/" + HOSTILE + ".py", "line": 3}]
        events = [event("alloc", 0x1000, MIB, 0, frames=frames, tag=HOSTILE),
                  event("alloc", 0x200000, MIB, 1, tag=HOSTILE)]
        marks = [{"name": HOSTILE, "stage": "START", "device": 0, "time_us": 0}]
        file = self.recording(events, annotations=marks)
        html = self.page(file, "--title", HOSTILE)[0]
        data = page_data(html)  # there are as many script elements as there should be
        self.assertEqual(data["title"], HOSTILE)
        self.assertEqual(data["tags"], ["", HOSTILE])
        self.assertEqual(data["stacks"]["frames"], [[HOSTILE, "/" + HOSTILE + ".py", 3]])
        self.assertEqual(data["phases"], [[HOSTILE, 0, 1]])
        self.assertNotIn("<script>window", html)
        self.assertNotIn("<!--", html)
        self.assertEqual(html.count("</title>"), 1)
        # What is no UTF-8 does not break it either.
        keel("report", file, "-o", self.path("page.html"), "--title", "\udcff<b>")
        self.assertIn("<title>\ufffd&lt;b&gt;", self.text("page.html"))
        self.assertEqual(page_data(self.text("page.html"))["title"], "\ufffd<b>")

    def test_groups_by_frame_tag_and_size(self):
        own = {"name": "forward", "filename": "/me/model.py", "line": 42}
        library = {"name": "conv", "filename": "/x/site-packages/torch/nn.py", "line": 1}
        events = [event("alloc", 0x100000, 5 * MIB, 0, frames=[library, own]),
                  event("alloc", 0x900000, 3 * MIB, 1, tag="cache"),
                  event("alloc", 0xF00000, 2 * MIB, 2)]
        result = self.page(self.recording(events))[1]
        self.assertEqual([(group["name"], group["kind"], group["bytes"]) for group in result["peak_groups"]],
                         [("model.py:42 forward", "frame", 5 * MIB), ("cache", "tag", 3 * MIB),
                          ("2 MiB", "size", 2 * MIB)])

    def test_a_picture_of_the_moment(self):
        segment = {"device": 0, "address": 0x1000, "total_size": 4 * MIB, "stream": 0, "blocks": [
            {"address": 0x1000, "size": MIB, "requested_size": MIB, "state": "active_allocated"},
            {"address": 0x1000 + MIB, "size": 3 * MIB, "state": "inactive"}]}
        html, result = self.page(self.recording([], segments=[segment]))
        self.assertEqual(result["replays"], [])
        self.assertEqual((result["peak_requested"], result["peak_reserved"]), (MIB, 4 * MIB))
        self.assertEqual([picture["name"] for picture in page_data(html)["pictures"]], ["end"])
        self.assertIn("no history", html)

    def test_a_log_without_segments(self):
        with open(self.path("log.csv"), "w", encoding="utf-8") as file:
            file.write("Thread,Time,Action,Pointer,Size,Stream\n"
                       "1,10:00:00.000001,allocate,0x1000,1048576,0\n"
                       "1,10:00:00.000005,free,0x1000,1048576,0\n")
        html, result = self.page(self.path("log.csv"))
        self.assertEqual(result["peak_requested"], MIB)
        self.assertEqual(page_data(html)["pictures"], [])

    def test_out_of_memory(self):
        html, result = self.page(self.recording(history(64 * MIB)), "--memory", "32MiB")
        self.assertEqual(result["replays"][0]["ooms"], 1)
        self.assertIn("1 allocations would not have fit", html)

    def test_configurations(self):
        result = self.page(self.recording(history(MIB)), "--conf", "handle_size:20MiB")[1]
        self.assertEqual([row["conf"] for row in result["replays"]], ["handle_size:20MiB"])


class OutputTest(ReportTest):
    def test_standard_output(self):
        file = self.recording(history(MIB))
        run = keel("report", file, "-o", "-")
        self.assert_ok(run)
        self.assertTrue(run.stdout.startswith("<!doctype html>"))
        self.assertTrue(run.stdout.endswith("</html>\n"))
        run = keel("report", file, "--perfetto", "-")
        self.assertGreater(len(json.loads(run.stdout)["traceEvents"]), 4)
        self.assert_fails(keel("report", file, "-o", "-", "--perfetto", "-"), 2, "-o", "--perfetto")
        self.assert_fails(keel("report", file, "-o", "-", "--json"), 2, "--json")

    def test_the_name_of_the_file(self):
        here = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, here)
        run = keel("report", RESNET)
        self.assert_ok(run)
        self.assertEqual(os.listdir("."), ["resnet_train.html"])
        self.assertNotIn(ESCAPE, run.stdout)
        self.assertIn("resnet_train.html (", run.stdout)
        self.assertIn("reserved 10.34 GiB, 1.422 times as much", run.stdout)
        self.assertIn("<title>resnet_train: memory report</title>", self.text("resnet_train.html"))

    def test_replaced_in_one_step(self):
        file = self.recording(history(MIB))
        with open(self.path("page.html"), "w", encoding="utf-8") as old:
            old.write("old")
        self.assert_fails(keel("report", "/no/such/file", "-o", self.path("page.html")), 2, "/no/such/file")
        self.assertEqual(self.text("page.html"), "old")
        self.assert_ok(keel("report", file, "-o", self.path("page.html")))
        self.assertTrue(self.text("page.html").startswith("<!doctype html>"))
        self.assertEqual(os.listdir(self.folder), ["page.html"])

    def test_mistakes(self):
        file = self.recording(history(MIB))
        self.assert_fails(keel("report"), 2, "FILE", "keel report --help")
        self.assert_fails(keel("report", file, "-o", file), 2, file, "recording itself")
        self.assert_fails(keel("report", file, "-o", "/no/such/folder/x.html"), 2, "/no/such/folder")
        run = keel("report", file, "-o", self.folder)
        self.assert_fails(run, 1, self.folder, "no file")
        self.assert_fails(keel("report", file, "--small", "lots"), 2, "--small", "'lots'")
        out = ("-o", self.path("page.html"))
        self.assert_fails(keel("report", file, *out, "--conf", "nope:1"), 2, "--conf", "'nope'")
        self.assert_fails(keel("report", file, *out, "--recorded-device", "4"), 2, "device 4", "choose")
        self.assert_fails(keel("report", __file__, *out), 2, __file__)
        self.assert_fails(keel("report", self.recording([]), *out), 2, "neither events nor segments")
        with open(RESNET, "rb") as whole, open(self.path("cut.xz"), "wb") as cut:
            cut.write(whole.read(20000))
        self.assert_fails(keel("report", self.path("cut.xz"), *out), 2, "cut.xz")
        self.assertEqual(os.listdir(self.folder), ["cut.xz"])

    def test_progress_on_a_terminal(self):
        code, output = keel_on_terminal("report", RESNET, "-o", self.path("page.html"))
        self.assertEqual(code, 0, output)
        for step in ("[1/4] Reading", "[2/4] (defaults)", "[3/4] expandable_segments:false", "[4/4] Writing"):
            self.assertIn(step, output)
        self.assertIn("page.html", output)


if __name__ == "__main__":
    unittest.main()
