#!/usr/bin/env python3
"""Tests of `keel replay`. See command_line.py. KEEL_TEST_DATA is the folder of recordings."""

import json
import tempfile
import time
import unittest

from command_line import ESCAPE, keel, keel_on_terminal
from recordings import MIB, RESNET, RecordingTest, event, history

KEYS = ["conf", "lag_us", "peak_requested", "peak_allocated", "peak_reserved", "ratio", "ooms",
        "driver_calls", "driver_us", "recorded_us", "operations", "ns_per_operation"]


class ResnetTest(RecordingTest):
    def test_waste_and_cost(self):
        for lag, lag_us in (("0", 0), ("5ms", 5000)):
            with self.subTest(lag=lag):
                defaults, plain = self.json_of(
                    "replay", RESNET, "--json", "--lag", lag,
                    "--conf", "", "--conf", "expandable_segments:false")
                for row in (defaults, plain):
                    self.assertEqual(list(row), KEYS)
                    self.assertEqual(row["lag_us"], lag_us)
                    self.assertEqual(row["peak_requested"], 7810783248)
                    self.assertGreaterEqual(row["peak_allocated"], row["peak_requested"])
                    self.assertGreaterEqual(row["peak_reserved"], row["peak_allocated"])
                    self.assertAlmostEqual(
                        row["ratio"], row["peak_reserved"] / row["peak_requested"])
                    self.assertEqual(row["ooms"], 0)
                    self.assertEqual(row["operations"], 30893)
                    self.assertGreater(row["ns_per_operation"], 0)
                    self.assertLess(row["driver_us"], 0.03 * row["recorded_us"])
                self.assertEqual(defaults["conf"], "")
                self.assertLess(defaults["ratio"], 1.02)
                self.assertGreater(defaults["driver_calls"]["Map"], 0)
                self.assertNotIn("AllocatePlain", defaults["driver_calls"])
                self.assertEqual(plain["conf"], "expandable_segments:false")
                self.assertLessEqual(plain["peak_reserved"], 11106516992)
                self.assertNotIn("Map", plain["driver_calls"])

    def test_is_the_same_every_time(self):
        def run():
            (row,) = self.json_of("replay", RESNET, "--json", "--lag", "5ms")
            del row["ns_per_operation"]
            return row

        self.assertEqual(run(), run())

    def test_text(self):
        run = keel("replay", RESNET, "--conf", "expandable_segments:false", "--conf", "")
        self.assert_ok(run)
        self.assertNotIn(ESCAPE, run.stdout)
        self.assertNotIn("\r", run.stdout)
        self.assertIn("46,485 events on 1 stream in 2.98 s", run.stdout)
        self.assertIn("at most 7.27 GiB requested", run.stdout)
        self.assertRegex(run.stdout, r"(?m)^expandable_segments:false +7\.27 GiB .* 0 +[\d.]+ ")
        self.assertRegex(run.stdout, r"(?m)^\(defaults\) +7\.27 GiB .* 1\.00\d +0 ")
        self.assertRegex(run.stdout, r"(?m)^recorded +7\.27 GiB +- +10\.34 GiB +1\.422 ")
        self.assertRegex(run.stdout, r"(?m)^CreateMemory +0 +[1-9]")

    def test_too_little_memory(self):
        (row,) = self.json_of("replay", RESNET, "--json", "--memory", "4GiB")
        self.assertGreater(row["ooms"], 0)
        self.assertLessEqual(row["peak_reserved"], 4 << 30)

    def test_chosen_device(self):
        for arguments in (("--device", "sim:1"), ("--driver", "sim", "--device", "1")):
            (row,) = self.json_of("replay", RESNET, "--json", *arguments,
                                  KEEL_SIM="devices:2,memory:6GiB")
            self.assertGreater(row["ooms"], 0)  # it is that one, and no other

    def test_progress_on_a_terminal(self):
        code, output = keel_on_terminal("replay", RESNET)
        self.assertEqual(code, 0, output)
        self.assertIn("\r" + ESCAPE, output)
        self.assertIn("[1/2] Reading", output)
        self.assertIn("[2/2] (defaults)", output)


