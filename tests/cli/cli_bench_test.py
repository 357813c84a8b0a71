#!/usr/bin/env python3
"""Tests of `keel bench`: that it measures what it says, not how fast that is. See command_line.py."""

import json
import os
import re
import unittest

from command_line import ESCAPE, CliTest, keel, keel_on_terminal

SIZES = [512, 64 << 10, 1 << 20, 16 << 20]

not_under_thread_sanitizer = unittest.skipIf(
    os.environ.get("KEEL_SANITIZE") == "thread",
    "takes minutes there; what its threads do is in the layers' own tests")


class BenchTest(CliTest):
    def measured(self, what, unit, **variables):
        """{name: [(parameters, value)]}; each value is above zero and in that unit if it is named."""
        found = {}
        for entry in self.json_of("bench", what, "--json", **variables):
            self.assertEqual(list(entry)[:2], ["name", "parameters"])
            (key,) = list(entry)[2:]
            self.assertIn(key, unit)
            self.assertGreater(entry[key], 0)
            found.setdefault(entry["name"], []).append((entry["parameters"], entry[key]))
        return found

    def test_alloc(self):
        found = self.measured("alloc", ("ns",))
        self.assertEqual([p["size"] for p, _ in found.pop("cached pair")], SIZES)
        self.assertEqual([p["holes"] for p, _ in found.pop("pair among holes")], [64, 65536])
        threads = [p["threads"] for p, _ in found.pop("random pair by threads")]
        self.assertEqual(threads, [n for n in (1, 2, 4, 8, 16) if n == 1 or n <= os.cpu_count()])
        self.assertEqual(sorted(found), ["random pair", "random pair freed by another thread",
                                         "random pair used on another stream"])
        for measurements in found.values():
            self.assertEqual([p["live"] for p, _ in measurements], [100, 1000, 10000])

    def test_host(self):
        found = self.measured("host", ("ns", "ratio"))
        waste = found.pop("pinned held over requested")
        self.assertEqual([p["live"] for p, _ in waste], [20, 80, 300])
        for _, ratio in waste:
            self.assertGreaterEqual(ratio, 1)
            self.assertLess(ratio, 2)
        self.assertEqual(sorted(found), ["pinned pair", "pinned pair of the driver",
                                         "pinned pair used on a stream"])
        for measurements in found.values():
            self.assertEqual([p["size"] for p, _ in measurements], SIZES)

    @not_under_thread_sanitizer
    def test_copies(self):
        found = self.measured("h2d", ("GB/s",))
        self.assertEqual(sorted(found), ["to device", "to host"])
        for measurements in found.values():
            self.assertEqual([p["way"] for p, _ in measurements[:2]], ["own", "staged"])
            self.assertEqual(measurements[0][0]["size"], 4 << 10)
            self.assertEqual(measurements[-1][0]["size"], 256 << 20)

    def test_train(self):
        found = {}
        for entry in self.json_of("bench", "train", "--json"):
            value = entry["calls" if entry["name"] == "memory calls of a step" else "ns"]
            found.setdefault(entry["name"], {})[entry["parameters"]["memory"]] = value
        kinds = ["Keel as configured", "plain segments", "the driver alone"]
        for values in found.values():
            self.assertEqual(list(values), kinds)
        for kind in kinds:
            self.assertGreater(found["training step"][kind], 0)
        calls = found["memory calls of a step"]
        # Sizes repeat, so after the second step nothing is asked of the driver; where it is asked
        # for everything, each of the 37 buffers of a step comes and goes.
        self.assertEqual([calls[kind] for kind in kinds], [0, 0, 2 * 37])

    def test_primitives(self):
        found = self.measured("primitives", ("ns", "GB/s"))
        self.assertEqual(list(found), ["rewrite a command", "kernels of a step that copies",
                                       "copy by kernels", "map other memory"])

    def test_text(self):
        run = keel("bench", "host", "--device", "sim:0")
        self.assert_ok(run)
        self.assertNotIn(ESCAPE, run.stdout)
        self.assertNotIn("\r", run.stdout)
        self.assertIn("on sim device 0", run.stdout)
        self.assertRegex(run.stdout, r"(?m)^pinned pair +size 64 KiB +[\d.]+  ns$")
        self.assertRegex(run.stdout, r"(?m)^pinned held over requested +live 20, .* 1\.\d+  ratio$")

    def test_progress_on_a_terminal(self):
        code, output = keel_on_terminal("bench", "host")
        self.assertEqual(code, 0, output)
        self.assertIn("[7/7] ", output)


