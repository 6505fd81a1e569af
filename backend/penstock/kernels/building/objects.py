"""Compile kernels to object files for a linker: numba translates the kernels, and LLVM compiles them for any processor.

A process that does this cannot call kernels: from then on, its compiler makes code only for libraries.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import llvmlite.binding as llvm
from llvmlite import ir
from llvmlite.ir import Value
from numba.core import config
from numba.core.codegen import AOTCPUCodegen, CodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.funcdesc import FunctionDescriptor
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.core.runtime.nrtdynmod import compile_nrt_functions

from penstock.kernels.building.targets import Target
from penstock.kernels.cpu.callables import Callback, Compiled
from penstock.kernels.cpu.compiling import compile_for_libraries, described_type, numba_types
from penstock.kernels.cpu.deferred import declare_all
from penstock.kernels.cpu.signatures import text_of
from penstock.kernels.recording import Kind, Signature

_dynfunc = importlib.import_module("numba._dynfunc")  # compiled, without annotations
_INT32, _WORD = ir.IntType(32), ir.IntType(64)
_ADDRESS = ir.IntType(8).as_pointer()
# The functions of numba that compiled code may call, because `backend/kernels/memory.cc` defines them for libraries.
_OURS = {
    *("NRT_Allocate", "NRT_Free", "NRT_MemInfo_alloc", "NRT_MemInfo_alloc_aligned", "NRT_MemInfo_alloc_safe_aligned"),
    *("NRT_MemInfo_call_dtor", "NRT_MemInfo_new_varsize_dtor", "NRT_MemInfo_varsize_realloc"),
    *("numba_attempt_nocopy_reshape", "numba_nextafter", "numba_nextafterf"),
}


class CompileResult(Protocol):
    """The attributes of numba's result that are needed to declare the compiled function."""

    @property
    def fndesc(self) -> Any: ...


class CompiledObject(NamedTuple):
    """A kernel as an object file for a linker.

    Attributes:
        data: the object file, in the system's format.
        results: the type of the kernel's results, written as in :mod:`penstock.kernels.cpu.signatures`.
    """

    data: bytes
    results: str


class _Codegen(AOTCPUCodegen):
    """numba's code generator, for a target instead of for this machine."""

    def __init__(self, target: Target) -> None:
        self._target = target
        super().__init__("penstock.kernels", target.cpu)

    def _init(self, llvm_module: llvm.ModuleRef) -> None:
        # numba's own method would also create an engine to run the code, which is impossible for another architecture.
        level: Any = vars(config)["OPT"]
        options: dict[str, Any] = {"opt": level}
        self._tm_features = self._target.features
        self._customize_tm_options(options)
        self._tm = llvm.Target.from_triple(self._target.triple).create_target_machine(**options)
        self._target_data = self._tm.target_data
        self._data_layout = str(self._target_data)
        # These are the options that numba sets for the optimization level.
        self._loopvect, self._opt_level = level.is_opt_max, 3 if level.is_opt_max else 0

    def _create_empty_module(self, name: str) -> ir.Module:
        module = super()._create_empty_module(name)
        module.triple = self._target.triple
        return module

    def _get_host_cpu_name(self) -> str:
        # numba calls this method when it generates code.
        return self._target.cpu


