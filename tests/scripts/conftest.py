"""Puts scripts/ on the path, as `python scripts/NAME.py` does."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
