"""``python -m keel.run script.py``: a program as it is, on Keel's memory.

What `keel run` starts: docs/run.md is the guide. The program runs in this process as Python itself
would run it. PyTorch and CuPy get Keel's allocators when they are imported; at the end there is a
summary, and a snapshot if memory ran out.
"""
