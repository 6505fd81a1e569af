"""Link object files into a library."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import llvmlite.binding as llvm
from llvmlite import ir

from penstock.core.compiling import CompilerError, NativeLibrary
from penstock.kernels.building.targets import Target
from penstock.kernels.cpu import libraries

MEMORY = NativeLibrary("libpenstock_kernels_memory.so", "kernels", ("-std=c++20",))
"""The memory functions that kernels call; linked into each library of kernels."""


def link(
    objects: Sequence[Path], index: Mapping[str, object], target: Target, library: Path, compiler: Sequence[str]
) -> None:
    """Link object files, and write the library atomically, so that no process loads an incomplete one.

    Args:
        objects: the kernels' object files.
        index: the index that `libraries.py` reads.
        target: the processor.
        library: the path of the library.
        compiler: the command of a C++ compiler for the target, with which to link.

    Raises:
        CompilerError: there is no compiler, or it fails.
        OSError: the library cannot be written.
    """
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as name:
        folder = Path(name)
        described = folder / "index.o"
        described.write_bytes(_index_object(json.dumps(index, separators=(",", ":")), target))
        made = folder / library.name
        # The linker reads the paths from a file, because there may be too many for a command line.
        response = folder / "objects"
        response.write_text("".join(f"{path}\n" for path in [*objects, described]))
        memory = [str(path) for path in MEMORY.sources() if path.suffix == ".cc"]
        flags = ("-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-std=c++20", "-Wl,-z,nodelete,-z,defs", "-Wl,-s")
        command = [*compiler, *flags, "-o", str(made), *memory, f"@{response}", "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompilerError(f"`{' '.join(command)}` failed:\n{done.stderr.strip()[-2000:]}")
        with made.open("ab") as file:
            file.write(libraries.MARK % (libraries.FORMAT, file.tell()))
            file.flush()
            os.fsync(file.fileno())
        made.replace(library)


def _index_object(text: str, target: Target) -> bytes:
    """Return an object file that contains the index of a library."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    data = bytearray(text.encode() + b"\0")
    module = ir.Module("index")
    kind = ir.ArrayType(ir.IntType(8), len(data))
    held = ir.GlobalVariable(module, kind, libraries.INDEX)
    held.global_constant, held.initializer = True, ir.Constant(kind, data)
    machine = llvm.Target.from_triple(target.triple).create_target_machine(reloc="pic", codemodel="default")
    parsed = llvm.parse_assembly(str(module))
    made: bytes = machine.emit_object(parsed)
    return made
