"""``python -m mle_gym`` is ``mle-gym``."""

import sys

from mle_gym.cli import main

if __name__ == "__main__":
    sys.exit(main())
