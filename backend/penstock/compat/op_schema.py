"""What an operator accepts, asked as DALI's ``OpSchema`` is asked."""

from __future__ import annotations

import enum

from penstock.data_types import DALIDataType, TensorLayout
from penstock.schema import Argument, Schema
from penstock.schema.random_operator import RandomOperator
from penstock.schema.registry import find_schema, operator_class

__all__ = ["GetSchema", "OpSchema", "TryGetSchema"]


# Of every operator, and given to the instance rather than to the operator.
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
        """The name with its modules, joined by ``__``."""
        return self._schema.name

    def OperatorName(self) -> str:
        """The name of the class in ``ops``."""
        return self._schema.class_name

    def ModulePath(self) -> list[str]:
        """The modules below ``ops`` and ``fn``."""
        return list(self._schema.module)

    def MaxNumInput(self) -> int:
        """The most inputs it takes."""
        return self._schema.max_input_count

    def MinNumInput(self) -> int:
        """The fewest inputs it takes."""
        return self._schema.min_input_count

    def GetInputDevice(self, index: int, actual_device: str | None, operator_device: str | None) -> str | None:
        """Where an operator on one device takes an input from that is on another; None where that is not known."""
        wanted = self._schema.input(index).device
        if wanted == "cpu":
            return "cpu"
        if wanted == "any" or (wanted == "match_or_cpu" and operator_device is None):
            return actual_device or operator_device
        if wanted == "match_or_cpu" and actual_device is not None:
            return actual_device if actual_device == operator_device else "cpu"
        return "cpu" if operator_device == "mixed" and not wanted else operator_device

    def GetArgumentNames(self, include_hidden: bool = False) -> list[str]:
        """Its arguments, in alphabetical order."""
        return [name for name, argument in self._arguments.items() if include_hidden or not argument.hidden]

    @property
    def _arguments(self) -> dict[str, Argument]:
        """Its arguments by name; of those that the graph sets, only the state of a random stream."""
        return {
            name: argument
            for name, argument in self._schema.all_arguments.items()
            if not name.startswith("_") or (name == "_random_state" and self.HasRandomStateArg())
        }

    def _argument(self, name: str) -> Argument:
        """Raises KeyError where there is none of that name."""
        try:
            return (_INSTANCE_ARGUMENTS | self._arguments)[name]
        except KeyError:
            raise KeyError(f'Argument "{name}" is not defined for operator "{self.Name()}".') from None

    def HasArgument(self, name: str) -> bool:
        """Whether it has an argument of that name."""
        return name in self._arguments

    def IsArgumentOptional(self, name: str) -> bool:
        """Whether it has the argument, and works without it."""
        return (name in _INSTANCE_ARGUMENTS or self.HasArgument(name)) and not self._argument(name).required

    def IsTensorArgument(self, name: str) -> bool:
        """Whether the argument may be computed in the graph."""
        return self.HasArgument(name) and self._argument(name).tensor

    def ArgSupportsPerFrameInput(self, name: str) -> bool:
        """Whether the argument may have a value for each frame of a sequence."""
        return self.HasArgument(name) and self._argument(name).per_frame

    def HasArgumentDefaultValue(self, name: str) -> bool:
        """Whether a value stands for the argument where none is given."""
        argument = self._argument(name)
        has_none = argument.required or argument.default is None or _is_without_effect(argument)
        return not has_none

    def GetArgumentDefaultValueString(self, name: str) -> str:
        """What stands for the argument where none is given, as Python writes it."""
        if not self.HasArgumentDefaultValue(name):
            raise ValueError(f'Argument "{name}" in operator "{self.Name()}" has no default value.')
        default = self._argument(name).default
        return str(int(default)) if isinstance(default, enum.IntEnum) else repr(default)

    def GetArgumentType(self, name: str) -> DALIDataType:
        """The type of the argument; of lists, that of lists of it."""
        argument = self._argument(name)
        element = argument.type.removesuffix("[]")
        return DALIDataType[(_LIST_TYPES if argument.is_list else _TYPES).get(element, "NO_TYPE")]

    def IsDeprecatedArg(self, name: str) -> bool:
        """Whether the argument should not be used any more."""
        return self.HasArgument(name) and self._argument(name).deprecated is not None

    def DeprecatedArgInfo(self, name: str) -> dict[str, object]:
        """What became of the argument."""
        deprecation = self._argument(name).deprecated
        if deprecation is None:
            raise ValueError(f'No deprecation info for argument "{name}" found.')
        return {"renamed_to": deprecation.renamed_to or "", "removed": deprecation.removed}

    def HasInputDox(self) -> bool:
        """Whether its inputs have names of their own."""
        return bool(self._schema.inputs)

    def GetInputName(self, index: int) -> str:
        """The name of an input."""
        return self._schema.input(index).name

    def GetInputType(self, index: int) -> str:
        """What the input takes: batches."""
        return "TensorList"

    def GetInputDox(self, index: int) -> str:
        """What an input is."""
        return self._schema.input(index).doc

    def GetSupportedLayouts(self, index: int) -> list[TensorLayout]:
        """The layouts that an input may have; empty: any."""
        return [TensorLayout(layout) for layout in self._schema.input(index).layouts]

    def AllowsSequences(self) -> bool:
        """Whether it takes sequences."""
        return self._schema.sequences or any("F" in layout for own in self._schema.inputs for layout in own.layouts)

    def IsSequenceOperator(self) -> bool:
        """Whether it takes nothing but sequences: operators take these beside others."""
        return False

    def IsAbstract(self) -> bool:
        """Whether there is only the declaration: every one here has its operator."""
        return False

    def IsInternal(self) -> bool:
        """Whether users have no business with it."""
        return self._schema.hidden and self.Name().startswith("_")

    def HasRandomStateArg(self) -> bool:
        """Whether the state of its random stream may be given."""
        return issubclass(operator_class(self.Name()), RandomOperator)

    def IsDeprecated(self) -> bool:
        """Whether the operator should not be used any more."""
        return bool(self._schema.deprecated_since)

    def DeprecatedInFavorOf(self) -> str:
        """The name of the operator to use instead."""
        return self._schema.deprecated_in_favor_of

    def DeprecationMessage(self) -> str:
        """What else users should know who still use it."""
        return self._schema.deprecation_note

    def DeprecatedInVersion(self) -> str:
        """Since which version of DALI it is deprecated."""
        return self._schema.deprecated_since

    def IsDocHidden(self) -> bool:
        """Whether it is left out of the documentation."""
        return self._schema.hidden

    def IsStateful(self) -> bool:
        """Whether its results depend on what it did before."""
        return self._schema.stateful

    def IsNoPrune(self) -> bool:
        """Whether it stays where nothing uses its outputs."""
        return self._schema.no_prune

    def SupportsVolumetric(self) -> bool:
        """Whether it takes volumes."""
        return self._schema.volumetric

    def HasRandomSeedArg(self) -> bool:
        """Whether it draws random numbers, from a seed."""
        return self._schema.random

    def GetSupportedBackends(self) -> list[str]:
        """The devices that it runs on."""
        return list(self._schema.devices)

    def Dox(self) -> str:
        """What it does."""
        from penstock.schema.documentation import docstring

        return docstring(self._schema)

    def GetArgumentDox(self, name: str) -> str:
        """What an argument does."""
        return self._argument(name).doc


def GetSchema(name: str, follow_aliases: bool = False) -> OpSchema:
    """What the operator ``name`` accepts.

    Raises:
        KeyError: there is none.
    """
    found = TryGetSchema(name, follow_aliases)
    if found is None:
        raise KeyError(f"Schema for operator '{name}' not registered")
    return found


def TryGetSchema(name: str, follow_aliases: bool = False) -> OpSchema | None:
    """What the operator ``name`` accepts, or None where there is none."""
    try:
        schema = find_schema(name)
    except KeyError:
        return None
    return OpSchema(schema)
