"""The nodes of a pipeline's graph: operators, and the data that flow between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

from penstock.data_types import DALIDataType
from penstock.errors import Frame, as_imported
from penstock.graph.origin import CallSite, frames
from penstock.graph.syntax import Expression, syntax
from penstock.schema import Schema


class SupportsArray(Protocol):
    """Anything that NumPy can convert to an array: arrays of NumPy, PyTorch or JAX."""

    def __array__(self) -> Any:
        """Return the data as an array."""
        ...


# The type of data that operators accept in place of a node, and that become the payload of a constant node.
TensorLike = SupportsArray | Sequence[float] | float


@dataclass(eq=False)
class OpNode:
    """An operator in a graph.

    Attributes:
        schema: the operator's schema.
        name: the operator's name, which is unique in the pipeline; outputs are named after it.
        device: ``cpu``, ``gpu`` or ``mixed``.
        inputs: the positional inputs.
        argument_inputs: the arguments that are computed in the graph.
        arguments: the constant arguments, converted by the schema.
        outputs: the nodes for the operator's outputs.
        display_name: the operator's name in messages, e.g. ``penstock.fn.crop``.
        named: whether the user chose the name.
        group: an object that all instances of one call with multiple input sets share.
        sites: the source lines at which the user called the operator.
        payload: data that is not an argument: a callback, a source.
        detached: whether the operator was called outside any pipeline.
        steps: the operators that this one replaces, if a pass inserted it.
    """

    schema: Schema
    name: str
    device: str
    inputs: list[DataNode]
    argument_inputs: dict[str, DataNode]
    arguments: dict[str, Any]
    display_name: str
    named: bool = False
    group: object = None
    sites: tuple[CallSite, ...] = ()
    payload: Any = None
    detached: bool = False
    steps: tuple[OpNode, ...] = ()
    outputs: list[DataNode] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.group is None:
            self.group = self
        # Arguments such as ``layout`` (a string) and ``dtype`` describe the output to its users; the graph does not need them.
        count = self.schema.count_outputs(self.arguments, len(self.inputs))
        names = [self.name] if count == 1 else [f"{self.name}[{i}]" for i in range(count)]
        self.outputs = [
            DataNode(name, self.schema.output_device(self.device, index), self, index)
            for index, name in enumerate(names)
        ]

    def __repr__(self) -> str:
        return f"<{self.display_name} {self.name}>"

    @property
    def preserved(self) -> bool:
        """Whether the operator stays in the graph even if no output depends on it."""
        return self.schema.no_prune or bool(self.arguments.get("preserve"))

    @property
    def origin(self) -> tuple[Frame, ...]:
        return frames(self.sites)

    def all_inputs(self) -> Iterator[DataNode]:
        """Yield the positional inputs, then the argument inputs in the order of their names."""
        yield from self.inputs
        for name in sorted(self.argument_inputs):
            yield self.argument_inputs[name]


class DataNode(Expression):
    """An output of an operator, which is a batch when the pipeline runs.

    Arithmetic, comparison, indexing and slicing of nodes add further operators.

    Attributes:
        name: the node's name, which is unique in the pipeline, and the same on both devices.
        device: the device on which the data are used: ``cpu`` or ``gpu``.
        source: the operator that produces the data.
        index: the index among the outputs of ``source``.
    """

    __slots__ = ("device", "dtype", "index", "layout", "name", "ndim", "source")

    def __init__(
        self,
        name: str,
        device: str = "cpu",
        source: OpNode | None = None,
        index: int = 0,
        ndim: int | None = None,
        dtype: DALIDataType | None = None,
        layout: str | None = None,
    ) -> None:
        self.name = name
        self.device = device
        self.source = source
        self.index = index
        self.ndim = ndim
        self.dtype = dtype
        self.layout = layout

    def on_device(self, device: str) -> DataNode:
        """Return the same data on ``device``; unlike :meth:`gpu` and :meth:`cpu`, this does not enter open branches."""
        return DataNode(self.name, device, self.source, self.index, self.ndim, self.dtype, self.layout)

    @property
    def is_moved(self) -> bool:
        """Whether the data are used on another device than they are produced on."""
        made_on = "cpu" if self.source is None else self.source.schema.output_device(self.source.device, self.index)
        return self.device != made_on

    def gpu(self) -> DataNode:
        """Return the same data on the GPU, which are copied if they are produced elsewhere."""
        return self if self.device == "gpu" else self._split_first().on_device("gpu")

    def cpu(self) -> DataNode:
        """Return the same data on the CPU, which are copied if they are produced elsewhere."""
        return self if self.device == "cpu" else self._split_first().on_device("cpu")

    def _split_first(self) -> DataNode:
        node: DataNode = syntax().enter_branch(self)
        return node

    def __str__(self) -> str:
        known = {"ndim": self.ndim, "dtype": self.dtype, "layout": self.layout and repr(self.layout)}
        described = "".join(f", {word}={value}" for word, value in known.items() if value is not None)
        return f'DataNode(name="{self.name}", device="{self.device}", source="{self.source}", index="{self.index}"{described})'

    __repr__ = __str__

    # Not iterable despite `__getitem__`, as extents are known only when the pipeline runs.
    __iter__ = None

    def __bool__(self) -> NoReturn:
        raise TypeError(
            '"DataNode" was used in conditional context - it might have been used in truth evaluation for `if` statement, logical '
            "expression or cast to a boolean. To use conditional execution via `if` statements you need to specify "
            f"`enable_conditionals=True` in `@{as_imported('penstock.pipeline_def')}` decorator. You can read more about "
            "conditional execution in specific section of the Pipeline documentation. Bool conversion can be achieved with the "
            f"`cast` operator. The values of {self} are known only when the pipeline runs."
        )