class RecordedDeviceTest(RecordingTest):
    def test_the_one_with_most_events(self):
        file = self.recording(history(MIB), history(3 * MIB, 5 * MIB))
        (row,) = self.json_of("replay", file, "--json")
        self.assertEqual(row["peak_requested"], 8 * MIB)
        (row,) = self.json_of("replay", file, "--json", "--recorded-device", "0")
        self.assertEqual(row["peak_requested"], MIB)
        self.assertEqual(row["recorded_us"], 2000)
        self.assertEqual(row["operations"], 2)
        self.assertIn("--recorded-device 0", keel("replay", file).stdout)

    def test_mistakes(self):
        file = self.recording(history(MIB), [], history(MIB))
        for number in ("1", "7"):
            run = keel("replay", file, "--recorded-device", number)
            self.assert_fails(run, 2, f"device {number}", "--recorded-device", "0, 2")
        run = keel("replay", file, "--recorded-device", "x")
        self.assert_fails(run, 2, "--recorded-device", "'x'", "keel replay --help")

    def test_with_real_work(self):
        # 40 blocks of 1 MiB, one after another, over 80 ms of the recording's time.
        events = [each for i in range(40) for each in (
            event("alloc", 0x10000000 + i * MIB, MIB, 2000 * i),
            event("free_requested", 0x10000000 + i * MIB, MIB, 2000 * i + 1000),
            event("free_completed", 0x10000000 + i * MIB, MIB, 2000 * i + 1000))]
        file = self.recording(events)
        (model,) = self.json_of("replay", file, "--json", "--device", "sim:0")
        began = time.monotonic()
        (work,) = self.json_of("replay", file, "--json", "--work", "--device", "sim:0")
        # At the recording's pace: as long as that took, which is no cost of the allocator's.
        self.assertGreaterEqual(time.monotonic() - began, 0.079)
        self.assertLess(work["ns_per_operation"] * work["operations"], 79e6)
        for key in ("peak_requested", "peak_reserved", "operations", "ooms"):
            self.assertEqual(work[key], model[key], key)
        run = keel("replay", file, "--work", "--device", "sim:0")
        self.assert_ok(run)
        self.assertIn("filled at both ends", run.stdout)
        self.assert_fails(keel("replay", file, "--work"), 2, "--work", "--device")
        self.assert_fails(keel("replay", file, "--work", "--lag", "5ms", "--device", "sim:0"), 2,
                          "--work", "--lag")

    def test_what_was_there_before(self):
        events = [event("free_requested", 0x5000, 2 * MIB, 0),
                  event("free_completed", 0x5000, 2 * MIB, 1)] + history(MIB)
        text = keel("replay", self.recording(events)).stdout
        self.assertIn("2 MiB were there before", text)


class MistakeTest(RecordingTest):
    def test_files(self):
        self.assert_fails(keel("replay"), 2, "FILE", "keel replay --help")
        self.assert_fails(keel("replay", "/no/such/file"), 2, "'/no/such/file'")
        self.assert_fails(keel("replay", __file__), 2, __file__)
        with open(RESNET, "rb") as whole, tempfile.NamedTemporaryFile() as cut:
            cut.write(whole.read(20000))
            cut.flush()
            self.assert_fails(keel("replay", cut.name), 2, cut.name)
        run = keel("replay", self.recording([]))
        self.assert_fails(run, 2, "no events", ".pickle")

    def test_nothing_on_standard_output(self):
        self.assertEqual(keel("replay", "/no/such/file", "--json").stdout, "")
        self.assertEqual(keel("replay", RESNET, "--json", "--conf", "x:1").stdout, "")

    def test_configuration(self):
        run = keel("replay", RESNET, "--conf", "", "--conf", "expandable_segment:true")
        self.assert_fails(run, 2, "--conf", "'expandable_segment'", "expandable_segments")
        run = keel("replay", RESNET, "--conf", "max_split_size_mb:many")
        self.assert_fails(run, 2, "--conf", "max_split_size_mb", "many")
        # The environment's has no say, so what is wrong there is not this command's.
        run = keel("replay", RESNET, "--json", KEEL_ALLOC_CONF="nonsense:1")
        self.assert_ok(run)

    def test_lag(self):
        for lag, mention in (("5", "5ms"), ("5m", "unit"), ("-5ms", "5ms"), ("soon", "5ms"),
                             ("2h", "unit"), ("4000s", "3600s"), ("nan", "5ms")):
            with self.subTest(lag=lag):
                run = keel("replay", RESNET, f"--lag={lag}")
                self.assert_fails(run, 2, "--lag", f"'{lag}'", mention)
        for lag, lag_us in (("0", 0), ("0ms", 0), ("500us", 500), ("1.5ms", 1500), ("1s", 10**6)):
            with self.subTest(lag=lag):
                (row,) = self.json_of("replay", RESNET, "--json", "--lag", lag)
                self.assertEqual(row["lag_us"], lag_us)

    def test_devices(self):
        self.assert_fails(keel("replay", RESNET, "--device", "nope:0"), 2, "'nope'", "sim")
        self.assert_fails(keel("replay", RESNET, "--device", "sim:9"), 2, "9", "--device")
        self.assert_fails(keel("replay", RESNET, "--device", "sim"), 2, "'sim'", "--device")
        run = keel("replay", RESNET, "--device", "sim:0", "--driver", "hip")
        self.assert_fails(run, 2, "sim:0", "hip")

    def test_memory(self):
        self.assert_fails(keel("replay", RESNET, "--memory", "lots"), 2, "--memory", "'lots'")
        self.assert_fails(keel("replay", RESNET, "--memory", "0"), 2, "--memory", "0 B")
        run = keel("replay", RESNET, "--memory", "1GiB", "--device", "sim:0")
        self.assert_fails(run, 2, "--memory")

    def test_keys_without_effect(self):
        run = keel("replay", RESNET, "--json", "--conf", "release_lock_on_cudamalloc:true")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("release_lock_on_cudamalloc", run.stderr)
        self.assertEqual(len(json.loads(run.stdout)), 1)


if __name__ == "__main__":
    unittest.main()
