"""Arguments, error handling and output shared by the example clients."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tritonclient.utils import InferenceServerException


def arguments(description: str, port: int) -> argparse.Namespace:
    """Parse the command line of a client.

    Args:
        description: first lines of its help.
        port: the server's port; None: the default.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="encoded images; all are sent in one request")
    parser.add_argument("--url", default=f"localhost:{port}", help="host:port of the server (default: %(default)s)")
    parser.add_argument("--model", default="digits", help="which model to ask (default: %(default)s)")
    parser.add_argument("--input", default="encoded_image", help="name of its input (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds to wait (default: %(default)s)")
    return parser.parse_args()


def read_batch(files: list[Path]) -> np.ndarray:
    """Return files as a batch for an input of type BYTES: an array of byte strings, shape (files, 1)."""
    return np.array([[file.read_bytes()] for file in files], dtype=np.object_)


def show(files: list[Path], outputs: dict[str, np.ndarray]) -> None:
    """Print one line for each file: small outputs in full, the shapes of large ones."""
    for index, file in enumerate(files):
        parts = []
        for name, batch in outputs.items():
            value = batch[index]
            text = (
                np.array2string(value, precision=3, suppress_small=True)
                if value.size <= 16
                else f"{value.shape} {value.dtype}"
            )
            parts.append(f"{name} {' '.join(text.split())}")
        print(f"{file}: {', '.join(parts)}")


def run(client: Callable[[], None]) -> None:
    """Run a client's main function; an error becomes one clear line and exit code 1."""
    try:
        client()
    except InferenceServerException as error:
        away = error.status() in (None, "StatusCode.UNAVAILABLE", "StatusCode.DEADLINE_EXCEEDED", "499")
        sys.exit(f"{'no answer' if away else 'the server refused'}: {error.message()}")
    except OSError as error:
        what = f"cannot read {error.filename}" if error.filename else "the server is away"
        sys.exit(f"{what}: {error.strerror or error}")
