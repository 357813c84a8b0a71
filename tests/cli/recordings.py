"""Recordings for the tests of commands that read them. KEEL_TEST_DATA is the folder of real ones."""

import os
import pickle
import tempfile

from command_line import CliTest

RESNET = os.path.join(os.environ["KEEL_TEST_DATA"], "resnet_train.pickle.xz")
MIB = 1 << 20


def event(action, address, size, time_us, stream=0, frames=(), tag=""):
    return {"action": action, "addr": address, "size": size, "stream": stream, "time_us": time_us,
            "frames": list(frames), "user_metadata": tag}


def history(*sizes):
    """Allocates these, then frees them, a millisecond each."""
    blocks = [(0x1000000 * (i + 1), size) for i, size in enumerate(sizes)]
    actions = [("alloc", block) for block in blocks]
    for block in blocks:
        actions += [("free_requested", block), ("free_completed", block)]
    return [event(action, *block, 1000 * i) for i, (action, block) in enumerate(actions)]


class RecordingTest(CliTest):
    def recording(self, *devices, segments=(), annotations=()):
        """A file with these events per device."""
        with tempfile.NamedTemporaryFile(suffix=".pickle", delete=False) as file:
            pickle.dump({"segments": list(segments), "device_traces": list(devices),
                         "external_annotations": list(annotations)}, file)
        self.addCleanup(os.unlink, file.name)
        return file.name
