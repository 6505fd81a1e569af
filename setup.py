"""Writes the type stubs of `fn` and `ops` when the package is built, and adds the sources of the backend's library.

Everything else is in pyproject.toml.
"""

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SOURCES = Path(__file__).parent / "backend"


class BuildWithStubs(build_py):
    """Stubs follow from the operators' declarations: a wheel carries them, an editable install gets them in its tree."""

    def run(self):
        super().run()
        sys.path.insert(0, str(SOURCES))
        from penstock.cli._stub_files import write_stubs

        write_stubs((SOURCES if self.editable_mode else Path(self.build_lib)) / "penstock")
        if not self.editable_mode:
            # What `penstock setup` compiles where it is installed.
            shutil.copytree(SOURCES / "native", Path(self.build_lib) / "penstock" / "native", dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithStubs})
