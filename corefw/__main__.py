"""`python -m corefw` is the command `corefw`."""

import sys

from corefw.cli import main

sys.exit(main())
