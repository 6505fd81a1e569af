"""GPU memory of a decoding pipeline, in Penstock and in DALI, each in a separate process.

    python tests/benchmarks/gpu_memory.py [--batch 128] [--json FILE]

A figure is the memory that the device reports as in use while the process is idle after its runs. It includes the CUDA context,
the libraries' code and memory pools.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from turns import headline, keep

CHILD = """
import sys, warnings
warnings.simplefilter("ignore")
from pipelines import PHOTOGRAPHS, a, photographs
from pathlib import Path
from side_by_side import MODULES, prepared
name, count, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
run = prepared(MODULES[name], a(True), [photographs(folder, count)], 8, True)
for _ in range(30):
    run()
print("ready", flush=True)
sys.stdin.readline()
"""


def taken() -> int:
    """Return the bytes allocated on the device, by all processes."""
    import cupy

    free, total = cupy.cuda.runtime.memGetInfo()
    return int(total - free)


def held(name: str, batch: int, folder: Path) -> float:
    """Return the GPU memory that a process holds after running pipeline A, in MiB."""
    before = taken()
    command = [sys.executable, "-c", CHILD, name, str(batch), str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        if child.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{name} could not run the pipeline")
        during = taken()
        child.stdin.write("\n")
        child.stdin.close()
    return (during - before) / 2**20


def main() -> None:
    """Measure both and print the figures."""
    from pipelines import PHOTOGRAPHS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--images", type=Path, default=PHOTOGRAPHS, help="a folder of JPEG files")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    console = Console(width=120)
    console.print(headline(), highlight=False)
    mebibytes = {name: held(name, options.batch, options.images.resolve()) for name in ("DALI", "Penstock")}
    for name, figure in mebibytes.items():
        console.print(f"{name:10} {figure:8.0f} MiB for pipeline A at batch {options.batch}")
    console.print(f"Penstock / DALI {mebibytes['Penstock'] / mebibytes['DALI']:.2f}")
    keep("gpu memory", [{"batch": options.batch, "MiB": mebibytes}], options.json)


if __name__ == "__main__":
    main()
