#!/usr/bin/env python3
"""A run under mpirun as a whole: how it is started, what it costs, and how it ends."""

import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from runs import C_PROGRAM, KEEL, LONG, OWN_PROGRAM, PROGRAM, MpiTest, clean_environment

# A run ends well within this when one of its processes has; mpirun itself takes most of it.
SOON = 20


def processor_seconds(pid):
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class StartTest(MpiTest):
    def test_program_and_workers_may_be_named_apart(self):
        run = self.start("-n", "1", PROGRAM, "exit", "0", ":", "-n", "2", KEEL, "worker")
        code, output = run.finish()
        self.assertEqual(code, 0, output)
        self.assertEqual(run.processes(), {})

    def test_exit_code_is_the_programs(self):
        run = self.start_workers(1, PROGRAM, "exit", "7")
        self.assertEqual(run.finish()[0], 7)
        self.assertTrue(run.wait_gone(SOON))

    def test_more_workers_than_ranks(self):
        run = self.start_workers(2, PROGRAM, "idle", "3")
        code, output = run.finish()
        self.assertNotEqual(code, 0)
        self.assertIn("worker 2 needs rank 3, and there are 3 ranks", output)
        self.assertTrue(run.wait_gone(SOON))

    def test_wrong_device_of_a_rank_is_named(self):
        run = self.start("-n", "1", PROGRAM, "idle", "1",
                         ":", "-n", "1", KEEL, "worker", "--device", "sim:9{worker}")
        code, output = run.finish()
        self.assertNotEqual(code, 0)
        self.assertIn("sim:90", output)

    def test_devices_that_ranks_chose_are_reported(self):
        run = self.start("-n", "1", PROGRAM, "idle", "3", ":", "-n", "2", KEEL, "worker",
                         "--device", "sim:{worker}", ":", "-n", "1", KEEL, "worker",
                         variables={"KEEL_SIM": "devices:2"}, stdin=subprocess.PIPE)
        self.assertEqual(re.findall(r"(?m)^worker \d has .*$", run.wait_ready()),
                         ["worker 0 has sim:0", "worker 1 has sim:1", "worker 2 has sim:0"])
        code, output = run.finish()
        self.assertEqual(code, 0, output)

    def test_program_without_an_orchestrator_is_fine(self):
        run = self.start_workers(2, PROGRAM, "nothing")
        code, output = run.finish()
        self.assertEqual(code, 0, output)
        self.assertEqual(run.processes(), {})

    def test_program_apart_without_an_orchestrator_ends_the_workers(self):
        run = self.start("-n", "1", PROGRAM, "nothing",
                         ":", "-n", "2", KEEL, "worker", "--start-timeout", "1")
        code, output = run.finish(timeout=SOON)
        self.assertNotEqual(code, 0)
        self.assertIn("waits for rank 0's program to make an orchestrator", output)
        self.assertIn("--start-timeout", output)
        self.assertTrue(run.wait_gone(SOON), run.processes())

    def test_program_whose_end_is_seen_may_take_longer(self):
        run = self.start("-n", "1", KEEL, "worker", "--", "sleep", "1",
                         ":", "-n", "1", KEEL, "worker", "--start-timeout", "0")
        code, output = run.finish(timeout=SOON)
        self.assertEqual(code, 0, output)

    def test_rank_0_needs_a_program(self):
        run = self.start("-n", "2", KEEL, "worker")
        code, output = run.finish(timeout=SOON)
        self.assertEqual(code, 2, output)
        self.assertIn("give its program after '--'", output)

    def test_without_a_launcher(self):
        env = clean_environment()
        run = subprocess.run((KEEL, "worker"), env=env, capture_output=True, text=True,
                             timeout=SOON)
        self.assertEqual(run.returncode, 2)
        self.assertIn("use mpirun", run.stderr)
        run = subprocess.run((PROGRAM, "idle"), env=env, capture_output=True, text=True,
                             timeout=SOON)
        self.assertEqual(run.returncode, 1)
        self.assertIn("FAILED_PRECONDITION", run.stderr)
        self.assertIn("was not started by mpirun", run.stderr)

    def test_number_on_the_machine_that_nobody_gives(self):
        env = dict(clean_environment(), PMI_RANK="1")
        run = subprocess.run((KEEL, "worker", "--device", "sim:{local}"), env=env,
                             capture_output=True, text=True, timeout=SOON)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("{local}", run.stderr)
        self.assertIn("SLURM_LOCALID", run.stderr)

    def test_program_with_an_mpi_of_its_own_is_refused(self):
        run = self.start_workers(1, OWN_PROGRAM)
        code, output = run.finish(timeout=SOON)
        self.assertEqual(code, 1, output)
        self.assertIn("error: FAILED_PRECONDITION: ", output)
        self.assertIn("the program has initialised MPI itself", output)
        self.assertTrue(run.wait_gone(SOON))

    def test_one_rank_alone(self):
        run = self.start("-n", "1", PROGRAM, "idle", "1")
        code, output = run.finish(timeout=SOON)
        self.assertEqual(code, 1, output)
        self.assertIn("MPI has no rank but this one", output)
        # It has finalised MPI, or this mpirun would complain of that.
        self.assertNotIn("finalize", output)

    def test_without_the_library_for_mpi(self):
        root = Path(KEEL).parent.parent
        with tempfile.TemporaryDirectory() as folder:
            for path in (*root.glob("lib/libkeel.so*"), Path(KEEL)):
                target = Path(folder) / path.relative_to(root)
                target.parent.mkdir(exist_ok=True)
                shutil.copy2(path, target, follow_symlinks=False)
            env = dict(clean_environment(), OMPI_COMM_WORLD_RANK="1", LD_LIBRARY_PATH=f"{folder}/lib")
            run = subprocess.run((f"{folder}/bin/keel", "worker"), env=env, capture_output=True,
                                 text=True, timeout=SOON)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("libkeel-mpi.so", run.stderr)
        self.assertIn("libopenmpi-dev", run.stderr)


