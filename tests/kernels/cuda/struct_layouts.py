"""Measures the layouts of all kernels' structs with a kernel, as its compiler sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kernel_sources
import numpy as np

from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Struct, declarations, layout_of


def check_layouts(xp: Any, folder: Path) -> None:
    """Assert that structs have the same sizes and offsets in NumPy and on the GPU; ``xp``: the module for GPU arrays."""
    spaces = {f"of_{name}": source.structs for name, source in kernel_sources.all_sources().items()}
    folder.joinpath("layouts.cu").write_text(_measuring(spaces))
    expected = {name: number for space, structs in spaces.items() for name, number in _expected(space, structs).items()}
    found = xp.zeros(len(expected), np.int64)
    KernelSource(str(folder / "layouts.py")).kernel("measure")((1,), (1,), (found,))
    assert dict(zip(expected, found.get().tolist())) == expected


def _expected(space: str, structs: tuple[Struct, ...]) -> dict[str, int]:
    """Return the size of each struct, and the offset of each field, in NumPy."""
    numbers = {}
    for layout in map(layout_of, structs):
        numbers[f"{space}::{layout.name}"] = layout.dtype.itemsize
        for name, (_, offset, *_) in (layout.dtype.fields or {}).items():
            numbers[f"{space}::{layout.name}.{name}"] = offset
    return numbers


def _measuring(spaces: dict[str, tuple[Struct, ...]]) -> str:
    """Return the source of a kernel that writes the same numbers as the GPU's compiler computes them."""
    text = "".join(f"namespace {space} {{\n{declarations(structs)}}}\n" for space, structs in spaces.items())
    lines = []
    for space, structs in spaces.items():
        for layout in map(layout_of, structs):
            whole = f"{space}::{layout.name}"
            lines.append(f"*numbers++ = sizeof({whole});")
            for name in layout.dtype.names or ():
                field = f"&reinterpret_cast<const {whole} *>(begin)->{name}"
                lines.append(f"*numbers++ = reinterpret_cast<const char *>({field}) - begin;")
    body = "\n    ".join(lines)
    return (
        f"{text}__global__ void measure(int64 *numbers) {{\n"
        f"    const char *begin = reinterpret_cast<const char *>(numbers);\n    {body}\n}}\n"
    )
