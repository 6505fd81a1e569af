"""The processors for which kernels are compiled."""

from __future__ import annotations

from typing import NamedTuple

from penstock.kernels.cpu import libraries


class Target(NamedTuple):
    """A type of processor.

    Attributes:
        name: the name of the folder of the library for this type.
        triple: the architecture and the system, as LLVM writes them.
        cpu: LLVM's name of the processor.
        features: the features that the processor has or lacks, as LLVM writes them.
    """

    name: str
    triple: str
    cpu: str
    features: str

    @property
    def architecture(self) -> str:
        """The architecture as the system names it: ``x86_64``, ``aarch64``."""
        return self.triple.partition("-")[0]


# The features that each x86-64 level adds to the level below, as LLVM writes them.
_X86_FEATURES = {
    "x86-64-v2": "+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3",
    "x86-64-v3": "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave",
    "x86-64-v4": "+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl,+avx512vnni",
}
_TRIPLES = {architecture: f"{architecture}-unknown-linux-gnu" for architecture in ("x86_64", "aarch64")}


def this_machine() -> Target:
    """Return the processor of this machine, with the features for which numba compiles."""
    from llvmlite import binding
    from numba.core.codegen import get_host_cpu_features

    return Target(
        libraries.processor(), binding.get_process_triple(), binding.get_host_cpu_name(), get_host_cpu_features()
    )


def levels(architecture: str) -> list[Target]:
    """Return the processor levels for which a wheel has libraries.

    Args:
        architecture: the wheel's architecture, ``x86_64`` or ``aarch64``; need not be this machine's.

    Raises:
        ValueError: the architecture has no levels.
    """
    if architecture not in _TRIPLES:
        raise ValueError(f"kernels are compiled ahead of time for {' and '.join(_TRIPLES)}, not for {architecture}")
    triple = _TRIPLES[architecture]
    if architecture == "aarch64":
        return [Target(architecture, triple, "generic", "+neon,+fp-armv8")]
    targets, features = [], ""
    for name, more in _X86_FEATURES.items():
        features = f"{features},{more}".strip(",")
        targets.append(Target(name, triple, name, features))
    return targets