class WorkTest(MpiTest):
    def test_tensors_and_copies_of_several_pieces(self):
        run = self.start_workers(1, PROGRAM, "large")
        code, output = run.finish()
        self.assertEqual(code, 0, output)

    @staticmethod
    def pipeline_of(output):
        # Others may have written before it.
        (pipeline,) = (step for step in json.loads(output[output.index("{"):])["steps"]
                       if "digest" in step.get("details", {}))
        return pipeline["details"]

    def pipeline(self, *options):
        run = self.start_workers(4, KEEL, "demo", "--transport", "mpi", "--json", *options)
        code, output = run.finish()
        self.assertEqual(code, 0, output)
        details = self.pipeline_of(output)
        self.assertEqual(details["transport"], "mpi")
        return details

    def test_pipeline_of_the_demo_gives_the_same_bits(self):
        threads = subprocess.run((KEEL, "demo", "--json"), env=dict(os.environ, KEEL_DRIVER="sim"),
                                 capture_output=True, text=True, timeout=LONG, check=True)
        self.assertEqual(self.pipeline()["digest"], self.pipeline_of(threads.stdout)["digest"])

    @unittest.skipUnless(os.environ.get("KEEL_SOAK"), "copies 100 GiB")
    def test_pipeline_of_the_demo_with_a_gibibyte(self):
        # tests/cli/cli_demo_test.py has the same for threads and processes.
        details = self.pipeline("--weights", "1GiB", "--sent-along", "100")
        self.assertEqual(details["weights_bytes"], 1 << 30)
        self.assertEqual([details[way]["requests"] for way in ("resident", "sent_along")], [100, 100])
        self.assertLess(details["resident"]["bytes_to_devices"], (1 << 30) + (1 << 20))
        self.assertGreater(details["sent_along"]["bytes_to_devices"], 100 << 30)
        self.assertGreaterEqual(details["ratio"], 50)

    def test_program_in_c(self):
        code = [str(Path(C_PROGRAM).parent / f"task_test_{name}.so") for name in ("Add", "Crash")]
        run = self.start_workers(2, C_PROGRAM, *code, "mpi", variables={"KEEL_SIM": "devices:2"})
        code, output = run.finish()
        self.assertEqual(code, 0, output)
        self.assertIn("tasks in C do what keel/c_task.h says", output)
        self.assertIn("worker 'sim:0' (rank 1 on ", output)  # the one that crashes
        self.assertEqual(run.processes(), {})

    def test_round_trips_of_nothing(self):
        run = self.start_workers(1, PROGRAM, "echo")
        code, output = run.finish(timeout=SOON)
        self.assertEqual(code, 0, output)
        self.assertEqual(run.processes(), {})

    def test_bench_of_tasks(self):
        run = self.start_workers(2, KEEL, "bench", "task", "--transport", "mpi", "--json")
        code, output = run.finish()
        self.assertEqual(code, 0, output)
        rows = json.loads(output[output.index("["):])
        self.assertEqual({row["transport"] for row in rows}, {"mpi"})
        self.assertEqual([(row["what"], row["orchestration"], row["workers"]) for row in rows],
                         [("bare round trip", "", 0), ("submit and wait", "host", 1),
                          ("1000 in flight, each", "host", 1),
                          ("submit again, 4 tensors", "host", 1),
                          ("submit a group of 2", "host", 2), ("submit and wait", "device", 1),
                          ("register what is known", "device", 1),
                          ("register what is new", "device", 1)])
        for row in rows:
            self.assertGreater(row["bare_ns"], 0)
            self.assertGreater(row["ratio"], 0)
            # Its task goes the same way as the bare one, and then to a process and back.
            if row["what"] == "submit and wait":
                self.assertGreater(row["ratio"], 1)

    def test_bench_of_tasks_says_what_it_lacks(self):
        run = self.start_workers(1, KEEL, "bench", "task", "--transport", "mpi")
        code, output = run.finish()
        self.assertEqual(code, 1, output)
        self.assertIn("worker 1 needs rank 2", output)
        run = subprocess.run((KEEL, "bench", "task", "--transport", "mpi"), env=clean_environment(),
                             capture_output=True, text=True, timeout=SOON)
        self.assertEqual(run.returncode, 1)
        self.assertIn("was not started by mpirun", run.stderr)

    def test_idle_ranks_take_little_time(self):
        run = self.start_workers(2, PROGRAM, "idle", "2", stdin=subprocess.PIPE)
        run.wait_ready()
        processes = list(run.processes())
        self.assertEqual(len(processes), 6, run.processes())
        before = {pid: processor_seconds(pid) for pid in processes}
        began = time.monotonic()
        time.sleep(2)
        for pid in processes:
            share = (processor_seconds(pid) - before[pid]) / (time.monotonic() - began)
            self.assertLess(share, 0.05, run.processes()[pid])
        code, output = run.finish()  # ends its input
        self.assertEqual(code, 0, output)
        self.assertEqual(run.processes(), {})


    def test_no_file_of_a_rank_or_of_its_worker_is_for_other_users(self):
        run = self.start_workers(2, PROGRAM, "idle", "2", stdin=subprocess.PIPE)
        run.wait_ready()
        ranks = [pid for rank, pid in run.ranks().items() if rank != 0]
        workers = run.workers()
        self.assertEqual([len(ranks), len(workers)], [2, 2], run.processes())
        for pid in (run.program(), *ranks, *workers):
            names = []
            # But for those that it has from whoever runs it.
            for file in Path(f"/proc/{pid}/fd").iterdir():
                name = os.readlink(file)
                mode = file.stat().st_mode
                # Open MPI's are in a folder of the test's.
                if int(file.name) <= 2 or not stat.S_ISREG(mode) or name.startswith(run.folder):
                    continue
                names.append(name.partition(" ")[0])
                self.assertEqual(mode & 0o077, 0, f"{name} of {run.processes()[pid]}")
            if pid in ranks or pid in workers:
                self.assertIn("/memfd:keel-worker", names)
                self.assertIn("/memfd:keel-doorbell", names)
            if pid in workers:
                self.assertIn("/memfd:keel-sim-device-0", names)
        code, output = run.finish()  # ends its input
        self.assertEqual(code, 0, output)


