"""Makes the modules in docs/building importable; they are not a package, as MkDocs loads them by path."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "building"))

# `make test-site` sets this variable; it builds the site and provides a browser.
collect_ignore = [] if os.environ.get("PENSTOCK_SITE") else ["test_site.py"]
