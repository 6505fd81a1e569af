"""The example of offline inference on Ray, from S3 (moto's server) to Parquet, works while a worker is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.dataset
import pytest
from moto.server import ThreadedMotoServer

sys.path.insert(0, str(Path(__file__).parents[2] / "training"))

from digits_data import Look, encode, load_split

# Threads and sockets of Ray and pyarrow outlive the objects that they belong to.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(500), pytest.mark.exhaustive]

ROOT = Path(__file__).resolve().parents[2]
COUNT = 400
BROKEN = 7


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Write images of digits to S3, one of them broken; yield the bucket's URL."""
    import fsspec

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    store = fsspec.filesystem("s3", skip_instance_cache=True)
    store.mkdir("digits")
    split = load_split()
    for number in range(COUNT):
        image = encode(split.held_out_digits[number % len(split.held_out_digits)], Look(28, "PNG"))
        store.pipe(f"digits/images/{number:04}.png", b"no image" if number == BROKEN else image)
    yield "s3://digits"
    server.stop()


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Return the ids of processes below another one that run Ray's actors and do a part of the work."""
    children: dict[int, list[int]] = {}
    names = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            names[int(folder.name)] = (folder / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(parent, []).append(int(folder.name))
    found, left = [], [process.pid]
    while left:
        below = children.get(left.pop(), [])
        left += below
        found += [pid for pid in below if names[pid].startswith("ray::") and "_Stage" in names[pid]]
    return found


def test_each_image_is_recognized_once_though_a_worker_is_killed(bucket: str) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "backend"), *sys.path])}
    command = [sys.executable, str(ROOT / "examples" / "ray_offline_inference.py"), f"{bucket}/images", f"{bucket}/out"]
    with subprocess.Popen(
        [*command, "--batch-size", "8", "--workers", "1", "--local-cpus", "4"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        killed = 0
        while process.poll() is None:
            time.sleep(0.05)
            for pid in workers_of(process)[:1] if not killed else ():
                # The process may have ended by itself.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        told = process.communicate()[0]
    assert process.returncode == 0, told
    assert killed
    assert f"recognized {COUNT - 1} images" in told
    # Each valid image occurs once, with the right digit.
    rows = pyarrow.dataset.dataset(f"{bucket}/out", format="parquet").to_table().to_pylist()
    digits = {int(Path(row["path"]).stem): row["digit"] for row in rows}
    assert sorted(digits) == [number for number in range(COUNT) if number != BROKEN]
    assert len(rows) == COUNT - 1
    expected = load_split().held_out_labels
    right = [digit == expected[number % len(expected)] for number, digit in digits.items()]
    assert np.mean(right) > 0.97
