"""Declarations, arguments, registry and base classes of operators.

This package does not depend on any concrete operator.
"""

from penstock.schema.arguments import Argument, Deprecation
from penstock.schema.declaration import Alias, Input, Schema
from penstock.schema.equivalents import Equivalent
from penstock.schema.input_operator import FedBatch, InputOperator
from penstock.schema.operator import Operator
from penstock.schema.outputs import OutputSpec
from penstock.schema.plans import PlanColumns
from penstock.schema.registry import all_schemas, find_schema, operator_class, register_operator
from penstock.schema.samples import Samples
from penstock.schema.workspace import Sample, Workspace

__all__ = [
    "Alias",
    "Argument",
    "Deprecation",
    "Equivalent",
    "FedBatch",
    "Input",
    "InputOperator",
    "Operator",
    "OutputSpec",
    "PlanColumns",
    "Sample",
    "Samples",
    "Schema",
    "Workspace",
    "all_schemas",
    "find_schema",
    "operator_class",
    "register_operator",
]
