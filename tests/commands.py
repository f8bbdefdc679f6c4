"""The command, as tests call it: in this process, or in one of its own."""

import subprocess
import sys

from typer.testing import CliRunner

from chainroute.cli.app import app

COMMAND = [sys.executable, "-c", "from chainroute_command import main; main()"]


def run(*args, given=None):
    """Exit code, stdout and stderr of the command, in this process."""
    result = CliRunner().invoke(app, [str(arg) for arg in args], input=given)
    assert "Traceback" not in result.output
    return result.exit_code, result.stdout, result.stderr


def spawn(*args, **options):
    return subprocess.run([*COMMAND, *map(str, args)], capture_output=True, text=True, timeout=60, **options)
