"""Serves models with the wheel for aarch64 under emulation, and compares the answers with this machine's.

    make test-aarch64-serving

Triton starts further programs. QEMU emulates these only if the kernel hands all programs for aarch64 to QEMU. Therefore, a Debian
system is unpacked into a folder (debootstrap), and the servers run in it (chroot), which requires root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import tritonclient.http

from penstock.serving.server import LocalServer

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))

from aarch64 import BUILD, PLATFORMS, PYTHON, QEMU  # noqa: E402  (lies beside this file)

SYSTEM = BUILD / "system"
MODELS = ("digits_preprocess", "imagenet_preprocess")
PHOTOGRAPHS = sorted((ROOT / "client_examples" / "photographs").glob("*.jpg"))
DEBIAN = ("python3-venv", f"libpython{PYTHON}", "libgomp1")
WHEELS = (
    *("numpy", "nvidia-pytriton==0.7.0", "pillow", "simplejpeg", "nvidia-nvimgcodec-cu12", "opencv-python-headless"),
    *("click", "rich", "markdown-it-py", "mdurl", "pygments", "protobuf", "cloudpickle", "typing_extensions"),
)
HANDLERS = Path("/proc/sys/fs/binfmt_misc")
# An entry for the kernel's binfmt_misc: the first 20 bytes of programs for aarch64, and a mask of the bits that must match.
HANDLER = (
    rb":qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    rb":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:%s:OCF"
)
PORTS = (18100, 18101, 18102)
READY_TIMEOUT_SECONDS = 300


def run_foreign_programs() -> None:
    """Register QEMU with the kernel as the interpreter of programs for aarch64."""
    if not (HANDLERS / "register").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "none", str(HANDLERS)], check=True)
    if not (HANDLERS / "qemu-aarch64").exists():
        (HANDLERS / "register").write_bytes(HANDLER % str(shutil.which(QEMU)).encode())


def make_system() -> None:
    """Unpack a Debian system for aarch64, and install the wheel in `dist` and its dependencies for serving into it."""
    if not (SYSTEM / "complete").exists():
        shutil.rmtree(SYSTEM, ignore_errors=True)
        packages = f"--include={','.join(DEBIAN)}"
        source = ["bookworm", str(SYSTEM), "http://deb.debian.org/debian"]
        subprocess.run(["debootstrap", "--arch=arm64", "--variant=minbase", packages, *source], check=True)
        (SYSTEM / "complete").touch()
    shutil.rmtree(SYSTEM / "root" / "wheels", ignore_errors=True)
    wheels = SYSTEM / "root" / "wheels"
    wheels.mkdir()
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(wheels)]
    platforms = [option for platform in PLATFORMS for option in ("--platform", platform)]
    subprocess.run([*pip, "--python-version", PYTHON, *platforms, *WHEELS], check=True)
    (wheel,) = (ROOT / "dist").glob("penstock_triton-*_aarch64.whl")
    shutil.copy(wheel, wheels)
    for model in MODELS:
        shutil.copytree(ROOT / "model_repository" / model, SYSTEM / "root" / "models" / model, dirs_exist_ok=True)
    install = "venv/bin/python -m pip install -q --no-index --no-deps --force-reinstall wheels/*.whl"
    subprocess.run(inside(f"python3 -m venv venv && {install}"), check=True)


def inside(command: str) -> list[str]:
    """Return a command line that runs a shell command in the emulated system."""
    mounted = f'mount -t proc proc "{SYSTEM}/proc" && mount --bind /dev "{SYSTEM}/dev"'
    # The mounts exist only for this command.
    return ["unshare", "--mount", "sh", "-c", f'{mounted} && exec chroot "{SYSTEM}" sh -c "cd /root && $0"', command]


@contextmanager
def emulated_server() -> Iterator[str]:
    """Run a server in the emulated system, and yield its address."""
    flags = " ".join(f"--{kind}-port {port}" for kind, port in zip(("http", "grpc", "metrics"), PORTS, strict=True))
    command = inside(f"exec venv/bin/penstock serve models {flags} --timeout {READY_TIMEOUT_SECONDS}")
    with tempfile.TemporaryFile("w+") as told:
        server = subprocess.Popen(command, stdout=told, stderr=subprocess.STDOUT)
        try:
            address = f"127.0.0.1:{PORTS[0]}"
            while not all(is_ready(address, model) for model in MODELS):
                try:
                    server.wait(1)
                except subprocess.TimeoutExpired:
                    continue
                told.seek(0)
                sys.exit(f"the server ended:\n{told.read()}")
            yield address
        finally:
            server.terminate()
            server.wait(60)


def is_ready(address: str, model: str) -> bool:
    """Return whether a server at an address answers and reports that a model is ready."""
    try:
        with tritonclient.http.InferenceServerClient(address) as client:
            ready: bool = client.is_model_ready(model)
            return ready
    except OSError:
        return False


def answers(address: str, images: Sequence[bytes]) -> list[np.ndarray]:
    """Return a server's outputs for each model and each image."""
    with tritonclient.http.InferenceServerClient(address, network_timeout=120) as client:
        found = []
        for model in MODELS:
            for image in images:
                tensor = tritonclient.http.InferInput("encoded_image", [1, 1], "BYTES")
                tensor.set_data_from_numpy(np.array([[image]], np.object_))
                found.append(client.infer(model, [tensor]).as_numpy("image"))
        return found


def main() -> None:
    """Compare the answers; exit with status 1 if any differ."""
    needed = (QEMU, "debootstrap", "unshare")
    if os.geteuid() or not all(map(shutil.which, needed)):
        sys.exit(f"this takes root, and {', '.join(needed)}: apt install qemu-user-static debootstrap")
    run_foreign_programs()
    make_system()
    images = [path.read_bytes() for path in PHOTOGRAPHS]
    with LocalServer(
        [ROOT / "model_repository"], flags=["--model-control-mode=explicit", *(f"--load-model={m}" for m in MODELS)]
    ) as server:
        expected = answers(server.http_url, images)
    with emulated_server() as address:
        found = answers(address, images)
    equal = sum(np.array_equal(*pair) for pair in zip(found, expected, strict=True))
    print(f"{equal} of {len(expected)} answers are equal to the bit")
    sys.exit(equal != len(expected))


if __name__ == "__main__":
    main()
