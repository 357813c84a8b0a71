"""The pipeline of keel demo: weights that stay, on every transport."""

import os
import unittest

from command_line import CliTest, keel

REQUESTS = 100
ACTIVATIONS = 4 * 64 * 4  # bytes of what goes into a layer, and of what comes out
STANDIN = os.environ.get("KEEL_TEST_STANDIN")
TRANSPORTS = ("thread", "process")


class PipelineTest(CliTest):
    def pipeline(self, *arguments, **variables):
        demo = self.json_of("demo", "--json", *arguments, **variables)
        self.assertIs(demo["verified"], True)
        step = demo["steps"][-1]
        self.assertEqual(step["name"], "pipeline")
        return step["details"]

    def check_bytes(self, details, weights, sent):
        """Exactly the weights, once or with each request, and what goes through the layers."""
        through = 2 * ACTIVATIONS
        self.assertEqual(details["weights_bytes"], weights)
        self.assertEqual(details["resident"]["requests"], REQUESTS)
        self.assertEqual(details["resident"]["bytes_to_devices"], weights + REQUESTS * through)
        self.assertEqual(details["resident"]["bytes_from_devices"], REQUESTS * through)
        self.assertEqual(details["sent_along"]["requests"], sent)
        self.assertEqual(details["sent_along"]["bytes_to_devices"], sent * (weights + through))
        self.assertEqual(details["sent_along"]["bytes_from_devices"], sent * through)

    def test_every_transport_gives_the_same_bits(self):
        digests = set()
        for transport in TRANSPORTS:
            with self.subTest(transport=transport):
                details = self.pipeline("--transport", transport)
                self.assertEqual(details["transport"], transport)
                self.assertEqual(details["workers"], 4)
                self.assertEqual(details["devices"], 4)
                self.check_bytes(details, 4 << 20, REQUESTS)
                self.assertGreaterEqual(details["ratio"], 50)
                digests.add(details["digest"])
        self.assertEqual(len(digests), 1, digests)

    def test_under_random_delays(self):
        digests = {self.pipeline(KEEL_SIM=f"delay:20,seed:{seed}")["digest"] for seed in range(2)}
        digests.add(self.pipeline()["digest"])
        self.assertEqual(len(digests), 1, digests)

    def test_small_weights_save_less(self):
        details = self.pipeline("--weights", "32KiB")
        self.check_bytes(details, 32 << 10, REQUESTS)
        self.assertLess(details["ratio"], 20)

    @unittest.skipUnless(STANDIN, "there is no stand-in of a vendor's library")
    def test_workers_share_a_device_that_the_host_orchestrates(self):
        simulated = self.pipeline()
        for devices, count in (("devices:1", 1), ("devices:2", 2)):
            with self.subTest(devices=devices):
                details = self.pipeline("--driver", "cuda", KEEL_CUDA_LIBRARY=STANDIN,
                                        KEEL_STANDIN=devices)
                self.assertEqual(details["devices"], count)
                self.assertIn("an image of", details["kernels"])
                self.assertEqual(details["digest"], simulated["digest"])
                self.check_bytes(details, 4 << 20, REQUESTS)

    def test_so_many_requests_with_weights_that_are_sent_along(self):
        details = self.pipeline("--weights", "32KiB", "--sent-along", "7")
        self.check_bytes(details, 32 << 10, 7)

    @unittest.skipUnless(os.environ.get("KEEL_SOAK"), "copies 100 GiB on each transport")
    def test_a_gibibyte(self):
        digests = set()
        for transport in TRANSPORTS:
            with self.subTest(transport=transport):
                details = self.pipeline("--transport", transport, "--weights", "1GiB",
                                        "--sent-along", str(REQUESTS))
                self.check_bytes(details, 1 << 30, REQUESTS)
                self.assertGreaterEqual(details["ratio"], 50)
                digests.add(details["digest"])
        self.assertEqual(len(digests), 1, digests)
        # Fewer of them, unless that many are asked for.
        self.check_bytes(self.pipeline("--weights", "1GiB"), 1 << 30, 4)

    def test_mistakes(self):
        self.assert_fails(keel("demo", "--transport", "mail"), 2, "'mail'", "thread, process, mpi")
        self.assert_fails(keel("demo", "--weights", "much"), 2, "--weights", "much")
        self.assert_fails(keel("demo", "--weights", "31KiB"), 2, "--weights", "at least 32 KiB")
        for count in ("0", "101", "few"):
            self.assert_fails(keel("demo", "--sent-along", count), 2, "--sent-along", count, "1 to 100")


if __name__ == "__main__":
    unittest.main()
