"""`python -m chainroute.evaluate`: the commands of `chainroute evaluate`, with little more than PyTorch.

python3 -m chainroute.evaluate run --suite seen zero-shot --n 50 --out DIR
"""

import sys

from chainroute.research.evaluate.command import COMMANDS
from chainroute.runtime.shell import main

if __name__ == "__main__":
    sys.exit(main("python -m chainroute.evaluate", COMMANDS))
