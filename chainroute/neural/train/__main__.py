"""`python -m chainroute.train`: training from the shell, with little more installed than PyTorch."""

import sys

from chainroute.neural.command import train
from chainroute.runtime.shell import main

if __name__ == "__main__":
    sys.exit(main("python -m chainroute.train", train))
