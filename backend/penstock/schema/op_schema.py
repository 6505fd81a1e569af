"""Queries about operators, with the interface of DALI's ``OpSchema`` and ``OpSpec``."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Any

from penstock.data_types import DALIDataType, TensorLayout
from penstock.errors import as_imported
from penstock.schema.arguments import Argument
from penstock.schema.declaration import Schema
from penstock.schema.registry import find_schema

__all__ = ["Described", "GetSchema", "GetSchemaAndTarget", "OpSchema", "OpSpec", "TryGetSchema"]


# Arguments that every operator accepts, but that belong to an instance rather than to the schema.
_INSTANCE_ARGUMENTS = {"device": Argument("device", "string", "cpu", "Where the operator runs.")}

_TYPES = {
    "bool": "BOOL",
    "int32": "INT32",
    "uint32": "UINT32",
    "int64": "INT64",
    "float": "FLOAT",
    "string": "STRING",
    "layout": "TENSOR_LAYOUT",
    "DALIDataType": "DATA_TYPE",
    "DALIImageType": "IMAGE_TYPE",
    "DALIInterpType": "INTERP_TYPE",
    "object": "PYTHON_OBJECT",
}
_LIST_TYPES = {
    "bool": "_BOOL_VEC",
    "int32": "_INT32_VEC",
    "int64": "_INT64_VEC",
    "float": "_FLOAT_VEC",
    "string": "_STRING_VEC",
    "layout": "_TENSOR_LAYOUT_VEC",
    "DALIDataType": "_DATA_TYPE_VEC",
    "tfrecord.Feature": "_FEATURE_VEC",
}


def _is_without_effect(argument: Argument) -> bool:
    return argument.deprecated is not None and argument.deprecated.removed


class OpSchema:
    """The declaration of an operator."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def Name(self) -> str:
        """Return the operator's name with its modules, joined by ``__``."""
        return self._schema.name

    def OperatorName(self) -> str:
        """Return the name of the operator's class in ``ops``."""
        return self._schema.class_name

    def ModulePath(self) -> list[str]:
        """Return the names of the modules below ``ops`` and ``fn``."""
        return list(self._schema.module)

    def MaxNumInput(self) -> int:
        """Return the largest number of inputs."""
        return self._schema.max_input_count

    def MinNumInput(self) -> int:
        """Return the smallest number of inputs."""
        return self._schema.min_input_count

    def GetInputDevice(self, index: int, actual_device: str | None, operator_device: str | None) -> str | None:
        """Return the device from which an operator on one device takes an input that is on another; None if that is not known."""
        wanted = self._schema.input(index).device
        if wanted == "cpu":
            return "cpu"
        if wanted == "any" or (wanted == "match_or_cpu" and operator_device is None):
            return actual_device or operator_device
        if wanted == "match_or_cpu" and actual_device is not None:
            return actual_device if actual_device == operator_device else "cpu"
        return "cpu" if operator_device == "mixed" and not wanted else operator_device

    def GetArgumentNames(self, include_hidden: bool = False) -> list[str]:
        """Return the names of the operator's arguments, in alphabetical order."""
        return [name for name, argument in self._arguments.items() if include_hidden or not argument.hidden]

    @property
    def _arguments(self) -> dict[str, Argument]:
        """The operator's arguments by name; of private ones, only the state of the random stream."""
        return {
            name: argument
            for name, argument in self._schema.all_arguments.items()
            if not name.startswith("_") or (name == "_random_state" and self.HasRandomStateArg())
        }

    def _argument(self, name: str) -> Argument:
        """Return the argument with a name; raise KeyError if there is none."""
        try:
            return (_INSTANCE_ARGUMENTS | self._arguments)[name]
        except KeyError:
            raise KeyError(f'Argument "{name}" is not defined for operator "{self.Name()}".') from None

    def HasArgument(self, name: str) -> bool:
        """Return whether the operator has an argument with this name."""
        return name in self._arguments

    def IsArgumentOptional(self, name: str) -> bool:
        """Return whether the operator has the argument, and does not require it."""
        return (name in _INSTANCE_ARGUMENTS or self.HasArgument(name)) and not self._argument(name).required

    def IsTensorArgument(self, name: str) -> bool:
        """Return whether the argument may be computed in the graph."""
        return self.HasArgument(name) and self._argument(name).tensor

    def ArgSupportsPerFrameInput(self, name: str) -> bool:
        """Return whether the argument may have a value for each frame of a sequence."""
        return self.HasArgument(name) and self._argument(name).per_frame

    def HasArgumentDefaultValue(self, name: str) -> bool:
        """Return whether the argument has a default value."""
        argument = self._argument(name)
        has_none = argument.required or argument.default is None or _is_without_effect(argument)
        return not has_none

    def GetArgumentDefaultValueString(self, name: str) -> str:
        """Return the argument's default value, in Python syntax."""
        if not self.HasArgumentDefaultValue(name):
            raise ValueError(f'Argument "{name}" in operator "{self.Name()}" has no default value.')
        default = self._argument(name).default
        return str(int(default)) if isinstance(default, enum.IntEnum) else repr(default)

    def GetArgumentType(self, name: str) -> DALIDataType:
        """Return the type of the argument; for a list, the type of lists."""
        argument = self._argument(name)
        element = argument.type.removesuffix("[]")
        return DALIDataType.__members__[(_LIST_TYPES if argument.is_list else _TYPES).get(element, "NO_TYPE")]

    def IsDeprecatedArg(self, name: str) -> bool:
        """Return whether the argument is deprecated."""
        return self.HasArgument(name) and self._argument(name).deprecated is not None

    def DeprecatedArgInfo(self, name: str) -> dict[str, object]:
        """Return a description of how the argument was deprecated."""
        argument = self._argument(name)
        if argument.deprecated is None:
            raise ValueError(f'No deprecation info for argument "{name}" found.')
        return {
            "msg": argument.deprecation_text(),
            "removed": argument.deprecated.removed,
            "renamed_to": argument.deprecated.renamed_to or "",
            "deprecated_in_version": argument.deprecated.since,
        }

    def HasInputDox(self) -> bool:
        """Return whether inputs are documented by name."""
        return bool(self._schema.inputs)

    def GetInputName(self, index: int) -> str:
        """Return the name of an input."""
        return self._schema.input(index).name

    def GetInputType(self, index: int) -> str:
        """Return the type of an input: always a batch."""
        return "TensorList"

    def GetInputDox(self, index: int) -> str:
        """Return the documentation of an input."""
        return self._schema.input(index).doc

    def GetSupportedLayouts(self, index: int) -> list[TensorLayout]:
        """Return the layouts that an input accepts; empty: any."""
        return [TensorLayout(layout) for layout in self._schema.input(index).layouts]

    def AllowsSequences(self) -> bool:
        """Return whether the operator accepts sequences."""
        return self._schema.sequences or any("F" in layout for item in self._schema.inputs for layout in item.layouts)

    def IsSequenceOperator(self) -> bool:
        """Return whether the operator accepts only sequences: never the case here."""
        return False

    def IsAbstract(self) -> bool:
        """Return whether this is a declaration without an operator: never the case here."""
        return False

    def IsInternal(self) -> bool:
        """Return whether the operator is for internal use."""
        return self._schema.hidden and self.Name().startswith("_")

    def HasRandomStateArg(self) -> bool:
        """Return whether the operator accepts the state of its random stream."""
        return self._schema.random and "readers" not in self._schema.module

    def IsDeprecated(self) -> bool:
        """Return whether the operator is deprecated."""
        return bool(self._schema.deprecated_since)

    def DeprecatedInFavorOf(self) -> str:
        """Return the name of the operator to use instead."""
        return self._schema.deprecated_in_favor_of

    def DeprecationMessage(self) -> str:
        """Return further advice to users of a deprecated operator."""
        return self._schema.deprecation_note

    def DeprecatedInVersion(self) -> str:
        """Return the version of DALI that deprecated the operator."""
        return self._schema.deprecated_since

    def IsDocHidden(self) -> bool:
        """Return whether the documentation omits the operator."""
        return self._schema.hidden

    def IsDocPartiallyHidden(self) -> bool:
        """Return whether only the class in ``ops`` or the function in ``fn`` is documented: never the case here."""
        return False

    def IsStateful(self) -> bool:
        """Return whether the operator's results depend on earlier runs."""
        return self._schema.stateful

    def IsNoPrune(self) -> bool:
        """Return whether the operator stays in the graph even if nothing uses its outputs."""
        return self._schema.no_prune

    def SupportsVolumetric(self) -> bool:
        """Return whether the operator accepts volumes."""
        return self._schema.volumetric

    def HasRandomSeedArg(self) -> bool:
        """Return whether the operator draws random numbers from a seed."""
        return self._schema.random

    def GetSupportedBackends(self) -> list[str]:
        """Return the devices on which the operator runs."""
        return list(self._schema.devices)

    def Dox(self) -> str:
        """Return the operator's documentation."""
        from penstock.schema.documentation import docstring

        return docstring(self._schema)

    def AliasFor(self) -> str:
        """Return the operator of which this one is an alias: none, an empty string."""
        return ""

    def AppendKwargsSection(self) -> bool:
        """Return whether the documentation of arguments follows a separate text: never the case here."""
        return False

    def HasCallDox(self) -> bool:
        """Return whether calls have separate documentation: never the case here."""
        return False

    def GetCallDox(self) -> str:
        """Raise RuntimeError, as calls have no separate documentation."""
        raise RuntimeError("__call__ docstring was not set")

    def CanUseAutoInputDox(self) -> bool:
        """Return whether inputs can be documented by number."""
        return self.MaxNumInput() <= 1

    def GetCallSignatureInputs(self) -> str:
        """Return the inputs as in a signature.

        Raises:
            RuntimeError: the inputs have no names.
        """
        if not self.HasInputDox():
            raise RuntimeError("Input documentation was not specified for this operator.")
        optional = self.MinNumInput()
        return ", ".join(
            each.name + (" = None" if index >= optional else "") for index, each in enumerate(self._schema.inputs)
        )

    def HasOutputFn(self) -> bool:
        """Return whether the number of outputs depends on inputs or arguments."""
        schema = self._schema
        return schema.output_per_input or callable(schema.outputs)

    def CalculateOutputs(self, spec: OpSpec) -> int:
        """Return the number of outputs of an operator with this specification."""
        return self._schema.count_outputs(spec._arguments, spec.NumRegularInput())

    def CalculateAdditionalOutputs(self, spec: OpSpec) -> int:
        """Return the number of outputs that users do not see: none."""
        return 0

    def CalculateOutputNDim(self, idx: int, spec: OpSpec) -> int | None:
        """Return the number of dimensions of an output: None, as it is known only when the operator runs."""
        return None

    def CalculateOutputDType(self, idx: int, spec: OpSpec) -> DALIDataType | None:
        """Return the type of an output: None, as it is known only when the operator runs."""
        return None

    def CalculateOutputLayout(self, idx: int, spec: OpSpec) -> TensorLayout | None:
        """Return the layout of an output: None, as it is known only when the operator runs."""
        return None

    def SupportsInPlace(self, spec: OpSpec) -> bool:
        """Return whether an output may be the input's memory: never the case here."""
        return False

    def CheckArgs(self, spec: OpSpec) -> None:
        """Raise RuntimeError for unknown or missing arguments."""
        provided = {*spec._arguments, *(edge.argument for edge in spec._inputs)} - {""}
        unknown = sorted(provided - self._schema.all_arguments.keys() - _INSTANCE_ARGUMENTS.keys())
        if unknown:
            raise RuntimeError(f'Operator "{self.Name()}" has no argument "{unknown[0]}"')
        missing = [name for name, argument in self._arguments.items() if argument.required and name not in provided]
        if missing:
            names = ", ".join(f'"{name}"' for name in missing)
            raise RuntimeError(
                f'Not all required arguments were specified for op "{self.Name()}". Please specify values for arguments: {names}'
            )

    def GetArgumentDox(self, name: str) -> str:
        """Return the documentation of an argument."""
        return self._argument(name).doc


