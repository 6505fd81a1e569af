"""``python -m penstock.kernels.building`` compiles kernels ahead of time.

Without options it compiles the listed kernels for this machine into the checkout's `build/kernels`, but only those that have changed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from penstock.kernels import recording
from penstock.kernels.building import build_cuda_here, build_here, build_levels, default_processes


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status: 1 if a listed kernel cannot be compiled."""
    parser = argparse.ArgumentParser(prog="python -m penstock.kernels.building", description=__doc__)
    parser.add_argument(
        "--levels", metavar="ARCHITECTURE", help="compile for all levels of x86_64 or aarch64 processors, for wheels"
    )
    parser.add_argument(
        "--first", action="store_true", help="compile only what the demonstration and usual pipelines need"
    )
    parser.add_argument(
        "--cuda", action="store_true", help="compile the CUDA kernels for all GPUs, for wheels (needs NVRTC)"
    )
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE", help="add recorded signatures to the list")
    parser.add_argument(
        "--processes",
        type=int,
        default=default_processes(),
        help="that compile at once (default: one for each core, if there is memory for all; here %(default)s)",
    )
    options = parser.parse_args(arguments)
    if options.merge:
        recorded = [signature for path in options.merge for signature in recording.read(path)]
        # Kernels that are defined in tests are left out.
        ours = [signature for signature in recorded if signature.name.startswith("penstock.")]
        cuda = [kernel for path in (recording.LIST, *options.merge) for kernel in recording.read_cuda(path)]
        recording.write([*recording.read(), *ours, *cuda])
        return 0
    if options.cuda:
        print(f"CUDA kernels: {build_cuda_here(options.processes)} compiled")
        return 0
    built = (
        build_levels(options.levels, options.processes)
        if options.levels
        else build_here(options.processes, options.first)
    )
    for failure in built.failures:
        print(failure, file=sys.stderr)
    print(built)
    return 1 if built.failures else 0


if __name__ == "__main__":
    sys.exit(main())
