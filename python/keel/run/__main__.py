"""python -m keel.run"""

from __future__ import annotations

import sys

from keel.errors import InvalidArgumentError
from keel.run import _program, _session
from keel.run._options import HELP, HelpAsked, UsageError, parse


def _usage(message: str) -> int:
    print(f"keel run: {message}; see 'keel run --help'", file=sys.stderr)
    return 2


def main() -> int:
    try:
        options, program = parse(sys.argv[1:])
        _program.check(program)
        session = _session.start(options)
    except HelpAsked:
        sys.stdout.write(HELP)
        return 0
    except UsageError as error:
        return _usage(str(error))
    except InvalidArgumentError as error:
        return _usage(f"--conf: {error}")
    _program.run(program, session.failed)
    return 0


if __name__ == "__main__":
    # Not sys.exit(0): what ends a program that just ends is not an exception.
    code = main()
    if code != 0:
        sys.exit(code)