@dataclass(frozen=True)
class _Edge:
    """An input or output of a specification.

    Attributes:
        name, device: the name and device of the data.
        argument: the name of the argument that the data supply; empty for an input or output.
        ndim, dtype, layout: the number of dimensions, dtype and layout of samples; None if not known.
    """

    name: str
    device: str
    argument: str = ""
    ndim: int | None = None
    dtype: DALIDataType | None = None
    layout: str | None = None

    @property
    def described(self) -> tuple[str, str, int | None, DALIDataType | None, TensorLayout | None]:
        layout = None if self.layout is None else TensorLayout(self.layout)
        return self.name, self.device, self.ndim, self.dtype, layout


class OpSpec:
    """The arguments with which an operator was constructed: ``print(ops.Resize(size=3).spec)``.

    Args:
        schema: the operator's declaration, or its name.
        device: the device on which it runs.
        arguments: the operator's arguments by name.
    """

    def __init__(
        self, schema: Schema | str, device: str | None = None, arguments: dict[str, Any] | None = None
    ) -> None:
        self._schema = schema = find_schema(schema) if isinstance(schema, str) else schema
        module = ".".join(("penstock.ops", *schema.module))
        self._shown = {"_display_name": schema.class_name, "_module": as_imported(module)}
        if device is not None:
            self._shown = {"device": device, **self._shown}
        # The arguments with which an operator is constructed.
        self._arguments = {} if arguments is None else arguments
        self._inputs: list[_Edge] = []
        self._outputs: list[_Edge] = []

    def copy(self) -> OpSpec:
        """Return an independent copy."""
        twin = OpSpec(self._schema, self._shown.get("device"), dict(self._arguments))
        twin._inputs, twin._outputs = [*self._inputs], [*self._outputs]
        return twin

    def AddArg(self, name: str, value: object) -> OpSpec:
        """Add an argument to the specification.

        Raises:
            RuntimeError: the operator has an argument of that name already.
        """
        if name in self._shown or name in self._arguments:
            raise RuntimeError(f'AddArg failed. Argument with name "{name}" already exists.')
        self._arguments[name] = value
        return self

    def AddArgEmptyList(self, name: str, dtype: DALIDataType) -> OpSpec:
        """Add an argument that is an empty list of elements of a type."""
        return self.AddArg(name, [])

    def AddInput(
        self,
        name: str,
        device: str,
        ndim: int | None = None,
        dtype: DALIDataType | None = None,
        layout: str | None = None,
    ) -> OpSpec:
        """Add an input; all inputs must be added before arguments that are computed in the graph.

        Raises:
            RuntimeError: an argument that is computed has been added already.
        """
        if self.NumRegularInput() < self.NumInput():
            raise RuntimeError("All inputs must be added before arguments that are computed in the graph")
        self._inputs.append(_Edge(name, device, "", ndim, dtype, layout))
        return self

    def AddArgumentInput(
        self,
        arg_name: str,
        inp_name: str,
        ndim: int | None = None,
        dtype: DALIDataType | None = None,
        layout: str | None = None,
    ) -> OpSpec:
        """Add an argument that is computed in the graph."""
        self._inputs.append(_Edge(inp_name, "cpu", arg_name, ndim, dtype, layout))
        return self

    def AddOutput(self, name: str, device: str) -> OpSpec:
        """Add an output with a name."""
        self._outputs.append(_Edge(name, device))
        return self

    def NumInput(self) -> int:
        """Return the number of inputs, including arguments that are computed in the graph."""
        return len(self._inputs)

    def NumRegularInput(self) -> int:
        """Return the number of inputs, without arguments that are computed in the graph."""
        return sum(not edge.argument for edge in self._inputs)

    def NumOutput(self) -> int:
        """Return the number of outputs that have been added."""
        return len(self._outputs)

    def InputName(self, idx: int) -> str:
        """Return the name of an input."""
        return self._inputs[idx].name

    def InputDevice(self, idx: int) -> str:
        """Return the device of an input."""
        return self._inputs[idx].device

    def InputDesc(self, idx: int) -> tuple[str, str, int | None, DALIDataType | None, TensorLayout | None]:
        """Return the name, device, number of dimensions, type and layout of an input."""
        return self._inputs[idx].described

    def OutputName(self, idx: int) -> str:
        """Return the name of an output."""
        return self._outputs[idx].name

    def OutputDevice(self, idx: int) -> str:
        """Return the device of an output."""
        return self._outputs[idx].device

    def OutputDesc(self, idx: int) -> tuple[str, str, int | None, DALIDataType | None, TensorLayout | None]:
        """Return the name, device, number of dimensions, type and layout of an output."""
        return self._outputs[idx].described

    def RenameInput(self, idx: int, name: str) -> None:
        """Give an input another name."""
        self._inputs[idx] = replace(self._inputs[idx], name=name)

    def RenameOutput(self, idx: int, name: str) -> None:
        """Give an output another name."""
        self._outputs[idx] = replace(self._outputs[idx], name=name)

    def InferOutputMetadata(self) -> None:
        """Do nothing, as outputs are known only when the operator runs."""

    def __repr__(self) -> str:
        edges = [[f"    {edge.name}_{edge.device}" for edge in each] for each in (self._inputs, self._outputs)]
        set_arguments = {name: value for name, value in self._arguments.items() if value is not None}
        arguments = [f"    {name}: {value}" for name, value in (self._shown | set_arguments).items()]
        lines = (f"OpSpec for {self._schema.name}:", "  Inputs:", *edges[0], "  Outputs:", *edges[1], "  Arguments:")
        return "\n".join([*lines, *arguments]) + "\n"


