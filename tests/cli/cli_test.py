#!/usr/bin/env python3
"""Tests of bin/keel: help, version, output, messages and exit codes. See command_line.py."""

import json
import re
import subprocess
import unittest

from command_line import ESCAPE, KEEL, CliTest, environment, keel, keel_on_terminal


class HelpTest(CliTest):
    SUBCOMMANDS = ("info", "demo", "replay", "report", "bench", "run", "worker")

    def test_top(self):
        for flag in ("--help", "-h"):
            run = keel(flag)
            self.assert_ok(run)
            for text in (*self.SUBCOMMANDS, "--help", "--version", "KEEL_DRIVER", "KEEL_SIM",
                         "KEEL_ALLOC_CONF", "KEEL_LOG", "NO_COLOR"):
                self.assertIn(text, run.stdout)

    def test_info(self):
        run = keel("info", "--help")
        self.assert_ok(run)
        for text in ("keel info", "--help", "--driver NAME", "--json"):
            self.assertIn(text, run.stdout)

    def test_demo(self):
        run = keel("demo", "--help")
        self.assert_ok(run)
        for text in ("keel demo", "--help", "--driver NAME", "--device [NAME:]N",
                     "--transport NAME", "--weights SIZE", "--sent-along N ", "--json"):
            self.assertIn(text, run.stdout)

    def test_replay(self):
        run = keel("replay", "--help")
        self.assert_ok(run)
        for text in ("FILE", "--conf CONF", "--driver NAME", "--device [NAME:]N", "--memory SIZE",
                     "--lag TIME", "--recorded-device N", "--json", "docs/replay.md"):
            self.assertIn(text, run.stdout)

    def test_bench(self):
        run = keel("bench", "--help")
        self.assert_ok(run)
        for text in ("WHAT", "alloc:", "churn:", "graph:", "host:", "h2d:", "primitives:", "task:", "train:",
                     "--driver NAME", "--device [NAME:]N", "--json", "KEEL_ALLOC_CONF", "--quick",
                     "keel worker -- keel bench task --transport mpi"):
            self.assertIn(text, run.stdout)
        # What the lists may have in them.
        for option, choices in (("--commands", "10, 100, 1000"), ("--moving", "none, one, half, all"),
                                ("--policy", "bare, bare-copies, eager, re-record, update, resident, "
                                             "in-place, copy, copy-table, patch, remap, retrace, auto"),
                                ("--transport", "thread, process, mpi")):
            text = " ".join(run.stdout.split())
            self.assertRegex(text, rf"{option} LIST \.\.\. (graph|task): [^:]+: {choices}")

    def test_report(self):
        run = keel("report", "--help")
        self.assert_ok(run)
        for text in ("keel report", "FILE", "--output PAGE", "--perfetto TRACE", "--title TEXT",
                     "--small SIZE", "--conf CONF", "--memory SIZE", "--lag TIME",
                     "--recorded-device N", "--json", "docs/report.md"):
            self.assertIn(text, run.stdout)

    def test_worker(self):
        run = keel("worker", "--help")
        self.assert_ok(run)
        for text in ("keel worker", "PROGRAM [ARGUMENT...]", "--device NAME:N", "{worker}", "{local}",
                     "--start-timeout SECONDS", "mpirun -n 4 keel worker -- PROGRAM", "docs/tasks.md"):
            self.assertIn(text, run.stdout)

    def test_every_subcommand_is_known_here(self):
        listed = keel("--help").stdout.partition("Subcommands:\n")[2].partition("\n\n")[0]
        self.assertEqual(tuple(line.split()[0] for line in listed.splitlines()), self.SUBCOMMANDS)

    def test_lines_fit(self):
        for subcommand in ((), *((each,) for each in self.SUBCOMMANDS)):
            for line in keel(*subcommand, "--help").stdout.splitlines():
                self.assertLessEqual(len(line), 100, line)

    def test_version(self):
        run = keel("--version")
        self.assert_ok(run)
        self.assertRegex(run.stdout, r"\Akeel \d+\.\d+\.\d+\n\Z")

    def test_nothing_asked(self):
        run = keel()
        self.assertEqual(run.returncode, 2)
        self.assertEqual(run.stdout, "")
        self.assertIn("info", run.stderr)
        self.assertIn("demo", run.stderr)


