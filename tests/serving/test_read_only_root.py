"""`penstock serve` for a user who can only write to the temporary folder, as on a read-only root file system."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))

from free_ports import free_ports
from served import HEADER, add_model, ask

pytestmark = pytest.mark.exhaustive

PIPELINE = """
@autoserialize
@pipeline_def(batch_size=4)
def half():
    images = fn.external_source(name="image", dtype=types.UINT8, ndim=3, layout="HWC")
    return fn.crop_mirror_normalize(fn.resize(images, size=(4, 4)), mean=[0.0] * 3, name="half")
"""
REDUCED = """
@autoserialize
@pipeline_def(batch_size=4)
def half():
    encoded = fn.external_source(name="encoded", dtype=types.UINT8, ndim=1)
    return fn.resize(fn.decoders.image(encoded, scale="fast"), size=(16, 16), name="half")
"""
SEALED = """
mount -o remount,bind,ro / && mount -t tmpfs -o mode=1777 scratch "$TMPDIR" && exec "$@"
"""


@contextmanager
def serving(folder: Path) -> Iterator[Any]:
    """Yield a client of a server that can write to no folder but its temporary one."""
    scratch, log = folder / "scratch", folder / "log"
    scratch.mkdir(exist_ok=True)
    ports = free_ports(3)
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    flags = [f"--{name}-port={port}" for name, port in zip(("http", "grpc", "metrics"), ports)]
    variables = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    with log.open("wb") as file:
        process = subprocess.Popen(
            [
                *("unshare", "--mount", *as_root, "sh", "-c", SEALED, "sh"),
                *(sys.executable, "-m", "penstock", "serve", str(folder / "models"), *flags),
            ],
            env=variables
            | {"HOME": "/nonexistent", "TMPDIR": str(scratch), "NUMBA_CACHE_DIR": str(folder / "kernels")},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            with tritonclient.http.InferenceServerClient(f"127.0.0.1:{ports[0]}") as client:
                deadline = time.monotonic() + 200
                while not is_ready(client):
                    assert process.poll() is None, log.read_text()
                    assert time.monotonic() < deadline, log.read_text()
                    time.sleep(0.2)
                yield client
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def is_ready(client: Any) -> bool:
    try:
        return bool(client.is_model_ready("half"))
    except OSError:
        return False


def halved(client: Any) -> np.ndarray:
    image = np.full((1, 8, 8, 3), 7, np.uint8)
    values: np.ndarray = ask(client, "half", image=image).as_numpy("half")
    return values


def test_nothing_but_the_temporary_folder_has_to_be_written(tmp_path: Path) -> None:
    add_model(tmp_path / "models", "half", 'backend: "penstock"\n', HEADER + PIPELINE)
    (tmp_path / "kernels").mkdir()
    with serving(tmp_path) as client:
        assert np.array_equal(halved(client), np.full((1, 3, 4, 4), 7.0, np.float32))


def test_images_are_decoded_at_a_smaller_scale(tmp_path: Path) -> None:
    add_model(tmp_path / "models", "half", 'backend: "penstock"\n', HEADER + REDUCED)
    (tmp_path / "kernels").mkdir()
    file = io.BytesIO()
    Image.new("RGB", (250, 202), (40, 90, 200)).save(file, "JPEG", quality=95)
    with serving(tmp_path) as client:
        encoded = np.frombuffer(file.getvalue(), np.uint8)[None]
        pixels = ask(client, "half", encoded=encoded).as_numpy("half")
    assert pixels.shape == (1, 16, 16, 3)
    assert np.abs(pixels - np.array([40.0, 90.0, 200.0])).max() <= 2


def test_damaged_kernels_are_compiled_again(tmp_path: Path) -> None:
    add_model(tmp_path / "models", "half", 'backend: "penstock"\n', HEADER + PIPELINE)
    filling = (
        "import runpy; from penstock.serving.probing import probe; "
        f"definition = runpy.run_path({str(tmp_path / 'models/half/1/pipeline.py')!r})['half']; "
        "probe(definition(num_threads=1, device_id=None))"
    )
    # The compiled library of kernels is not used, because with it nothing would be compiled.
    variables = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "PENSTOCK_KERNELS": "compile"}
    subprocess.run([sys.executable, "-c", filling], env=variables, check=True)
    damaged = list((tmp_path / "kernels").rglob("*.nbc"))
    assert damaged
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    with serving(tmp_path) as client:
        assert np.array_equal(halved(client), np.full((1, 3, 4, 4), 7.0, np.float32))
