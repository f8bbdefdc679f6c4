"""`python -m chainroute.train`: training from the shell, with little more installed than PyTorch."""

import sys

from chainroute.commands.shell import main
from chainroute.commands.train import train

if __name__ == "__main__":
    sys.exit(main("python -m chainroute.train", train))
