#!/usr/bin/env python3
"""Workers on another machine: ranks on two hosts that have nothing in common but a network.

The hosts are network namespaces of this machine, each with a name and an address of its own and a cable
between them, so that everything goes over it. Making them takes root; without it the tests are skipped.
"""

import json
import os
import shutil
import stat
import subprocess
import tempfile
import time
import unittest
import uuid
from pathlib import Path

from runs import KEEL, PROGRAM, MpiTest

# The network of the two, which nobody outside sees.
NETWORK = "10.77.0.0/24"
HOME, AWAY = "10.77.0.1", "10.77.0.2"


def ip(*arguments):
    return subprocess.run(("ip", *arguments), check=True, capture_output=True, text=True).stdout


class HostsTest(MpiTest):
    def setUp(self):
        if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare"))):
            self.skipTest("needs root, ip and unshare")
        name = uuid.uuid4().hex[:6]
        self.home, self.away = f"keel-{name}-a", f"keel-{name}-b"
        try:
            for host in (self.home, self.away):
                ip("netns", "add", host)
                self.addCleanup(ip, "netns", "del", host)
            ip("link", "add", f"k{name}a", "netns", self.home, "type", "veth",
               "peer", "name", f"k{name}b", "netns", self.away)
        except subprocess.CalledProcessError as error:
            self.skipTest(f"this system does not let it make hosts: {error.stderr.strip()}")
        self.cable = f"k{name}b"
        for host, end, address in ((self.home, "a", HOME), (self.away, "b", AWAY)):
            ip("-n", host, "link", "set", "lo", "up")
            ip("-n", host, "address", "add", f"{address}/24", "dev", f"k{name}{end}")
            ip("-n", host, "link", "set", f"k{name}{end}", "up")
        # What mpirun calls instead of ssh: HOST COMMAND...
        self.agent = Path(tempfile.mkdtemp(prefix="keel-hosts-")) / "agent"
        self.addCleanup(shutil.rmtree, self.agent.parent)
        self.agent.write_text(
            "#!/bin/sh\nshift\n"
            f"exec ip netns exec {self.away} unshare --uts sh -c "
            "'hostname away; exec sh -c \"$0\"' \"$*\"\n")
        self.agent.chmod(self.agent.stat().st_mode | stat.S_IXUSR)

    def start_apart(self, workers, *program, **more):
        """The program at home, and all of the workers away."""
        return self.start_workers(
            workers, *program,
            prefix=("ip", "netns", "exec", self.home),
            options=("--mca", "plm_rsh_agent", str(self.agent), "--mca", "btl", "self,tcp",
                     "--mca", "btl_tcp_if_include", NETWORK, "--mca", "oob_tcp_if_include", NETWORK,
                     "--host", f"{HOME}:1,{AWAY}:{workers}", "--map-by", "slot"),
            **more)

    def bytes_received(self):
        (link,) = json.loads(ip("-n", self.away, "-j", "-s", "link", "show", self.cable))
        return link["stats64"]["rx"]["bytes"]

    def test_the_pipeline_computes_the_same_over_a_network(self):
        weights = 2 << 20
        run = self.start_apart(4, KEEL, "demo", "--transport", "mpi", "--weights", "2MiB", "--json")
        code, output = run.finish()
        self.assertEqual(code, 0, output)
        steps = {step["name"]: step for step in json.loads(output)["steps"]}
        self.assertEqual(steps["pipeline"]["outcome"], "verified", output)
        # Once as residents, and once with each of a hundred requests.
        self.assertGreater(self.bytes_received(), 50 * weights)
        self.assertTrue(run.wait_gone(20))

    # mpirun waits for its own daemon there, for as long as TCP does; nobody else is left.
    @unittest.skipUnless(os.environ.get("KEEL_SOAK"), "takes half a minute; in ./dev soak")
    def test_a_machine_that_is_out_of_reach_ends_the_program_and_all_ranks(self):
        run = self.start_apart(2, PROGRAM, "idle", "2", stdin=subprocess.PIPE)
        run.wait_ready()
        self.assertEqual(len(run.ranks()), 3)
        ip("-n", self.away, "link", "set", self.cable, "down")
        until = time.monotonic() + 60
        while left := self.of_keel(run):
            self.assertLess(time.monotonic(), until, left)
            time.sleep(0.1)

    @staticmethod
    def of_keel(run):
        """What is there of the program, of ranks and of their workers, on both hosts."""
        return [words for words in run.processes().values()
                if words[0] in (KEEL, PROGRAM) or words[0].endswith("keel-worker")]


if __name__ == "__main__":
    unittest.main()
