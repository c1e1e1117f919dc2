"""The script hooks run: ``hook.py`` from its compiled form, which saves compiling it each time.

Python caches the bytecode of modules but not of scripts, so the script is this small. The loader is the
interpreter's own and already loaded; it compiles, and caches where it can, when the cache is missing or stale.
"""

import posix
import sys

try:
    _path = __file__.rpartition("/")[0] + "/hook.py"
    _loader = sys.modules["_frozen_importlib_external"].SourceFileLoader("hook", _path)
    exec(_loader.get_code("hook"), {"__name__": "__main__", "__file__": _path})
finally:
    posix._exit(0)
