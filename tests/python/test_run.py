"""keel run: programs in processes of their own, on the simulated device."""

from __future__ import annotations

import json
import os
import pickle
import py_compile
import re
import signal
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import keel
import pytest
from conftest import Run
from keel.run import _options

Result = subprocess.CompletedProcess[str]


class Folder:
    """Where programs lie and run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def python(self, *arguments: object, stdin: str = "", **environment: str) -> Result:
        return self.start(sys.executable, *arguments, stdin=stdin, **environment)

    def keel(self, *arguments: object, stdin: str = "", **environment: str) -> Result:
        return self.python("-m", "keel.run", *arguments, stdin=stdin, **environment)

    def start(self, *command: object, stdin: str = "", **environment: str) -> Result:
        return subprocess.run(
            [str(part) for part in command],
            cwd=self.path,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def snapshots(self) -> list[Path]:
        return sorted(self.path.glob("keel-oom-*.pickle"))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


# --- The program sees what it would see without us ---

LOOK = """\
'''What it is.'''
import os, sys
def show(value): return type(value).__name__ if 'object at' in repr(value) else repr(value)
for name in sorted(globals()):
    if name != 'show': print(name, show(globals()[name]))
print(sys.argv, sys.path, sys.stdin.read(), sys.modules['__main__'].__dict__ is globals())
print(sys.excepthook is sys.__excepthook__, os.getcwd())
"""


@pytest.mark.parametrize(
    "program",
    [
        ["look.py"],
        ["look.py", "--json", "x", "-m", "--", ""],
        ["below/look.py", "a"],
        ["link.py"],
        ["-m", "look", "--help"],
        ["-m", "below.look", "-c"],
        ["-c", LOOK, "a", "-b"],
        ["box", "a"],
        ["box.zip", "a"],
        ["utf.py"],
        ["look.pyc", "a"],
    ],
    ids=lambda program: " ".join(program)[:12],
)
def test_a_program_sees_what_it_would_see(folder: Folder, program: list[str]) -> None:
    folder.write("look.py", LOOK)
    py_compile.compile(str(folder.write("below/look.py", LOOK)), str(folder.path / "look.pyc"))
    folder.write("box/__main__.py", LOOK)
    (folder.path / "link.py").symlink_to(folder.path / "below" / "look.py")
    (folder.path / "utf.py").write_bytes(b"# coding: latin-1\nprint('\xe9', __file__)\n")
    with zipfile.ZipFile(folder.path / "box.zip", "w") as archive:
        archive.writestr("__main__.py", LOOK)
    plain = folder.python(*program, stdin="the input")
    ours = folder.keel("--no-summary", *program, stdin="the input")
    assert plain.returncode == 0, plain.stderr
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, "", 0)


FAILURES = {
    "error": "def f(): raise KeyError('x')\ntry: 1 / 0\nexcept ZeroDivisionError: f()\n",
    "syntax": "x = 1\nif x\n",
    "exit": "import sys; sys.exit(7)",
    "exit with a message": "import sys; sys.exit('enough')",
    "exit at the end": "import atexit, sys; atexit.register(print, 'bye'); sys.exit()",
    "own hook": "import sys\n"
    "def hook(kind, error, tb):\n"
    "    names = []\n"
    "    while tb: names.append(tb.tb_frame.f_code.co_filename); tb = tb.tb_next\n"
    "    print('mine', kind, names, tb is None)\n"
    "sys.excepthook = hook\n"
    "raise ValueError(3)\n",
    "group": "raise ExceptionGroup('several', [ValueError(1), TypeError(2)])\n"
    if sys.version_info >= (3, 11)
    else "raise ValueError(1)\n",
    "interrupt": "import signal\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "signal.raise_signal(signal.SIGINT)\n",
    "signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "thread": "import threading\n"
    "def f(): raise KeyError('x')\n"
    "t = threading.Thread(target=f); t.start(); t.join(); print('goes on')\n",
}


@pytest.mark.parametrize("form", ["script", "module", "code"])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_program_ends_as_it_would_end(folder: Folder, failure: str, form: str) -> None:
    folder.write("fails.py", FAILURES[failure])
    program = {
        "script": ["fails.py"],
        "module": ["-m", "fails"],
        "code": ["-c", FAILURES[failure]],
    }[form]
    plain = folder.python(*program)
    ours = folder.keel("--no-summary", *program)
    assert (ours.returncode, ours.stdout, ours.stderr) == (
        plain.returncode,
        plain.stdout,
        plain.stderr,
    )
    assert failure != "interrupt" or ours.returncode == -signal.SIGINT


# --- What it says and writes ---

USES = "import keel\na = keel.zeros(1 << 18)\nb = keel.zeros(10, device=1); del b\n"


def test_the_summary(folder: Folder) -> None:
    folder.write("uses.py", USES)
    result = folder.keel("uses.py")
    assert (result.returncode, result.stdout) == (0, "")
    title, headings, *rows = result.stderr.splitlines()
    assert re.fullmatch(r"keel run: uses\.py, \d+\.\d s", title)
    assert headings.split("  ")[1] == "device"
    assert rows[0].split() == ["sim:0", "1.0", "MiB", "2.0", "MiB", "2.000", "1", "1", "0", "0"]
    assert rows[1].split()[:3] == ["sim:1", "512", "B"]
    assert len({len(line) for line in (headings, *rows)}) == 1


def test_a_program_without_devices(folder: Folder) -> None:
    result = folder.keel("-c", "pass", KEEL_DRIVER="cuda", KEEL_CUDA_LIBRARY="/nowhere.so")
    assert (result.returncode, result.stdout) == (0, "")
    assert re.fullmatch(r"keel run: -c, .* s: no device memory was used\n", result.stderr)


def test_a_closed_standard_error(folder: Folder) -> None:
    result = folder.keel("-c", USES + "import sys; sys.stderr.close(); print('done')")
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


def test_files(folder: Folder) -> None:
    (folder.path / "elsewhere").mkdir()
    options = ("--json", "out.json", "--snapshot={pid}.pickle", "--history=50", "--no-summary")
    result = folder.keel(*options, "-c", USES + "import os; os.chdir('elsewhere')\n", "x")
    assert (result.returncode, result.stderr) == (0, "")
    summary: dict[str, Any] = json.loads((folder.path / "out.json").read_text())
    assert list(summary) == [
        "version",
        "pid",
        "program",
        "seconds",
        "frameworks",
        "devices",
        "snapshots",
    ]
    assert summary["version"] == keel.__version__
    assert summary["program"] == ["-c", "x"]
    assert summary["devices"][0] == {
        "device": "sim:0",
        "peak_allocated": 1 << 20,
        "peak_reserved": 2 << 20,
        "peak_requested": 1 << 20,
        "ratio": 2.0,
        "allocations": 1,
        "driver_calls": 1,
        "retries": 0,
        "ooms": 0,
    }
    (snapshot,) = folder.path.glob("*.pickle")
    assert summary["snapshots"] == [str(snapshot)]
    assert snapshot.stem == str(summary["pid"])
    contents = pickle.loads(snapshot.read_bytes())
    # What variables hold at the end is still there.
    assert sum(s["allocated_size"] for s in contents["segments"]) == 1 << 20
    assert any(event["action"] == "alloc" for event in contents["device_traces"][0])


def test_the_configuration(folder: Folder) -> None:
    program = "import keel; print(keel.memory.get_allocator_backend())"
    result = folder.keel("--no-summary", "--conf", "backend:passthrough", "-c", program)
    assert result.stdout == "passthrough\n", result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "which program?"),
        (["nope.py"], "cannot open 'nope.py': No such file"),
        (["--frob", "x.py"], "unknown option '--frob'"),
        (["--sumary", "x.py"], "did you mean --summary?"),
        (["--conf"], "--conf needs a value"),
        (["--conf", "frob:1", "-c", "pass"], "'frob'"),
        (["--history=0", "-c", "pass"], "--history=0"),
        (["--strict=1", "-c", "pass"], "--strict takes no value"),
        (["--snapshot", "x.txt", "-c", "pass"], "x.txt: a snapshot is .json, .pickle or .pkl"),
        (["--json", "no/where.json", "-c", "pass"], "there is no folder"),
        (["-m"], "-m needs a module"),
        (["-c"], "-c needs the code"),
        (["-"], "standard input"),
    ],
)
def test_mistakes(folder: Folder, arguments: list[str], message: str) -> None:
    result = folder.keel(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("keel run: ")
    assert line.endswith("; see 'keel run --help'")
    assert message in line


# --- Out of memory ---

RUNS_OUT = "import keel\nheld = keel.empty(1 << 24, tag='weights')\nkeel.empty(1 << 40)\n"


def test_out_of_memory_leaves_a_snapshot(folder: Folder, command_line: Path) -> None:
    folder.write("runs_out.py", RUNS_OUT)
    result = folder.keel("--history", "runs_out.py")
    assert result.returncode == 1
    assert "keel.errors.OutOfMemoryError: out of memory: 4 TiB asked for" in result.stderr
    (snapshot,) = folder.snapshots()
    assert result.stderr.count("keel run: out of memory") == 1
    assert f"'keel report {snapshot}'" in result.stderr
    segments = pickle.loads(snapshot.read_bytes())["segments"]
    assert sum(segment["allocated_size"] for segment in segments) == 64 << 20
    report = folder.start(command_line, "report", snapshot, "-o", "page.html", "--json")
    assert report.returncode == 0, report.stderr
    assert json.loads(report.stdout)["peak_groups"][0]["name"] == "weights"


def test_out_of_memory_without_a_file_to_be_had(folder: Folder) -> None:
    """The system's want of files is not the device's of memory, and not told as such."""
    program = """
        import os, resource, keel
        def run_out():
            keel.empty(1 << 42, "uint8")
        told = []
        keel.memory.on_out_of_memory(lambda error: told.append(str(error)))
        try:
            run_out()
        except keel.OutOfMemoryError:
            print(len(told), flush=True)  # and there is a snapshot
        used = len(os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (used - 1, used - 1))
        run_out()
    """
    result = folder.keel("-c", textwrap.dedent(program))
    assert result.returncode == 1, result.stderr
    assert result.stdout == "1\n"
    assert len(folder.snapshots()) == 1
    assert "keel run: no snapshot: " in result.stderr
    assert "OutOfMemoryError: out of memory: 4 TiB asked for" in result.stderr


def test_an_error_that_is_caught_holds_nothing(folder: Folder) -> None:
    result = folder.keel(
        "-c",
        "import keel\n"
        "def step():\n"
        "    held = keel.empty(1 << 24)\n"
        "    return keel.empty(1 << 40)\n"
        "for _ in range(3):\n"
        "    try: step()\n"
        "    except MemoryError: pass\n"
        "    print(keel.memory.memory_allocated())\n",
    )
    assert result.stdout == "0\n0\n0\n"
    assert len(folder.snapshots()) == 1
    assert result.stderr.count("keel run: out of memory") == 1  # the first time
    assert result.stderr.split()[-1] == "3"


@pytest.mark.parametrize(
    "raises",
    [
        "except MemoryError as error: raise OSError('wrapped') from error\n",
        "except MemoryError: pass\nraise RuntimeError('CUDA out of memory. RESOURCE_EXHAUSTED')\n",
    ],
    ids=["wrapped", "by its words"],
)
def test_an_error_that_nobody_catches_is_what_the_snapshot_is_about(
    folder: Folder, raises: str
) -> None:
    result = folder.keel(
        "--oom-snapshot=oom.json",
        "-c",
        "import keel\n"
        "try: keel.empty(1 << 40)\n"
        "except MemoryError: pass\n"
        "held = keel.empty(1 << 24)\n"
        "try: keel.empty(1 << 40)\n" + raises,
    )
    assert result.returncode == 1
    segments = json.loads((folder.path / "oom.json").read_text())["segments"]
    assert sum(segment["allocated_size"] for segment in segments) == 64 << 20


def test_no_snapshot_if_none_is_wanted(folder: Folder) -> None:
    result = folder.keel("--oom-snapshot", "none", "-c", RUNS_OUT)
    assert result.returncode == 1
    assert folder.snapshots() == []
    assert "snapshot" not in result.stderr


def test_a_snapshot_that_cannot_be_written(folder: Folder) -> None:
    (folder.path / "taken.pickle").mkdir()
    result = folder.keel("--oom-snapshot", "taken.pickle", "-c", RUNS_OUT)
    assert result.returncode == 1
    assert "keel run: no snapshot: " in result.stderr
    assert "OutOfMemoryError" in result.stderr


# --- Processes under it ---


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
@pytest.mark.parametrize("form", ["script", "module"])
def test_workers_of_multiprocessing(folder: Folder, method: str, form: str) -> None:
    folder.write(
        "works.py",
        "import multiprocessing, sys, keel\n"
        "def work(i): return float(keel.zeros(3).nbytes + i)\n"
        "def host_work(i): return i * 2\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context(sys.argv[1])\n"
        "    task = host_work if sys.argv[1] == 'fork' else work\n"
        "    if sys.argv[1] == 'fork': a = keel.zeros(4)\n"
        "    processes = [context.Process(target=task, args=(1,)) for _ in range(2)]\n"
        "    for p in processes: p.start()\n"
        "    for p in processes: p.join()\n"
        "    assert [p.exitcode for p in processes] == [0, 0]\n"
        "    pool = context.Pool(2)\n"
        "    print(pool.map(task, [1, 2])); pool.close(); pool.join()\n",
    )
    program = ["works.py"] if form == "script" else ["-m", "works"]
    result = folder.keel(*program, method)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ("[2, 4]\n" if method == "fork" else "[13.0, 14.0]\n")
    titles = [line for line in result.stderr.splitlines() if line.startswith("keel run")]
    if method == "fork":
        assert len(titles) == 1, result.stderr
    elif method == "spawn":  # one of the pool's workers may have had nothing to do
        assert len(titles) >= 4, result.stderr
    assert all(", process " in title for title in titles[:-1])
    assert "process" not in titles[-1]
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("first_use", ["before", "after"])
def test_a_forked_child_is_silent(folder: Folder, first_use: str) -> None:
    result = folder.keel(
        "--json=out-{pid}.json",
        "--snapshot=end-{pid}.json",
        "-c",
        "import os, sys, keel\n"
        "if sys.argv[1] == 'before': a = keel.zeros(4)\n"
        "if os.fork() == 0:\n"
        "    try: keel.empty(1 << 40)\n"
        "    except keel.Error: pass\n"
        "    print('child', flush=True); sys.exit(0)\n"
        "os.wait(); print('parent')\n",
        first_use,
    )
    assert result.stdout == "child\nparent\n"
    assert result.stderr.count("keel run") == 1, result.stderr
    assert "Error" not in result.stderr
    # The parent's own, of which the snapshot is written if there is something to show.
    assert len(list(folder.path.iterdir())) == (2 if first_use == "before" else 1)


SHOW = "import sys; print(sys.path[1:], sys.modules.get('keel'), *sys.argv[1:])"


def test_a_child_that_uses_nothing_is_left_alone(folder: Folder) -> None:
    program = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {SHOW!r}, 'x'], check=True)"
    )
    plain = folder.python("-c", program)
    result = folder.keel("--json={pid}.json", "-c", program)
    assert result.stdout == plain.stdout
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert len(list(folder.path.iterdir())) == 1


CHILD = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {USES!r}], check=True)\n"


def test_a_child_that_uses_memory(folder: Folder) -> None:
    options = ("--json={pid}.json", "--snapshot=end.json", "--history=7")
    result = folder.keel(*options, "-c", CHILD)
    assert result.returncode == 0, result.stderr
    child, parent = (line for line in result.stderr.splitlines() if line.startswith("keel run"))
    assert re.fullmatch(r"keel run: -c, process \d+, .* s", child)
    assert parent.endswith("no device memory was used")
    # The name without a number is the parent's, which has nothing to show.
    assert not (folder.path / "end.json").exists()
    written = [json.loads(path.read_text()) for path in folder.path.glob("*.json")]
    assert sorted(len(summary["devices"]) for summary in written) == [0, 2]


def test_a_child_that_clears_its_environment(folder: Folder) -> None:
    child = f"import os; del os.environ['KEEL_RUN'], os.environ['PYTHONPATH']\n{USES}"
    result = folder.keel(
        "-c", f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
    )
    assert "Traceback" not in result.stderr
    assert ", process " in result.stderr


def test_children_can_be_left_out(folder: Folder) -> None:
    result = folder.keel("--no-children", "-c", CHILD)
    assert len(result.stderr.splitlines()) == 1, result.stderr


def test_out_of_memory_in_a_child(folder: Folder) -> None:
    folder.write("runs_out.py", RUNS_OUT)
    result = folder.keel(
        "-c",
        "import subprocess, sys\nprint(subprocess.run([sys.executable, 'runs_out.py']).returncode)",
    )
    assert result.stdout == "1\n"
    assert len(folder.snapshots()) == 1
    assert result.stderr.count("keel run: out of memory") == 1


def test_the_sitecustomize_that_was_there(folder: Folder) -> None:
    folder.write("site/sitecustomize.py", "print('customized', __name__)\n")
    program = (
        "import subprocess, sys, sitecustomize\n"
        "print(sitecustomize.__file__)\n"
        "if len(sys.argv) > 1: sys.exit(subprocess.call([sys.executable, '-c', sys.argv[1]]))"
    )
    site = str(folder.path / "site")
    plain = folder.python("-c", program, program, PYTHONPATH=site)
    result = folder.keel("--no-summary", "-c", program, program, PYTHONPATH=site)
    assert (result.stdout, result.stderr) == (plain.stdout, "")
    broken = folder.write("site/sitecustomize.py", "raise ImportError('broken')\n")
    result = folder.keel("-c", CHILD, PYTHONPATH=str(broken.parent))
    assert "broken" in result.stderr
    assert "process" in result.stderr  # and what is ours works


def test_a_run_in_a_run(folder: Folder) -> None:
    inner = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-m', 'keel.run', '--json=in.json',\n"
        f"                '-c', {USES!r}])"
    )
    result = folder.keel("--no-summary", "--json=out.json", "-c", inner)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("keel run") == 1
    assert len(json.loads((folder.path / "in.json").read_text())["devices"]) == 2
    assert json.loads((folder.path / "out.json").read_text())["devices"] == []


# --- Frameworks ---

# Not the real ones: what is seen is when they are asked to use Keel, and what happens if they
# cannot.
FRAMEWORK = (
    "import sys\n"
    "sys.stderr.write(f'{__name__} is imported\\n')\n"
    "loader = type(__spec__.loader).__name__\n"
    "from . import part\n"
    "sys.stderr.write(f'{__name__} is done\\n')\n"
)


@pytest.fixture
def frameworks(folder: Folder) -> Folder:
    for name in ("torch", "cupy"):
        folder.write(f"lib/{name}/__init__.py", FRAMEWORK)
        folder.write(f"lib/{name}/part.py", "")
    return folder


USES_BOTH = "import cupy.part\nfrom torch import part, loader\nimport torch; print(loader)\n"


def test_frameworks_are_asked_once_they_are_imported(frameworks: Folder) -> None:
    result = frameworks.keel("-c", USES_BOTH, PYTHONPATH="lib")
    assert (result.returncode, result.stdout) == (0, "SourceFileLoader\n")
    lines = result.stderr.splitlines()
    assert [line.split(":")[1].strip() if "keel" in line else line for line in lines[:6]] == [
        "cupy is imported",
        "cupy is done",
        "cupy keeps its own allocator",
        "torch is imported",
        "torch is done",
        "torch keeps its own allocator",
    ]
    assert len(lines) == 7


def test_frameworks_that_are_left_alone(frameworks: Folder) -> None:
    options = ("--no-torch", "--no-cupy", "--strict")
    result = frameworks.keel(*options, "-c", USES_BOTH, PYTHONPATH="lib")
    assert (result.returncode, result.stdout) == (0, "SourceFileLoader\n")
    assert "allocator" not in result.stderr


def test_strict(frameworks: Folder) -> None:
    program = "try: import torch\nexcept Exception: pass\nprint('not reached')\n"
    result = frameworks.keel("--strict", "-c", program, PYTHONPATH="lib")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("torch keeps its own allocator: ") == 1
    assert "Traceback" not in result.stderr


def test_children_do_not_repeat_a_warning(frameworks: Folder) -> None:
    child = "import subprocess, sys\n{}subprocess.run([sys.executable, '-c', 'import torch'])\n"
    for before, summaries in (("import torch\n", 1), ("", 1)):
        result = frameworks.keel("-c", child.format(before), PYTHONPATH="lib")
        assert result.stderr.count("torch keeps its own allocator") == summaries, result.stderr


def test_a_framework_that_cannot_be_imported_can_be_tried_again(frameworks: Folder) -> None:
    frameworks.write("lib/torch/part.py", "import os\nif 'OK' not in os.environ: raise OSError(3)")
    result = frameworks.keel(
        "-c",
        "import os\n"
        "try: import torch\n"
        "except OSError: os.environ['OK'] = '1'\n"
        "import importlib.util; print(importlib.util.find_spec('torch').origin[-17:])\n"
        "import torch\n",
        PYTHONPATH="lib",
    )
    assert result.stdout == "torch/__init__.py\n"
    assert result.stderr.count("torch is done") == 1
    assert result.stderr.count("torch keeps its own allocator") == 1


def test_a_child_whose_python_lacks_the_package(frameworks: Folder) -> None:
    child = (
        "import os, subprocess, sys\n"
        "sys.exit(subprocess.call([sys.executable, '-S', '-c',\n"
        '  \'import os, sys; sys.path.insert(0, os.environ["PYTHONPATH"].split(":")[0])\\n\'\n'
        "  'import sitecustomize, torch; print(torch.loader)']))"
    )
    result = frameworks.keel("-c", child, PYTHONPATH="lib")
    assert (result.returncode, result.stdout) == (0, "SourceFileLoader\n"), result.stderr
    assert "torch keeps its own allocator in " in result.stderr
    assert "No module named 'keel'" in result.stderr
    assert frameworks.keel("--strict", "-c", child, PYTHONPATH="lib").returncode == 1


# --- The command ---


def test_the_command(folder: Folder, command_line: Path) -> None:
    folder.write("look.py", LOOK)
    keel_run = (command_line, "run", "--python", sys.executable, "--history=5", "--no-summary")
    plain = folder.python("look.py", "--json", "a b", stdin="in")
    result = folder.start(*keel_run, "--json", "out.json", "look.py", "--json", "a b", stdin="in")
    assert (result.returncode, result.stdout, result.stderr) == (0, plain.stdout, "")
    assert json.loads((folder.path / "out.json").read_text())["program"] == [
        "look.py",
        "--json",
        "a b",
    ]
    result = folder.start(*keel_run, "-c", "import sys; sys.exit(len(sys.argv))", "--help")
    assert result.returncode == 2
    assert result.stderr == ""


def test_the_command_and_the_module_have_the_same_options(
    folder: Folder, command_line: Path
) -> None:
    command = folder.start(command_line, "run", "--help").stdout
    module = folder.keel("--help").stdout
    assert module == _options.HELP
    options = set(re.findall(r"(?<![\w-])--[a-z-]+", module))
    assert options == set(_options.NAMES)
    assert set(re.findall(r"^  (?:-h,)?(--[a-z-]+)", command, re.M)) == options | {"--python"}


def test_the_guide_names_every_option(run: Run) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "run.md").read_text()
    for name in _options.NAMES:
        assert f"`{name}" in guide, name