class GraphTest(CliTest):
    KEYS = ["commands", "moving", "bytes", "kind", "policy", "host_us", "device_us", "driver_calls",
            "bytes_copied"]

    def costs(self, *arguments):
        """{(commands, moving, bytes, kind, policy): entry}"""
        found = {}
        for entry in self.json_of("bench", "graph", "--json", *arguments):
            self.assertEqual(list(entry), self.KEYS)
            self.assertGreater(entry["host_us"], 0)
            self.assertGreater(entry["device_us"], 0)
            key = tuple(entry[name] for name in self.KEYS[:5])
            self.assertNotIn(key, found)
            found[key] = entry
        return found

    def test_quick(self):
        found = self.costs("--quick")
        self.assertEqual({key[:4] for key in found},
                         {(commands, moving, 4096, kind) for commands in (10, 100)
                          for moving in ("none", "one", "half", "all")
                          for kind in ("explicit", "traced")})
        always = {"bare", "eager", "re-record", "update", "copy", "auto"}
        for kind, own in (("explicit", "patch"), ("traced", "retrace")):
            def policies(moving):
                return {key[4] for key in found if key[:4] == (100, moving, 4096, kind)}
            # What does not move needs no copies of the driver's.
            self.assertEqual(policies("none"), always | {own, "copy-table", "in-place", "resident"})
            for moving in ("one", "half", "all"):
                self.assertEqual(policies(moving), always | {own, "bare-copies", "copy-table"})
            # Its rows go with the launch.
            self.assertNotIn((10, "half", 4096, kind, "copy-table"), found)

    def test_calls_of_a_step(self):
        def calls(moving, kind, policy):
            return found[(100, moving, 4096, kind, policy)]["driver_calls"]

        found = self.costs("--quick", "--commands", "100", "--moving", "none,half")
        recording = {"LaunchKernel": 100, "BeginCapture": 1, "EndCapture": 1, "DestroyGraph": 1,
                     "LaunchGraph": 1}
        for kind in ("explicit", "traced"):
            for policy in ("bare", "resident", "in-place", "copy", "copy-table", "auto"):
                self.assertEqual(calls("none", kind, policy), {"LaunchGraph": 1}, policy)
            for moving in ("none", "half"):
                self.assertEqual(calls(moving, kind, "eager"), {"LaunchKernel": 100})
                self.assertEqual(calls(moving, kind, "re-record"),
                                 recording | {"Instantiate": 1, "DestroyExec": 1})
                self.assertEqual(calls(moving, kind, "update"), recording | {"UpdateExec": 1})
            # Whatever moves: the addresses go with the launch, all in one call, and the graph copies.
            self.assertEqual(calls("half", kind, "copy"), {"SetNodeParams": 1, "LaunchGraph": 1})
            # Rows that are too many for that are in a table, which the host writes without a call.
            self.assertEqual(calls("half", kind, "copy-table"), {"LaunchGraph": 1})
            # Its copies are in the graph, between fixed addresses.
            self.assertEqual(calls("half", kind, "bare-copies"), {"LaunchGraph": 1})
        patched = calls("half", "explicit", "patch")
        self.assertEqual(sorted(patched), ["LaunchGraph", "SetNodeParams"])
        self.assertGreaterEqual(patched["SetNodeParams"], 32)
        self.assertEqual(calls("half", "traced", "retrace")["LaunchKernel"], 100)

    def test_bytes_copied(self):
        found = self.costs("--quick", "--commands", "10", "--policy", "copy,update")
        for (_, _, size, _, policy), entry in found.items():
            # Ten bindings; all are copied in, and the half that is written is copied out.
            self.assertEqual(entry["bytes_copied"], 15 * size if policy == "copy" else 0)

    def test_bytes_of_the_drivers_copies(self):
        found = self.costs("--quick", "--commands", "10", "--policy", "bare-copies")
        self.assertEqual({moving for _, moving, *_ in found}, {"one", "half", "all"})
        for (_, moving, size, _, _), entry in found.items():
            # What moves, and is written, is copied out as well: every other one from the second on.
            copies = {"one": 1, "half": 5 + 2, "all": 10 + 5}[moving]
            self.assertEqual(entry["bytes_copied"], copies * size)

    def test_bytes_of_what_stays_and_of_the_table(self):
        found = self.costs("--quick", "--commands", "100", "--moving", "none", "--policy",
                           "resident,copy,copy-table")
        for (*_, policy), entry in found.items():
            # 64 bindings, half of them copied out as well; the table has one more, of 64 floats.
            self.assertEqual(entry["bytes_copied"],
                             {"resident": 0, "copy": 96 * 4096, "copy-table": 96 * 4096 + 256}[policy])

    def test_remap(self):
        found = self.costs("--commands", "10,100", "--policy", "remap")
        self.assertEqual(sorted(found), [(commands, moving, 1 << 20, kind, "remap")
                                         for commands in (10, 100)
                                         for moving in ("all", "half", "one")
                                         for kind in ("explicit", "traced")])
        for (commands, moving, _, _, _), entry in found.items():
            bindings = min(commands, 64)
            moved = {"one": 1, "half": bindings // 2, "all": bindings}[moving]
            self.assertEqual(entry["driver_calls"], {"Map": moved, "Unmap": moved,
                                                     "SetAccess": moved, "LaunchGraph": 1})

    def test_text(self):
        run = keel("bench", "graph", "--quick", "--commands", "10", "--moving", "one", "--device",
                   "sim:0")
        self.assert_ok(run)
        self.assertIn("on sim device 0", run.stdout)
        self.assertRegex(run.stdout, r"(?m)^ +10  explicit +4 KiB  one +patch +[\d.]+ +[\d.]+ +0 B"
                                     r"  SetNodeParams 2, LaunchGraph 1$")
        self.assertRegex(run.stdout, r"(?m)^auto reckons with [\d.]+ us of the host to rewrite a command")

    def test_text_has_every_kind_of_call(self):
        run = keel("bench", "graph", "--commands", "10", "--moving", "one", "--policy",
                   "re-record,remap")
        self.assert_ok(run)
        # Where they are many, in two lines, of which the second has nothing else.
        self.assertEqual(len(re.findall(
            r"(?m)^ +10  \w+ +\d [KM]iB  one +re-record .*  LaunchKernel 10, BeginCapture 1,"
            r" DestroyExec 1, DestroyGraph 1,\n +EndCapture 1, Instantiate 1, LaunchGraph 1$",
            run.stdout)), 4)
        self.assertEqual(len(re.findall(
            r"(?m)^ +10  \w+ +1 MiB  one +remap .*  LaunchGraph 1, Map 1, SetAccess 1, Unmap 1$",
            run.stdout)), 2)

    def test_mistakes(self):
        self.assert_fails(keel("bench", "graph", "--policy", "hope"), 2, "'hope'", "re-record")
        self.assert_fails(keel("bench", "graph", "--moving", "two"), 2, "'two'", "half")
        self.assert_fails(keel("bench", "graph", "--commands", "11"), 2, "11", "10, 100, 1000")
        for option in (["--quick"], ["--policy", "copy"], ["--moving", "one"], ["--commands", "10"]):
            self.assert_fails(keel("bench", "host", *option), 2, option[0], "'host'")


class TaskTest(CliTest):
    KEYS = ["transport", "what", "orchestration", "workers", "ns", "bare_ns", "ratio"]
    ROWS = [("bare round trip", "", 0), ("submit and wait", "host", 1),
            ("1000 in flight, each", "host", 1), ("submit again, 4 tensors", "host", 1),
            ("submit a group of 2", "host", 2), ("submit and wait", "device", 1),
            ("register what is known", "device", 1), ("register what is new", "device", 1)]

    def costs(self, *arguments):
        """[(transport, what, orchestration, workers)]; times and ratios make sense."""
        found = []
        for entry in self.json_of("bench", "task", "--json", *arguments):
            self.assertEqual(list(entry), self.KEYS)
            self.assertGreater(entry["ns"], 0)
            self.assertGreater(entry["bare_ns"], 0)
            self.assertGreater(entry["ratio"], 0)
            if entry["what"] == "bare round trip":
                self.assertEqual(entry["ns"], entry["bare_ns"])
                self.assertEqual(entry["ratio"], 1)
            found.append(tuple(entry[key] for key in self.KEYS[:4]))
        return found

    def test_all(self):
        self.assertEqual(self.costs(), [(transport, *row) for transport in ("thread", "process")
                                        for row in self.ROWS])

    def test_one_transport(self):
        run = keel("bench", "task", "--transport", "thread", "--device", "sim:0")
        self.assert_ok(run)
        self.assertIn("on sim device 0", run.stdout)
        self.assertRegex(run.stdout, r"(?m)^thread +bare round trip +0 +\d+ +1\.00$")
        self.assertRegex(run.stdout, r"(?m)^thread +submit and wait +device +1 +[\d,]+ +[\d.]+$")
        self.assertNotIn("process", run.stdout)

    def test_mistakes(self):
        self.assert_fails(keel("bench", "task", "--transport", "pigeon"), 2, "'pigeon'",
                          "thread, process, mpi")
        self.assert_fails(keel("bench", "host", "--transport", "thread"), 2, "--transport", "'host'")


class ChurnTest(CliTest):
    NAMES = ["no leak", "no spurious out-of-memory", "EmptyCache releases", "hits"]

    def test_invariants_hold(self):
        for conf in (None, "expandable_segments:false", "front_cache:0", "limit:512MiB"):
            with self.subTest(conf=conf):
                cost, *invariants = self.json_of("bench", "churn", "--json", KEEL_ALLOC_CONF=conf)
                self.assertEqual(list(cost), ["name", "parameters", "ns"])
                self.assertEqual([i["name"] for i in invariants], self.NAMES)
                for invariant in invariants:
                    self.assertEqual(list(invariant), ["name", "parameters", "passed", "found"])
                    self.assertIs(invariant["passed"], True, invariant)

    def test_text(self):
        run = keel("bench", "churn")
        self.assert_ok(run)
        for name in self.NAMES:
            self.assertRegex(run.stdout, rf"(?m)^{name} .* pass$")

    @not_under_thread_sanitizer
    def test_failure(self):
        # No request fits into half of it, so that none can be a hit.
        run = keel("bench", "churn", KEEL_ALLOC_CONF="limit:512")
        self.assert_fails(run, 1, "keel bench: churn: hits: 0 of 0")
        self.assertRegex(run.stdout, r"(?m)^hits .* FAIL$")
        self.assertRegex(run.stdout, r"(?m)^no leak .* pass$")
        run = keel("bench", "churn", "--json", KEEL_ALLOC_CONF="limit:512")
        self.assertEqual(run.returncode, 1)
        self.assertIs(json.loads(run.stdout)[-1]["passed"], False)
        # A segment is larger than the limit: a request fails though nearly nothing is in use.
        run = keel("bench", "churn", KEEL_ALLOC_CONF="expandable_segments:false,limit:1MiB")
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stdout, r"(?m)^no spurious out-of-memory .* FAIL$")

    def test_failing_requests_do_not_hang(self):
        # Each failure writes a report, while other threads grow.
        run = keel("bench", "churn", KEEL_ALLOC_CONF="limit:16MiB")
        self.assertIn(run.returncode, (0, 1))
        self.assertRegex(run.stdout, r"(?m)^no leak .* pass$")


class MistakeTest(CliTest):
    def test_what(self):
        self.assert_fails(keel("bench"), 2, "WHAT", "keel bench --help")
        self.assert_fails(keel("bench", "speed"), 2, "'speed'", "alloc, churn, graph, host, h2d, primitives, task,")
        self.assert_fails(keel("bench", "alloc", "host"), 2, "'host'", "keel bench --help")

    def test_device(self):
        self.assert_fails(keel("bench", "alloc", "--device", "nope:0"), 2, "'nope'", "sim")
        self.assert_fails(keel("bench", "alloc", "--device", "sim:9"), 2, "9", "--device")

    def test_configuration(self):
        run = keel("bench", "churn", KEEL_ALLOC_CONF="nonsense:1")
        self.assert_fails(run, 2, "KEEL_ALLOC_CONF", "'nonsense'")

    def test_a_device_that_is_too_small(self):
        run = keel("bench", "alloc", KEEL_SIM="memory:64MiB")
        self.assert_fails(run, 1, "keel bench: RESOURCE_EXHAUSTED", "live")
        self.assertEqual(keel("bench", "alloc", "--json", KEEL_SIM="memory:64MiB").stdout, "")


if __name__ == "__main__":
    unittest.main()
