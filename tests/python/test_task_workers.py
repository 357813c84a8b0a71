"""keel.task with workers that are processes with Python."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keel
import numpy as np
import pytest
from keel import task
from keel.task import In, InOut, Out
from task_callables import Absent, die, fail, fail_at_length, launch_add, plus_one


@pytest.fixture(scope="module")
def workers() -> Iterator[task.Orchestrator]:
    with task.Orchestrator([0, 1], transport="process", python_workers=True) as orchestrator:
        yield orchestrator


def test_a_function_runs_in_every_worker(workers: task.Orchestrator) -> None:
    function = workers.register(plus_one)
    assert function.name == "plus_one"
    processes = set()
    for worker in (0, 1):
        values, process = np.arange(5, dtype="float32"), np.zeros(1, "int64")
        workers.submit(function, InOut(values), Out(process), worker=worker).wait(60)
        assert values.tolist() == [1, 2, 3, 4, 5]
        processes.add(int(process[0]))
    assert len(processes) == 2
    assert os.getpid() not in processes


def test_no_file_of_a_worker_is_for_other_users(workers: task.Orchestrator) -> None:
    function = workers.register(plus_one)
    for worker in (0, 1):
        process = np.zeros(1, "int64")
        arguments = (InOut(np.zeros(5, "float32")), Out(process))
        workers.submit(function, *arguments, worker=worker).wait(60)
        names = ""
        # But for those that it has from whoever runs it.
        for file in Path(f"/proc/{process[0]}/fd").iterdir():
            mode = file.stat().st_mode
            if int(file.name) > 2 and stat.S_ISREG(mode):
                names += f"{file.readlink()}\n"
                assert mode & 0o077 == 0, file.readlink()
        for ours in ("keel-worker", "keel-doorbell", "keel-sim-device"):
            assert f"/memfd:{ours}" in names


def test_it_launches_kernels_on_what_is_resident(workers: task.Orchestrator) -> None:
    add = workers.register(launch_add, kernels=["keel_add"])
    a = np.arange(1000, dtype="float32")
    b = workers.upload(1, np.full(1000, 0.5, "float32"))
    c = np.zeros(1000, "float32")
    assert workers.submit(add, In(a), b, Out(c)).result(60) is c
    assert np.array_equal(c, a + 0.5)
    add.unregister()
    with pytest.raises(keel.NotFoundError):
        workers.submit(add, In(a), b, Out(c))


def test_what_it_raises_is_the_tasks_error(workers: task.Orchestrator) -> None:
    function = workers.register(fail)
    with pytest.raises(keel.Error, match=r"LookupError: nothing is at 7 \(.*task_callables.py"):
        workers.submit(function, 7).wait(60)


def test_a_function_must_be_found_by_its_name(workers: task.Orchestrator) -> None:
    with pytest.raises(ValueError, match="found by its name"):
        workers.register(lambda call: None)

    def local(call: task.Call) -> None: ...

    with pytest.raises(ValueError, match="local"):
        workers.register(local)
    # Found here, and not there.
    with pytest.raises(keel.Error, match="No module named 'no_such_module'"):
        workers.register(Absent())
    assert workers.register(fail).name == "fail"


def test_a_worker_that_is_started_again_has_it() -> None:
    with task.Orchestrator([0], transport="process", python_workers=True) as workers:
        function, death = workers.register(plus_one), workers.register(die)
        values, process = np.zeros(1, "float32"), np.zeros(1, "int64")
        workers.submit(function, InOut(values), Out(process)).wait(60)
        before = int(process[0])
        with pytest.raises(keel.Error, match="SIGKILL"):
            workers.submit(death).wait(60)
        workers.submit(function, InOut(values), Out(process)).wait(60)
        assert values.tolist() == [2]
        assert int(process[0]) != before
        assert workers.report()[0].restarts == 1


def test_images_run_there_too(workers: task.Orchestrator) -> None:
    from task_callables import code_of

    noop = workers.register(task.Image.build(code_of("Noop")))
    workers.submit(noop).wait(60)


def test_python_workers_are_processes() -> None:
    with pytest.raises(ValueError, match='transport="process"'):
        task.Orchestrator([0], python_workers=True)
    with pytest.raises(ValueError, match="worker_program"):
        task.Orchestrator([0], transport="process", python_workers=True, worker_program="/bin/true")


SCRIPT = """
import numpy
from keel import task

def double(call):
    call[0].copy_from(call[0].numpy() * 2)

{guard}
    with task.Orchestrator([0], transport="process", python_workers=True) as workers:
        x = numpy.full(3, 21.0)
        workers.submit(workers.register(double), task.InOut(x)).wait(60)
        print(x.tolist())
"""


def _run(script: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=False
    )


def test_a_function_of_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(guard='if __name__ == "__main__":'))
    result = _run(script)
    assert (result.returncode, result.stdout, result.stderr) == (0, "[42.0, 42.0, 42.0]\n", "")


def test_a_script_that_runs_when_it_is_imported(tmp_path: Path) -> None:
    """It would start workers for ever."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(guard="if True:"))
    result = _run(script)
    assert result.returncode == 1
    assert "would start workers that import it" in result.stderr
    assert result.stdout == ""


MODULE = """
from keel import task

def double(call): ...

with task.Orchestrator([0], transport="process", python_workers=True) as workers:
    workers.register(double)
"""


def test_a_module_that_runs_when_it_is_imported(tmp_path: Path) -> None:
    """The same, of a module that a script imports behind its guard."""
    (tmp_path / "module.py").write_text(MODULE)
    script = tmp_path / "script.py"
    script.write_text('if __name__ == "__main__":\n    import module\n')
    result = _run(script)
    assert result.returncode == 1
    assert "would start workers that import it" in result.stderr


FLAGS = """
import multiprocessing, sys
from keel import task

def flags(call):
    raise LookupError(f"{sys.flags.optimize} {sys.flags.dont_write_bytecode} {sys.path[-1]}")

if __name__ == "__main__":
    sys.path.append("/a/folder/\u00fc")
    with task.Orchestrator([0], transport="process", python_workers=True) as workers:
        submitted = workers.submit(workers.register(flags))
        try:
            submitted.wait(60)
        except Exception as error:
            print(error)
    multiprocessing.set_start_method("spawn")  # it was not fixed by the above
"""


def test_workers_have_the_flags_and_the_path_of_the_program(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(FLAGS, encoding="utf-8")
    environment = dict(os.environ, LC_ALL="C", PYTHONIOENCODING="utf-8")
    result = subprocess.run(
        [sys.executable, "-OB", script],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        env=environment,
    )
    assert result.returncode == 0, result.stderr
    assert "LookupError: 1 1 /a/folder/\u00fc" in result.stdout


def test_a_long_error_stays_text(workers: task.Orchestrator) -> None:
    """Also where it is cut."""
    function = workers.register(fail_at_length)
    with pytest.raises(keel.Error, match="\u20ac\u20ac"):
        workers.submit(function).wait(60)
