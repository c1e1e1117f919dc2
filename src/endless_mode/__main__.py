"""``python -m endless_mode`` is the command ``endless``."""

import sys

from endless_mode.cli import main

sys.exit(main())
