"""Runs the DALI backend's QA suites and examples on Penstock: ``python tests/qa/run_qa.py CHECKOUT [SUITE ...]``.

CHECKOUT is a checkout of https://github.com/triton-inference-server/dali_backend. Each suite is copied into a temporary folder, set up by
its ``setup.sh``, served by ``penstock serve --as dali --device cpu``, and tested by its ``test.sh``, unchanged except for the edits in
:data:`SUITES`. The scripts' ``python`` runs programs for DALI on Penstock; with ``--client-python``, the tests run in an interpreter that
has real DALI, which then computes the expected results. The outcomes are printed as a table, and the exit status is 1 if a suite that can
run here fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from penstock.serving.server import LocalServer, ServerError

_TIMEOUT = 300.0


@dataclass(frozen=True)
class Suite:
    """One suite or example of the DALI backend.

    Attributes:
        folder: the suite's folder in the checkout.
        flags: the flags for Triton with which the suite is meant to be served.
        test: the command that tests the suite; ``$GRPC_ADDR`` is the server's address.
        setup: the command that sets up the suite.
        change: a description of the edits; empty if there are none.
        edits: regular expressions and their replacements in the suite's Python files.
        stand_in: writes substitutes for files that the suite needs and the checkout lacks; it is called with the suite's folder.
        missing: the reason why the suite cannot run here; empty if it can.
    """

    folder: str
    flags: tuple[str, ...] = ()
    test: str = "bash test.sh"
    setup: str = "bash setup.sh"
    change: str = ""
    edits: tuple[tuple[str, str], ...] = ()
    stand_in: Callable[[Path], None] | None = None
    missing: str = ""

    @property
    def name(self) -> str:
        """The suite's name in the table."""
        return self.folder.removeprefix("qa/").removeprefix("docs/")


def _videos(folder: Path) -> None:
    """Write substitutes for DALI_extra's videos, in a codec that every build of FFmpeg has."""
    for number, (name, frames) in enumerate(
        (("cfr/test_1_mjpeg", 12), ("cfr/test_2_mjpeg", 20), ("vfr/test_1_mjpeg", 7))
    ):
        _video(folder / "dali_extra" / "db" / "video" / f"{name}.mp4", frames, number)
    _video(folder / "dali_extra" / "db" / "video" / "containers" / "mkv" / "cfr.mkv", 35, 9)