class MistakeTest(CliTest):
    def test_unknown_subcommand(self):
        self.assert_fails(keel("frobnicate"), 2, "'frobnicate'", "info", "demo")

    def test_unknown_option(self):
        self.assert_fails(keel("--frob"), 2, "'--frob'", "keel --help")
        self.assert_fails(keel("info", "--frob"), 2, "keel info:", "'--frob'", "keel info --help")
        self.assert_fails(keel("--json", "info"), 2, "keel:", "'--json'", "keel --help")
        self.assert_fails(keel("demo", "-x"), 2, "keel demo:", "'-x'", "keel demo --help")

    def test_unexpected_argument(self):
        self.assert_fails(keel("info", "surplus"), 2, "'surplus'", "keel info --help")
        self.assert_fails(keel("info", "demo"), 2, "'demo'", "keel info --help")

    def test_missing_value(self):
        self.assert_fails(keel("info", "--driver"), 2, "--driver needs a value", "keel info --help")
        self.assert_fails(keel("demo", "--device"), 2, "--device needs a value", "keel demo --help")

    def test_unknown_driver(self):
        for subcommand in ("info", "demo"):
            run = keel(subcommand, "--driver", "nope")
            self.assert_fails(run, 2, f"keel {subcommand}:", "'nope'", "--driver", "sim")

    def test_unknown_device(self):
        run = keel("demo", "--device", "99", KEEL_SIM="devices:2")
        self.assert_fails(run, 2, "99", "--device", "0, 1")

    def test_bad_device(self):
        for value in ("-1", "one", "1x", "", "99999999999"):
            with self.subTest(value=value):
                run = keel("demo", f"--device={value}")
                self.assert_fails(run, 2, "--device", "keel demo --help")

    def test_bad_simulator(self):
        for driver in ("sim", None):
            for subcommand in ("info", "demo"):
                with self.subTest(driver=driver, subcommand=subcommand):
                    run = keel(subcommand, KEEL_SIM="divices:2", KEEL_DRIVER=driver)
                    if driver is None and run.returncode == 0:
                        continue  # a real device is there, and the demo ran on it
                    self.assert_fails(run, 2, "KEEL_SIM", "divices", "devices")

    def test_bad_default_driver(self):
        self.assert_fails(keel("demo", KEEL_DRIVER="nope"), 2, "KEEL_DRIVER", "'nope'", "sim")
        run = keel("info", KEEL_DRIVER="nope")
        self.assert_fails(run, 2, "KEEL_DRIVER", "'nope'", "sim")
        self.assertIn("Driver sim", run.stdout)  # what there is, is still shown

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            run = subprocess.run((KEEL, "info"), env=environment(), stdout=full,
                                 stderr=subprocess.PIPE, text=True, timeout=120)
        self.assert_fails(run, 1, "standard output")


class InfoTest(CliTest):
    def test_text(self):
        run = keel("info")
        self.assert_ok(run)
        for text in ("Driver sim", "Device 0", "identity", "memory", "free", "granularity", "2 MiB",
                     "virtual memory", "Default: sim device 0 (KEEL_DRIVER=sim)"):
            self.assertIn(text, run.stdout)
        self.assertNotIn(ESCAPE, run.stdout)

    def test_json_keys(self):
        info = self.json_of("info", "--json")
        self.assertEqual(list(info), ["version", "default", "default_error", "drivers"])
        self.assertEqual(
            info["default"], {"driver": "sim", "device": 0, "reason": "KEEL_DRIVER=sim"}
        )
        self.assertIsNone(info["default_error"])
        driver = next(d for d in info["drivers"] if d["name"] == "sim")
        self.assertEqual(
            list(driver), ["name", "simulated", "usable", "default", "error", "devices"]
        )
        self.assertIs(driver["usable"], True)
        self.assertIs(driver["simulated"], True)
        self.assertIs(driver["default"], True)
        (device,) = driver["devices"]
        self.assertEqual(
            list(device),
            ["ordinal", "name", "identity", "architecture", "simulated", "numa_node", "memory",
             "granularity", "capabilities", "error"],
        )
        self.assertEqual(device["memory"]["total"], 16 << 30)
        self.assertLessEqual(device["memory"]["free"], 16 << 30)
        self.assertEqual(device["granularity"]["minimum"], 2 << 20)
        self.assertIs(device["capabilities"]["virtual_memory"], True)
        self.assertTrue(all(isinstance(v, bool) for v in device["capabilities"].values()))
        self.assertTrue(device["identity"])

    def test_simulated_devices(self):
        simulator = "devices:3,memory:1GiB"
        devices = self.json_of("info", "--json", KEEL_SIM=simulator)["drivers"][-1]["devices"]
        self.assertEqual([d["ordinal"] for d in devices], [0, 1, 2])
        self.assertEqual({d["memory"]["total"] for d in devices}, {1 << 30})
        self.assertEqual(len({d["identity"] for d in devices}), 3)
        text = keel("info", "--driver", "sim", KEEL_SIM=simulator).stdout
        self.assertEqual(len(re.findall(r"^  Device \d", text, re.MULTILINE)), 3)
        self.assertIn("3 devices", text)
        self.assertEqual(text.count("1 GiB"), 6)  # total and free of each

    def test_one_driver(self):
        info = self.json_of("info", "--json", "--driver", "sim")
        self.assertEqual([d["name"] for d in info["drivers"]], ["sim"])

    def test_a_bad_default_does_not_hide_a_named_driver(self):
        run = keel("info", "--json", "--driver", "sim", KEEL_DRIVER="nope")
        self.assert_ok(run)
        info = json.loads(run.stdout)
        self.assertIsNone(info["default"])
        self.assertEqual(info["default_error"]["code"], "NOT_FOUND")

    def test_colours(self):
        code, output = keel_on_terminal("info")
        self.assertEqual(code, 0)
        self.assertIn(ESCAPE, output)
        code, plain = keel_on_terminal("info", NO_COLOR="1")
        self.assertEqual(code, 0)
        self.assertNotIn(ESCAPE, plain)
        self.assertNotIn(ESCAPE, keel_on_terminal("info", TERM="dumb")[1])


