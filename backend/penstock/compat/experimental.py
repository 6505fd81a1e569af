"""The module ``nvidia.dali.experimental``: dynamic mode."""

from __future__ import annotations

from penstock import dynamic
from penstock.dynamic._ops import schema_of  # private: not for users
from penstock.schema.op_schema import OpSchema

__all__ = ["dynamic"]
__path__: list[str] = []

# Attributes that programs read when they list the classes and functions of all operators.
for _made in dynamic.ops.all_operators():
    _schema = schema_of(_made)
    _op_schema = OpSchema(_schema)
    _path = (*_op_schema.ModulePath(), _made.__name__)
    _facts = {
        "_schema": _op_schema,
        "_schema_name": _op_schema.Name(),
        "_supported_backends": frozenset(_op_schema.GetSupportedBackends()),
        "_is_reader": issubclass(_made, dynamic.ops.Reader),
        "_has_random_state_arg": _op_schema.HasRandomStateArg(),
        "_op_name": _made.__name__,
        "_op_path": ".".join(_path),
        "_fn_path": _schema.fn_path,
    }
    for _name, _fact in _facts.items():
        setattr(_made, _name, _fact)
for _function in dynamic.ops.all_functions():
    _facts = vars(vars(_function)["_op_class"])
    vars(_function).update({name: _facts[name] for name in ("_schema", "_schema_name")})


def _purge_operator_cache(context: dynamic.EvalContext) -> None:
    """Drop the operators that are cached in a context."""
    context.engine.forget()


# Assigned through `vars`, as mypy does not know the attribute.
vars(dynamic)["EvalContext"]._purge_operator_cache = _purge_operator_cache
