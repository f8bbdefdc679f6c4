"""Which version of the code this is."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path


@cache
def revision() -> str:
    """The git revision of the code, with "-dirty" if it was changed; "unknown" outside a checkout."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        said = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return said.stdout.strip()