def _video(path: Path, frames: int, seed: int) -> None:
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    shade = random.integers(60, 190, (6, 8, 3)).astype(np.float64)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mjpeg", rate=25)
        stream.width, stream.height, stream.pix_fmt = 160, 120, "yuvj420p"
        for number in range(frames):
            picture = np.kron(np.roll(shade, number, axis=1), np.ones((20, 20, 1)))
            frame = av.VideoFrame.from_ndarray(picture.astype(np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def _maps(folder: Path) -> None:
    """Write substitutes for the coordinate maps of a lens, relative to the middle of the picture."""
    y, x = np.mgrid[:1080, :1920].astype(np.float32)
    np.savez(folder / "remap.npz", remap_x=x - 960, remap_y=y - 540)


def _video_and_maps(folder: Path) -> None:
    _videos(folder)
    _maps(folder)


_ON_CPU = ((r"device_id=0", "device_id=None"), (r"device='mixed'", "device='cpu'"))
_CLIENT_ON_CPU = "client's reference pipeline on CPU; stand-in videos"

SUITES = (
    Suite("qa/L0_identity"),
    Suite("qa/L0_identity_cpu"),
    Suite("qa/L0_multi_input"),
    Suite("qa/L0_many_versions"),
    Suite("qa/L0_autoconfig"),
    Suite(
        "qa/L0_config_validation",
        flags=("--model-control-mode=explicit", "--disable-auto-complete-config"),
    ),
    Suite("qa/L0_img_proc"),
    Suite("qa/L0_unbatched_model"),
    Suite(
        "qa/L1_DALI_GPU_ensemble",
        change="client's tolerance 1e-3: on CPU, DALI (and so Penstock) rounds ties to FP16 away from zero, on GPU to even",
        edits=((r"eps=1e-4", "eps=1e-3"),),
    ),
    Suite(
        "qa/L0_video_input_decoupled",
        change=_CLIENT_ON_CPU,
        edits=(
            (r"device_id=0, prefetch", "device_id=None, prefetch"),
            (r"'mixed' if device == 'gpu' else 'cpu'", "'cpu'"),
        ),
        stand_in=_videos,
    ),
    Suite(
        "qa/L0_video_split",
        change=f"{_CLIENT_ON_CPU}, padded with numpy rather than with DALI's dynamic mode, which Penstock lacks",
        edits=(
            *_ON_CPU,
            (r"import nvidia\.dali\.experimental\.dynamic as ndd\n", ""),
            (
                r"np\.array\(ndd\.as_tensor\(ndd\.pad\(ndd\.as_batch\(batch\)\)\)\)",
                "np.stack([np.pad(data, (0, max(map(len, batch)) - len(data))) for data in batch])",
            ),
        ),
        stand_in=_videos,
    ),
    Suite(
        "docs/examples/video_decode_remap",
        setup="true",
        test="python client.py -u $GRPC_ADDR",
        change="stand-ins for the video and the lens' maps, which are not in the checkout",
        stand_in=_video_and_maps,
    ),
    Suite(
        "qa/L0_perf_analyzer_example",
        missing="needs the program perf_analyzer, which newer wheels of tritonclient lack",
    ),
    Suite("qa/L0_release_after_unload", missing="reads a GPU's memory from nvidia-smi; needs perf_analyzer"),
    Suite("qa/L0_dont_release_after_unload", missing="reads a GPU's memory from nvidia-smi; needs perf_analyzer"),
    Suite(
        "qa/L0_resnet50_ensemble",
        missing="needs torchvision's weights and the backend onnxruntime, which the wheel lacks",
    ),
    Suite("qa/L0_segmentation", missing="its PyTorch model runs on a GPU only (.cuda()); needs torchvision's weights"),
)


@dataclass
class Outcome:
    """The outcome of running a suite.

    Attributes:
        state: ``passes``, ``fails`` or ``cannot run``.
        detail: if the suite failed, the last lines of its output, or the server's error.
    """

    state: str
    detail: str = ""
    seconds: float = 0.0


@dataclass
class Runner:
    """Runs suites.

    Attributes:
        checkout: the checkout of the DALI backend.
        server_python: the Python environment that serves; None for the default one.
        client_python: an interpreter with real DALI, which runs the tests; None: the current one, with Penstock instead of DALI.
        device: the value of ``penstock serve --device``.
        keep: whether the temporary folders remain after the run.
    """

    checkout: Path
    server_python: str | None = None
    client_python: str | None = None
    device: str = "cpu"
    keep: bool = False
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="penstock-qa-")))

    def run(self, suite: Suite) -> Outcome:
        """Set up, serve and test one suite."""
        if suite.missing:
            return Outcome("cannot run", suite.missing)
        began = time.monotonic()
        folder = self.folder / suite.folder
        shutil.copytree(self.checkout / suite.folder, folder)
        try:
            self._edit(folder, suite.edits)
            if suite.stand_in is not None:
                suite.stand_in(folder)
            self._call(suite.setup, folder, None)
            with LocalServer(
                folder / "model_repository",
                environment=self.server_python,
                backends=("penstock", "dali"),
                settings={"device": self.device},
                flags=suite.flags,
            ) as server:
                self._call(suite.test, folder, self.client_python, GRPC_ADDR=server.grpc_url)
        except (ServerError, _FailedError) as error:
            return Outcome("fails", str(error), time.monotonic() - began)
        return Outcome("passes", seconds=time.monotonic() - began)

    def close(self) -> None:
        """Remove the temporary folders, unless they are to be kept."""
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _edit(self, folder: Path, edits: Sequence[tuple[str, str]]) -> None:
        for path in folder.glob("*.py") if edits else ():
            text = path.read_text()
            for pattern, replacement in edits:
                text = re.sub(pattern, replacement, text)
            path.write_text(text)

    def _call(self, command: str, folder: Path, python: str | None, **variables: str) -> None:
        """Run one of the suite's commands, whose ``python`` is the interpreter at a path, or runs on Penstock if None."""
        environment = os.environ | {
            "DALI_BACKEND_REPO_ROOT": str(self.checkout),
            "DALI_EXTRA_PATH": str(folder / "dali_extra"),
            "PATH": f"{self._programs(python)}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.checkout / "python"),
        }
        done = subprocess.run(
            ["bash", "-ec", command],
            cwd=folder,
            env=environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
        # The scripts continue after a failure, so their output is searched for errors as well.
        if done.returncode or "Traceback (most recent call last)" in done.stdout:
            tail = "\n".join(done.stdout.splitlines()[-15:])
            raise _FailedError(f"`{command}` ended with {done.returncode}:\n{tail}")

    def _programs(self, python: str | None) -> Path:
        """Return a folder with the programs ``python`` and ``python3``, which run an interpreter, or Penstock instead of DALI if None."""
        folder = self.folder / ("penstock" if python is None else "dali")
        if not folder.is_dir():
            folder.mkdir()
            for name in ("python", "python3"):
                run = f'exec "{python}"' if python else f'exec "{sys.executable}" -m penstock.compat'
                program = folder / name
                program.write_text(f'#!/bin/sh\n{run} "$@"\n')
                program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return folder


class _FailedError(Exception):
    """A command of a suite has failed."""


def table(outcomes: Sequence[tuple[Suite, Outcome]]) -> str:
    """Return the outcomes as a table in Markdown."""
    rows = ["| suite | result | what was changed, or why it cannot run |", "| --- | --- | --- |"]
    for suite, outcome in outcomes:
        note = suite.missing or suite.change or ("nothing" if outcome.state == "passes" else "")
        rows.append(f"| {suite.name} | {outcome.state} | {note} |")
    return "\n".join(rows)


def main() -> None:
    """Run the suites that the command line names, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="a checkout of triton-inference-server/dali_backend")
    parser.add_argument("suites", nargs="*", help="parts of names; by default all")
    parser.add_argument("--device", default="cpu", choices=("cpu", "auto"))
    parser.add_argument("--python-env", help="the serving environment")
    parser.add_argument("--client-python", help="an interpreter with nvidia-dali and tritonclient, for clients")
    parser.add_argument("--keep", action="store_true", help="leave the folders behind")
    given = parser.parse_args()
    runner = Runner(given.checkout.resolve(), given.python_env, given.client_python, given.device, given.keep)
    outcomes = []
    try:
        for suite in SUITES:
            if not given.suites or any(part in suite.name for part in given.suites):
                outcome = runner.run(suite)
                outcomes.append((suite, outcome))
                print(f"{suite.name}: {outcome.state} ({outcome.seconds:.0f} s)\n{outcome.detail}".strip(), flush=True)
    finally:
        runner.close()
    print(f"\n{table(outcomes)}")
    sys.exit(any(outcome.state == "fails" for _, outcome in outcomes))


if __name__ == "__main__":
    main()
