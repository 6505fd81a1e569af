"""The declaration of an operator, from which `fn`, `ops`, stubs, docs and serialization are derived."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from penstock.errors import did_you_mean
from penstock.schema.arguments import Argument, common_arguments
from penstock.schema.equivalents import Equivalent
from penstock.schema.example_data import Example, MakeSamples, Promise, pictures
from penstock.schema.libraries import Library


@dataclass(frozen=True)
class Input:
    """One positional input.

    Args:
        name: the name in the documentation.
        layouts: the accepted layouts; empty: any. Data without a layout get the first one with the same number of dimensions.
        device: where the input must be: ``""``: on the operator's device; ``"cpu"``: always on the CPU; ``"any"``: on either device;
            ``"match_or_cpu"``: on the operator's device, or on the CPU.
        doc: the description, with shape and dtype.
        path: whether the input names files or folders.
        example: function that makes samples for sweeps and documentation.
    """

    name: str
    layouts: tuple[str, ...] = ()
    device: str = ""
    doc: str = ""
    path: bool = False
    example: MakeSamples = pictures


@dataclass(frozen=True)
class Alias:
    """Another name of an operator.

    Args:
        name: the schema's name, e.g. ``CoinFlip``.
        deprecated_since: the DALI version that deprecated the name, or empty.
        fn: the path in ``fn``; None: derived from the name.
    """

    name: str
    deprecated_since: str = ""
    fn: str | None = None
    arguments: tuple[Argument, ...] = ()


_WORD_STARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[a-z][0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Terms in mixed case that become one word.
_ONE_WORD = {"b_box": "bbox", "tf_record": "tfrecord", "mx_net": "mxnet", "web_dataset": "webdataset"}


def snake_case(name: str) -> str:
    """Convert a class name to a function name: ``BbFlip`` -> ``bb_flip``; ``MFCC`` -> ``mfcc``; ``Caffe2Reader`` ->
    ``caffe2_reader``.
    """
    text = _WORD_STARTS.sub("_", name).lower()
    for parts, word in _ONE_WORD.items():
        text = text.replace(parts, word)
    return text


NO_BFLOAT16 = (
    "Operators do not compute with bfloat16: convert last, with `fn.cast(..., dtype=types.BFLOAT16)`, after which data can only be "
    "moved (reshaped, transposed, joined, copied)"
)


@dataclass(frozen=True)
class Schema:
    """The declaration of an operator.

    Args:
        name: the name in files, with ``__`` after each module: ``decoders__Image``, ``Resize``.
        devices: the devices on which the operator runs: ``cpu``, ``gpu`` or ``mixed`` (input on the CPU, output on the GPU).
        inputs: the positional inputs in order; those after the first ``min_inputs`` are optional.
        min_inputs: the smallest number of inputs; by default, the number of ``inputs``.
        variadic: whether further inputs like the last one are accepted.
        max_inputs: the largest number of inputs of a variadic operator.
        arguments: the operator's specific arguments; the arguments that every operator accepts are added.
        outputs: the number of outputs, or a function that returns it for the operator's arguments.
        output_per_input: whether there is an output for each input, in addition to those that ``outputs`` counts.
        host_outputs: the numbers of the outputs that are on the CPU even if the operator runs on a GPU, because their values are computed
            and needed there.
        sequences: whether a leading F dimension is unfolded, so that the operator sees frames.
        volumetric: whether volumes (with a D dimension) are accepted.
        random: whether the operator draws random numbers and accepts a seed.
        stateful: whether results depend on earlier runs, so that the operator's state is part of checkpoints.
        no_prune: whether the operator has side effects, so that it stays even if no output depends on it.
        hidden: whether the documentation omits the operator.
        constant: whether the operator, without inputs and with constant arguments, returns the same tensor for every sample of every batch.
        fuses: for a fused operator, the names of possible operators for each step of the chain that it replaces; empty if the class decides
            which operators can join (``FusedOperator.joins``).
        fused_by: the name of the pass that inserts a fused operator.
        merges: whether the operator joins the parts of a batch that a conditional has split.
        batchwise: whether a sample's result depends on the other samples of the batch.
        moves_elements: whether elements are moved without computing with them, so that they may have types that NumPy lacks.
        aliases: other names of this operator.
        fn: the path in ``fn``; None: derived from the name.
        deprecated_since: the DALI version that deprecated the operator, or empty.
        deprecated_in_favor_of: the operator to use instead, if there is one.
        deprecation_note: further advice.
        needs: the libraries without which the operator cannot run on the CPU.
        absent: why no pipeline can be built with the operator, and what to use instead; for DALI's operators that need more than CUDA.
        equivalents: equivalent functions in other libraries.
        examples: calls for sweeps and documentation, the simplest first; by default, one with the required arguments.
        shown: calls that the documentation illustrates, with data large enough to see something; by default, the first of ``examples``.
        exempt: the guarantees that the operator does not give, each with the reason.
        unswept: why calls of the operator cannot be generated; if set, sweeps skip it, and separate tests must cover it.
    """

    name: str
    devices: tuple[str, ...] = ("cpu", "gpu")
    inputs: tuple[Input, ...] = ()
    min_inputs: int | None = None
    variadic: bool = False
    max_inputs: int = 999
    arguments: tuple[Argument, ...] = ()
    outputs: int | Callable[[dict[str, Any]], int] = 1
    output_per_input: bool = False
    host_outputs: tuple[int, ...] = ()
    sequences: bool = False
    volumetric: bool = False
    random: bool = False
    stateful: bool = False
    no_prune: bool = False
    hidden: bool = False
    constant: bool = False
    fuses: tuple[tuple[str, ...], ...] | None = None
    fused_by: str = "fuse"
    merges: bool = False
    batchwise: bool = False
    moves_elements: bool = False
    aliases: tuple[Alias, ...] = ()
    fn: str | None = None
    deprecated_since: str = ""
    deprecated_in_favor_of: str = ""
    deprecation_note: str = ""
    needs: tuple[Library, ...] = ()
    absent: str = ""
    equivalents: tuple[Equivalent, ...] = ()
    examples: tuple[Example, ...] = ()
    shown: tuple[Example, ...] = ()
    exempt: Mapping[Promise, str] = field(default_factory=dict)
    unswept: str = ""

    @cached_property
    def path_arguments(self) -> tuple[str, ...]:
        """The names of the arguments that name files or folders."""
        return tuple(name for name, argument in self.all_arguments.items() if argument.path)

    @property
    def touches_files(self) -> bool:
        """Whether results depend on files that arguments or inputs name."""
        return bool(self.path_arguments) or any(declared_input.path for declared_input in self.inputs)

    @cached_property
    def all_arguments(self) -> dict[str, Argument]:
        """All accepted arguments by name, in alphabetical order."""
        arguments = {a.name: a for a in common_arguments(self.random)}
        if self.random:
            arguments["_random_state"] = Argument(
                "_random_state",
                "uint32",
                doc="State of the random stream, given by the graph.",
                tensor=True,
                hidden=True,
            )
        arguments |= {a.name: a for a in self.arguments}
        return dict(sorted(arguments.items()))

    @property
    def is_unlisted(self) -> bool:
        """Whether `fn` and `ops` also list the operator in a module `hidden`; this applies to deprecated and undocumented operators."""
        return self.hidden or bool(self.deprecated_since)

    @cached_property
    def module(self) -> tuple[str, ...]:
        return tuple(self.name.split("__")[:-1]) if not self.name.startswith("_") else self._private_module()

    def _private_module(self) -> tuple[str, ...]:
        head, _, _ = self.name[1:].rpartition("__")
        return ("_" + head,) if head else ()

    @cached_property
    def class_name(self) -> str:
        """The name of the operator's class in ``ops``."""
        if self.name.startswith("_"):
            head, _, tail = self.name[1:].rpartition("__")
            return tail if head else self.name
        return re.sub(r"^.*?__(?=[A-Z]|_[A-Z])", "", self.name) if "__" in self.name else self.name

    @cached_property
    def class_path(self) -> str:
        """The dotted path of the operator's class in ``ops``."""
        return ".".join((*self.module, self.class_name))

    @cached_property
    def fn_path(self) -> str:
        """The dotted path of the operator's function in ``fn``."""
        return self.fn or ".".join((*self.module, snake_case(self.class_name)))

    def unknown_argument(self, name: str) -> KeyError:
        """Return the error for an argument that the operator does not have."""
        near = did_you_mean(name, self.all_arguments)
        return KeyError(f'Argument "{name}" is not defined for operator "{self.name}".{near}')

    @property
    def min_input_count(self) -> int:
        return len(self.inputs) if self.min_inputs is None else self.min_inputs

    @property
    def max_input_count(self) -> int:
        return self.max_inputs if self.variadic else len(self.inputs)

    def fitting_layout(self, index: int, layout: str, ndim: int) -> str:
        """Return the layout of an input; for data without a layout (``""``), the first declared one with ``ndim`` dimensions.

        Raises:
            ValueError: the operator does not accept the layout or the number of dimensions.
        """
        declared = self.input(index).layouts
        if not declared or layout in declared:
            return layout
        fitting = None if layout else next((candidate for candidate in declared if len(candidate) == ndim), None)
        if fitting is None:
            what = f'The layout "{layout}"' if layout else f"The number of dimensions {ndim}"
            raise ValueError(
                f"{what} does not match any of the allowed layouts for input {index}. Valid layouts are: {' '.join(declared)}"
            )
        return fitting

    def input(self, index: int) -> Input:
        return self.inputs[min(index, len(self.inputs) - 1)]

    def count_outputs(self, arguments: dict[str, object], inputs: int) -> int:
        if callable(self.outputs):
            return self.outputs(arguments) + (inputs if self.output_per_input else 0)
        return inputs if self.output_per_input else self.outputs

    def output_device(self, device: str, index: int) -> str:
        """Return the device of an output, ``cpu`` or ``gpu``, if the operator runs on ``device``."""
        return "cpu" if device == "cpu" or index in self.host_outputs else "gpu"