class ExitTest(MpiTest):
    """The program exits while large tensors are under way."""

    def assert_exits(self, *arguments):
        run = self.start_workers(2, PROGRAM, *arguments)
        code, output = run.finish(timeout=SOON)
        self.assertEqual(code, 0, output)
        self.assertTrue(run.wait_gone(SOON), run.processes())
        return output

    def test_with_tensors_under_way_to_the_workers(self):
        self.assert_exits("leave", "0")

    def test_with_results_under_way_from_the_workers(self):
        self.assert_exits("leave", "1")

    def test_tasks_end_with_that_reason(self):
        output = self.assert_exits("outlive")
        self.assertRegex(output, r"after: UNAVAILABLE: .*the program exits")


class EndTest(MpiTest):
    """Processes of a run are killed while its tasks run: it ends, and nothing is left."""

    def assert_ended(self, run):
        self.assertTrue(run.wait_gone(SOON), run.processes())

    def test_rank_of_a_worker(self):
        run = self.start_workers(3, PROGRAM, "busy", "3")
        run.wait_ready()
        os.kill(run.ranks()[2], signal.SIGKILL)
        code, output = run.finish(timeout=SOON)
        self.assertNotEqual(code, 0)
        self.assertIn("rank 2", output)
        self.assert_ended(run)

    def test_rank_of_a_worker_that_mpirun_does_not_mind(self):
        run = self.start_workers(3, PROGRAM, "busy", "3", options=("--enable-recovery",))
        run.wait_ready()
        os.kill(run.ranks()[2], signal.SIGKILL)
        _, output = run.finish(timeout=SOON)  # such an mpirun ends with 0 whatever happens
        self.assertRegex(output, r"error: UNAVAILABLE: .*rank \d on \S+ has ended[:;] a lost rank")
        self.assert_ended(run)

    def test_worker_at_any_instant(self):
        """A worker's rank under load, killed whatever it is doing."""
        chance = random.Random(12)
        for kill in range(40 if LONG > 1000 else 6):
            # While MPI starts only mpirun can end a run. Of the others half are left to the program.
            starting = kill % 3 == 0
            recovery = kill % 2 == 1 and not starting
            with self.subTest(kill=kill, starting=starting, recovery=recovery):
                run = self.start_workers(2, PROGRAM, "busy", "2",
                                         options=("--enable-recovery",) if recovery else ())
                if starting:
                    until = time.monotonic() + SOON
                    while len(run.ranks()) < 3 and time.monotonic() < until:
                        time.sleep(0.001)
                else:
                    run.wait_ready()
                time.sleep(chance.uniform(0, 0.2))
                os.kill(run.ranks()[chance.choice((1, 2))], signal.SIGKILL)
                code, output = run.finish(timeout=SOON)
                if recovery:
                    self.assertRegex(output, r"error: UNAVAILABLE: .*a lost rank")
                else:
                    self.assertNotEqual(code, 0, output)
                self.assert_ended(run)

    def test_process_of_a_worker_at_random_instants(self):
        """Which is no loss of a rank: it starts another."""
        workers, kills = 3, 200 if LONG > 1000 else 20
        run = self.start_workers(workers, PROGRAM, "survive", str(workers), stdin=subprocess.PIPE,
                                 variables={"KEEL_LOG": "off"})
        chance = random.Random(5)
        killed = 0
        while killed < kills:
            # Every second one comes when it comes, perhaps to one that is being started. Not more of
            # them: who cannot be started three times in a row is given up.
            if killed % 2 == 0:
                run.process.stdin.write("\n")
                run.process.stdin.flush()
                run.wait_ready()
                self.assertEqual(len(run.workers()), workers, run.processes())
            time.sleep(chance.uniform(0, 0.05))
            if there := run.workers():
                os.kill(chance.choice(there), signal.SIGKILL)
                killed += 1
        code, output = run.finish()  # ends its input
        self.assertEqual(code, 0, output)
        found = re.search(r"right (\d+), errors (\d+), gone (\d+), restarts (\d+), live (\d+)", output)
        self.assertIsNotNone(found, output)
        right, errors, gone, restarts, live = map(int, found.groups())
        self.assertGreater(right, kills, output)
        self.assertGreater(errors, 0, output)
        self.assertGreater(gone, kills // 4, output)
        self.assertGreaterEqual(restarts, kills // 2, output)
        self.assertLessEqual(restarts, kills, output)
        self.assertEqual(live, 0, output)
        self.assertEqual(run.processes(), {})

    def test_rank_0(self):
        run = self.start_workers(2, PROGRAM, "busy", "2")
        run.wait_ready()
        os.kill(run.program(), signal.SIGKILL)
        self.assertNotEqual(run.finish(timeout=SOON)[0], 0)
        self.assert_ended(run)

    def test_what_has_started_the_program(self):
        run = self.start_workers(2, PROGRAM, "busy", "2")
        run.wait_ready()
        os.kill(run.ranks()[0], signal.SIGKILL)
        self.assertNotEqual(run.finish(timeout=SOON)[0], 0)
        self.assert_ended(run)

    def test_rank_0_that_mpirun_does_not_mind(self):
        run = self.start_workers(2, PROGRAM, "busy", "2", options=("--enable-recovery",))
        run.wait_ready()
        os.kill(run.program(), signal.SIGKILL)
        _, output = run.finish(timeout=SOON)
        self.assertIn("rank 0, has ended", output)
        self.assert_ended(run)

    def test_T9_orphans_end_within_a_second(self):
        """Of whatever was killed, with an mpirun that leaves it to Keel to end them."""
        parents = {
            "mpirun": lambda run: run.mpirun(),
            "rank 0": lambda run: run.program(),
            "what has started the program": lambda run: run.ranks()[0],
            "rank 2": lambda run: run.ranks()[2],
        }
        for name, find in parents.items():
            with self.subTest(parent=name):
                times = []
                for _ in range(3):
                    run = self.start_workers(2, PROGRAM, "busy", "2", options=("--enable-recovery",))
                    run.wait_ready()
                    parent = find(run)
                    # A lost rank ends the run, which has a bound of its own.
                    orphans = run.children(parent) if name == "rank 2" else run.processes()
                    self.assertEqual(len(orphans), 1 if name == "rank 2" else 6, run.processes())
                    times.append(run.kill(parent, orphans, SOON))
                    self.assert_ended(run)
                    run.finish(timeout=SOON)
                # A machine that is loaded adds to one of them.
                self.assertLessEqual(min(times), 1, times)
                self.assertLessEqual(max(times), 3, times)

    def test_mpirun(self):
        run = self.start_workers(2, PROGRAM, "busy", "2")
        run.wait_ready()
        os.kill(run.mpirun(), signal.SIGKILL)
        self.assert_ended(run)

    def test_mpirun_before_the_program_has_started_mpi(self):
        run = self.start_workers(1, "sleep", "100")
        until = time.monotonic() + SOON
        while ["sleep", "100"] not in run.processes().values() and time.monotonic() < until:
            time.sleep(0.01)
        self.assertIn(["sleep", "100"], run.processes().values())
        os.kill(run.mpirun(), signal.SIGKILL)
        self.assert_ended(run)


if __name__ == "__main__":
    unittest.main()