@functools.cache
def _codegen(target: Target) -> _Codegen:
    """Make numba generate code for a target from now on, and return the code generator. A process can do this for one target only."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    compile_for_libraries()
    declare_all()
    context = cpu_target.target_context
    context.refresh()
    made = _Codegen(target)
    context._internal_codegen = made  # private: numba's code generator
    context.get_executable = _executable
    # numba has compiled its reference-counting functions for this machine, not for the target.
    with global_compiler_lock:
        rtsys._library = compile_nrt_functions(context)  # private: the library that numba links into all generated code
    return made


def _executable(library: CodeLibrary, description: FunctionDescriptor, environment: object) -> object:
    """Return a Python function without code. It is never called, but numba uses it to identify the compiled function."""
    library.finalize()
    return _dynfunc.make_function(
        description.lookup_module(), description.qualname.rpartition(".")[2], "", 0, environment, (library,)
    )


def find_kernel(name: str) -> Compiled:
    """Return the kernel with this name.

    Raises:
        LookupError: there is no such kernel.
    """
    module, _, attribute = name.partition(":")
    try:
        found = functools.reduce(getattr, attribute.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise LookupError(f"there is no kernel {name}") from error
    if not isinstance(found, Compiled):
        raise LookupError(f"{name} is not a kernel")
    return found


def compile_object(signature: Signature, symbol: str, target: Target) -> CompiledObject:
    """Compile a kernel for a target.

    Args:
        signature: the kernel, and the types to compile it for.
        symbol: the name of the function in the object file, which exports no other one.
        target: the processor; must be the same in all calls in a process.

    Raises:
        LookupError: there is no such kernel.
        numba.core.errors.NumbaError: the kernel cannot be compiled for these types.
        ValueError: the kernel's results cannot be returned to Python, or it calls functions of numba that libraries lack.
    """
    codegen, kernel = _codegen(target), find_kernel(signature.name)
    types = numba_types(signature.types.partition(" -> ")[0])
    dispatcher = kernel.dispatcher
    dispatcher.compile(types)
    compiled = dispatcher.overloads[types]
    module = llvm.parse_bitcode(compiled.library.emit_bitcode())
    own = compiled.fndesc.llvm_func_name
    results = ""
    if signature.kind is Kind.ADDRESS:
        module.get_function(own).name = symbol
    else:
        if signature.kind is Kind.CALL:
            results = text_of(described_type(compiled.signature.return_type))
            entry = _entry_for_words(compiled, symbol)
        else:
            assert isinstance(kernel, Callback)
            entry = _entry_for_c(compiled, symbol)
        module.link_in(llvm.parse_assembly(entry))
    for defined in (*module.functions, *module.global_variables):
        if not defined.is_declaration and defined.name != symbol:
            defined.linkage = "internal"
    _remove_what_is_not_used(module, codegen)
    called = {function.name for function in module.functions if function.is_declaration}
    lacking = {name for name in called if name.startswith(("NRT_", "numba_"))} - _OURS
    if lacking:
        raise ValueError(
            f"it calls numba's {', '.join(sorted(lacking))}, which `backend/kernels/memory.cc` does not define"
        )
    return CompiledObject(codegen._tm.emit_object(module), results)


def _remove_what_is_not_used(module: llvm.ModuleRef, codegen: _Codegen) -> None:
    tuning = llvm.create_pipeline_tuning_options(speed_level=0)
    manager = llvm.create_new_module_pass_manager()
    manager.add_global_dead_code_eliminate_pass()
    manager.run(module, llvm.create_pass_builder(codegen._tm, tuning))


def _declared(compiled: CompileResult) -> tuple[ir.Module, ir.Function]:
    """Return an LLVM module that declares a compiled function, and the declaration."""
    context, description = cpu_target.target_context, compiled.fndesc
    module = context.codegen()._create_empty_module("entry")
    kind = context.call_conv.get_function_type(description.restype, description.argtypes)
    return module, ir.Function(module, kind, description.llvm_func_name)


def _entry_for_words(compiled: CompileResult, symbol: str) -> str:
    """Return LLVM code of a function that calls a compiled function and returns its status. Its parameters are the addresses of the
    arguments as 64-bit words, of memory for the results as words, and of memory for an error.
    """
    module, function = _declared(compiled)
    given = ir.FunctionType(_INT32, [_WORD.as_pointer(), _WORD.as_pointer(), _ADDRESS.as_pointer()])
    entry = ir.Function(module, given, symbol)
    builder = ir.IRBuilder(entry.append_basic_block())
    words, results, error = entry.args

    def place(start: Value, number: int, kind: ir.Type) -> Value:
        return builder.bitcast(builder.gep(start, [ir.Constant(_WORD, number)]), kind.as_pointer())

    result, failure, *kinds = (argument.type for argument in function.args)
    returned = builder.alloca(result.pointee)
    arguments = [builder.load(place(words, number, kind)) for number, kind in enumerate(kinds)]
    status = builder.call(function, [returned, builder.bitcast(error, failure), *arguments])
    for number, value in enumerate(_values(builder, builder.load(returned))):
        builder.store(value, place(results, number, value.type))
    builder.ret(status)
    return str(module)


def _values(builder: ir.IRBuilder, value: Value) -> Iterator[Value]:
    """Yield the numbers and addresses of which a value consists, in order."""
    if isinstance(value.type, (ir.LiteralStructType, ir.ArrayType)):
        for index in range(
            len(value.type.elements) if isinstance(value.type, ir.LiteralStructType) else value.type.count
        ):
            yield from _values(builder, builder.extract_value(value, index))
    else:
        yield value


def _entry_for_c(compiled: CompileResult, symbol: str) -> str:
    """Return LLVM code of a C function that calls a compiled function and returns its result."""
    module, function = _declared(compiled)
    result, failure, *kinds = (argument.type for argument in function.args)
    entry = ir.Function(module, ir.FunctionType(result.pointee, kinds), symbol)
    builder = ir.IRBuilder(entry.append_basic_block())
    returned, error = builder.alloca(result.pointee), builder.alloca(failure.pointee)
    builder.call(function, [returned, error, *entry.args])
    builder.ret(builder.load(returned))
    return str(module)
