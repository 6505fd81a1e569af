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
        layouts: the layouts it accepts; empty: any. Data without a layout takes the first of matching rank.
        device: ``""``: the operator's; ``"cpu"``: always on the CPU; ``"any"``: on either device; ``"match_or_cpu"``: a
            GPU operator also takes a CPU input.
        doc: the description, with shape and dtype.
        path: whether it names files or folders.
        example: makes samples for sweeps and documentation.
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
# Terms spelled in mixed case.
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
        name: the name in files, ``__`` between modules: ``decoders__Image``, ``Resize``.
        devices: the devices that it runs on, of ``cpu``, ``gpu`` and ``mixed`` (input on the CPU, output on the GPU).
        inputs: the positional inputs in order; those past ``min_inputs`` are optional.
        min_inputs: default: all of ``inputs``.
        variadic: accepts further inputs like the last one.
        max_inputs: the largest number of inputs, if it is variadic.
        arguments: its specific arguments; those that every operator accepts are added.
        outputs: the number of outputs, or a function from the operator's arguments to it.
        output_per_input: whether it has an output for each input, in addition to those that ``outputs`` counts.
        host_outputs: the numbers of the outputs that are on the CPU even if the operator runs on a GPU, because their values
            are computed and needed there.
        sequences: a leading F dimension is unfolded, so that the operator sees frames.
        volumetric: accepts volumes (a D dimension).
        random: draws random numbers and takes a seed.
        stateful: whether its results depend on earlier runs, so that its state is part of checkpoints.
        no_prune: whether it has side effects, so that it stays even if no output depends on it.
        hidden: not part of the documentation.
        constant: without inputs, and with constant arguments, it returns the same tensor for every sample of every
            batch.
        fuses: the names of possible operators for each step of the chain that a fused operator replaces; empty if its
            class decides which operators can join (``FusedOperator.joins``).
        fused_by: the name of the pass that inserts it.
        merges: joins the parts of a batch that a conditional has split.
        batchwise: a sample's result depends on the other samples of its batch.
        moves_elements: it moves elements without computing with them, so that they may be of types that numpy lacks.
        aliases: other names that mean this operator.
        fn: the path in ``fn``; None: derived from the name.
        deprecated_since: the DALI version that deprecated it, or empty.
        deprecated_in_favor_of: the operator to use instead, if there is one.
        deprecation_note: further advice.
        needs: libraries without which it cannot run on the CPU.
        absent: why no pipeline can be built with it, and what to use instead; for DALI's operators that need more than
            CUDA.
        equivalents: equivalent functions in other libraries.
        examples: calls for sweeps and documentation, the simplest first; by default one with the required arguments.
        shown: calls that the documentation draws, large enough to see something; by default the first of the examples.
        exempt: the guarantees that it does not give, each with the reason.
        unswept: why its calls cannot be generated: sweeps skip it, and separate tests cover it.
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
        """Names of the arguments that name files or folders."""
        return tuple(name for name, argument in self.all_arguments.items() if argument.path)

    @property
    def touches_files(self) -> bool:
        """Whether its results depend on files that its arguments or inputs name."""
        return bool(self.path_arguments) or any(declared_input.path for declared_input in self.inputs)

    @cached_property
    def all_arguments(self) -> dict[str, Argument]:
        """Every accepted argument by name, in alphabetical order."""
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
        """Whether `fn` and `ops` also list it in a module `hidden`: deprecated or undocumented operators."""
        return self.hidden or bool(self.deprecated_since)

    @cached_property
    def module(self) -> tuple[str, ...]:
        return tuple(self.name.split("__")[:-1]) if not self.name.startswith("_") else self._private_module()

    def _private_module(self) -> tuple[str, ...]:
        head, _, _ = self.name[1:].rpartition("__")
        return ("_" + head,) if head else ()

    @cached_property
    def class_name(self) -> str:
        """The name of the class in ``ops``."""
        if self.name.startswith("_"):
            head, _, tail = self.name[1:].rpartition("__")
            return tail if head else self.name
        return re.sub(r"^.*?__(?=[A-Z]|_[A-Z])", "", self.name) if "__" in self.name else self.name

    @cached_property
    def class_path(self) -> str:
        """The dotted path in ``ops``."""
        return ".".join((*self.module, self.class_name))

    @cached_property
    def fn_path(self) -> str:
        """The dotted path in ``fn``."""
        return self.fn or ".".join((*self.module, snake_case(self.class_name)))

    def unknown_argument(self, name: str) -> KeyError:
        """Return the error about an argument that the operator does not have."""
        near = did_you_mean(name, self.all_arguments)
        return KeyError(f'Argument "{name}" is not defined for operator "{self.name}".{near}')

    @property
    def min_input_count(self) -> int:
        return len(self.inputs) if self.min_inputs is None else self.min_inputs

    @property
    def max_input_count(self) -> int:
        return self.max_inputs if self.variadic else len(self.inputs)

    def fitting_layout(self, index: int, layout: str, ndim: int) -> str:
        """Return the layout of an input; for data without one (``""``), the first declared layout of its rank.

        Raises:
            ValueError: the operator does not accept the layout or the rank.
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
        """Return the device of an output, ``cpu`` or ``gpu``, of the operator on a device."""
        return "cpu" if device == "cpu" or index in self.host_outputs else "gpu"
