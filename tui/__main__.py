"""`python -m straggler.tui`: the same as the `straggler` command."""

import sys

from straggler.tui.cli import main

sys.exit(main())
