"""``python -m endless_mode.worker [--start-lock FD] [--foreground]``: be the home's worker, or leave.

The home is the one the environment names. Exit codes: 0 ended as it should, 1 could not start, 3 there is
one.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from endless_mode.errors import HomeError
from endless_mode.home import find_home
from endless_mode.worker.lifecycle import acquire, daemonise

if TYPE_CHECKING:
    from endless_mode.worker.service import Factory


def main(argv: list[str], factory: Factory | None = None) -> int:
    """Run the worker until it has nothing left to do. ``factory`` makes the service (default: the
    product's).
    """
    os.umask(0o077)
    if "--foreground" not in argv:
        daemonise()
    home = find_home()
    try:
        home.create()
        hold = acquire(home)
    except (HomeError, OSError) as error:
        print(f"endless worker: {error}", file=sys.stderr)
        return 1
    if "--start-lock" in argv:
        with contextlib.suppress(OSError, ValueError, IndexError):
            os.close(int(argv[argv.index("--start-lock") + 1]))
    if hold is None:
        return 3
    from endless_mode.worker.server import run

    return run(home, hold, factory)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