class DemoTest(CliTest):
    def test_text(self):
        run = keel("demo")
        self.assert_ok(run)
        self.assertNotIn(ESCAPE, run.stdout)
        self.assertNotIn("\r", run.stdout)
        for number in (1, 2, 3, 4, 5):
            self.assertRegex(run.stdout, rf"(?m)^\[{number}/5\] .* verified in [\d.]+ [num]?s$")
        for step in ("streams", "alias", "graph", "training", "pipeline"):
            self.assertRegex(run.stdout, rf"(?m)^{step} .* yes$")
        addresses = re.findall(r"0x[0-9a-f]+", run.stdout)
        self.assertEqual(len(set(addresses)), 2, run.stdout)
        self.assertRegex(run.stdout, r"replay: +1\.00 driver calls")
        losses = re.findall(r"(?m)^ +(?:eager|re-recorded|steady) +[\d.]+ [num]?s +[\d.]+ +([\d.]+)",
                            run.stdout)
        self.assertEqual(len(losses), 3, run.stdout)
        self.assertEqual(len(set(losses)), 1, run.stdout)
        self.assertIn("All 5 steps verified.", run.stdout)

    def test_json(self):
        demo = self.json_of("demo", "--json", "--driver", "sim", "--device", "1",
                            KEEL_SIM="devices:2")
        self.assertEqual(list(demo), ["version", "device", "steps", "verified"])
        self.assertIs(demo["verified"], True)
        self.assertEqual(demo["device"]["driver"], "sim")
        self.assertEqual(demo["device"]["ordinal"], 1)
        self.assertEqual([s["name"] for s in demo["steps"]], ["streams", "alias", "graph", "training", "pipeline"])
        for step in demo["steps"]:
            self.assertEqual(
                list(step),
                ["name", "title", "outcome", "seconds", "skipped", "error", "details"],
            )
            self.assertEqual(step["outcome"], "verified")
            self.assertGreater(step["seconds"], 0)
        streams, alias, graph, training, _ = (s["details"] for s in demo["steps"])
        self.assertEqual(streams["elements"], 1 << 20)
        self.assertEqual(len(set(alias["addresses"])), 2)
        self.assertEqual(graph["replays"], 1000)
        self.assertEqual(graph["nodes"], 4)
        self.assertEqual(graph["replay"]["driver_calls"], 1)
        self.assertEqual(graph["one_by_one"]["driver_calls"], 4)
        ways = [training[way] for way in ("eager", "re_recorded", "steady")]
        # Of a step's 16 kernels: each, with one that marks its end, after a look whether somebody
        # captures the stream; each, with what records them; none.
        self.assertEqual([way["driver_calls"] for way in ways], [1 + 17, 16 + 6, 2])
        for way in ways:
            self.assertEqual(way["last_loss"], ways[0]["last_loss"])
            self.assertLess(way["last_loss"], way["first_loss"] / 4)
            self.assertGreater(way["host_seconds"], 0)

    def test_flag_wins_over_environment(self):
        self.assert_ok(keel("demo", "--driver", "sim", KEEL_DRIVER="nope"))

    def test_failure(self):
        # Room for everything but the computation.
        run = keel("demo", KEEL_SIM="memory:6MiB")
        self.assert_fails(run, 1, "keel demo: streams: RESOURCE_EXHAUSTED")
        self.assertRegex(run.stdout, r"(?m)^alias .* yes$")
        self.assertRegex(run.stdout, r"(?m)^streams .* NO$")
        self.assertIn("4 verified, 1 failed, 0 skipped.", run.stdout)
        run = keel("demo", "--json", KEEL_SIM="memory:6MiB")
        self.assertEqual(run.returncode, 1)
        demo = json.loads(run.stdout)
        self.assertIs(demo["verified"], False)
        self.assertEqual(demo["steps"][0]["outcome"], "failed")
        self.assertEqual(demo["steps"][0]["error"]["code"], "RESOURCE_EXHAUSTED")

    def test_under_random_delays(self):
        # Nothing in it may depend on one stream being quicker than another.
        for seed in range(3):
            run = keel("demo", KEEL_SIM=f"delay:20,seed:{seed}")
            self.assert_ok(run)

    def test_progress_on_a_terminal(self):
        code, output = keel_on_terminal("demo")
        self.assertEqual(code, 0, output)
        self.assertIn("\r" + ESCAPE, output)
        self.assertIn("100%", output)
        self.assertIn("All 5 steps verified.", output)


if __name__ == "__main__":
    unittest.main()
