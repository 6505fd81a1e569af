"""What an operator accepts, asked as DALI's ``OpSchema`` is asked."""

from __future__ import annotations

from typing import Any

from penstock.schema import Schema
from penstock.schema.registry import find_schema

__all__ = ["GetSchema", "OpSchema", "TryGetSchema"]


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
        return self._schema.most_inputs

    def MinNumInput(self) -> int:
        """The fewest inputs it takes."""
        return self._schema.fewest_inputs

    def GetArgumentNames(self) -> list[str]:
        """Its arguments, in alphabetical order."""
        return [name for name, argument in self._schema.all_arguments.items() if not argument.hidden]

    def HasArgument(self, name: str) -> bool:
        """Whether it has an argument of that name."""
        return name in self._schema.all_arguments

    def IsArgumentOptional(self, name: str) -> bool:
        """Whether it has the argument, and works without it."""
        return self.HasArgument(name) and not self._schema.all_arguments[name].required

    def IsTensorArgument(self, name: str) -> bool:
        """Whether the argument may be computed in the graph."""
        return self.HasArgument(name) and self._schema.all_arguments[name].tensor

    def ArgSupportsPerFrameInput(self, name: str) -> bool:
        """Whether the argument may have a value for each frame of a sequence."""
        return self.HasArgument(name) and self._schema.all_arguments[name].per_frame

    def HasArgumentDefaultValue(self, name: str) -> bool:
        """Whether a value stands for the argument where none is given."""
        return self.IsArgumentOptional(name) and self._schema.all_arguments[name].default is not None

    def IsDeprecatedArg(self, name: str) -> bool:
        """Whether the argument should not be used any more."""
        return self.HasArgument(name) and self._schema.all_arguments[name].deprecated is not None

    def IsDeprecated(self) -> bool:
        """Whether the operator should not be used any more."""
        return bool(self._schema.deprecated_since)

    def DeprecatedInFavorOf(self) -> str:
        """The name of the operator to use instead."""
        return self._schema.deprecated_in_favor_of

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
        return self._schema.all_arguments[name].doc


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
        schema: Any = find_schema(name)
    except KeyError:
        return None
    return OpSchema(schema)
