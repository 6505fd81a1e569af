"""The processors that kernels are compiled for."""

from __future__ import annotations

import platform
from typing import NamedTuple

from penstock.kernels.cpu import libraries


class Target(NamedTuple):
    """A kind of processors.

    Attributes:
        name: of the folder of its library.
        cpu: LLVM's name of it.
        features: that it has and has not, as LLVM writes them.
    """

    name: str
    cpu: str
    features: str


# LLVM's names of what the levels have, as numba's kernels ask for them.
_FEATURES = {
    "x86-64-v2": "+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3",
    "x86-64-v3": "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave",
    "x86-64-v4": "+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl,+avx512vnni",
}


def this_machine() -> Target:
    """The processor of this machine, as numba compiles for it."""
    from llvmlite import binding
    from numba.core.codegen import get_host_cpu_features

    return Target(libraries.processor(), binding.get_host_cpu_name(), get_host_cpu_features())


def levels() -> list[Target]:
    """The levels that a wheel for this architecture has a library for.

    Raises:
        ValueError: there are none for it.
    """
    if platform.machine() != "x86_64":
        raise ValueError(
            f"kernels are compiled ahead of time for x86-64 and this machine itself, not for {platform.machine()}"
        )
    targets, features = [], ""
    for name, more in _FEATURES.items():
        features = f"{features},{more}".strip(",")
        targets.append(Target(name, name, features))
    return targets