class Described:
    """Base class of operator classes, with the members that DALI programs use."""

    schema_name: str
    """The operator's name in saved pipelines."""
    _arguments: dict[str, Any]

    @property
    def device(self) -> str:
        """The device on which the operator runs."""
        raise NotImplementedError

    @property
    def schema(self) -> OpSchema:
        """The operator's declaration, with DALI's interface."""
        return GetSchema(self.schema_name)

    @property
    def spec(self) -> OpSpec:
        """The operator's name and the arguments set at construction."""
        return OpSpec(self.schema_name, self.device, self._arguments)


def GetSchema(name: str, follow_aliases: bool = False) -> OpSchema:
    """Return the schema of the operator ``name``.

    Raises:
        KeyError: there is no such operator.
    """
    found = TryGetSchema(name, follow_aliases)
    if found is None:
        raise KeyError(f"Schema for operator '{name}' not registered")
    return found


def TryGetSchema(name: str, follow_aliases: bool = False) -> OpSchema | None:
    """Return the schema of the operator ``name``, or None if there is no such operator."""
    try:
        schema = find_schema(name)
    except KeyError:
        return None
    return OpSchema(schema)


def GetSchemaAndTarget(name: str) -> tuple[OpSchema, OpSchema]:
    """Return the schema of the operator ``name`` twice: also as that of its target, as an old name has a schema of its own."""
    schema = GetSchema(name)
    return schema, schema
