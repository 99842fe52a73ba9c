"""The columns that an operator gives, with their types.

Contract: names are those that the library and our operators tell; a type is told where it is certain.
"""

from __future__ import annotations

from typing import Any

from duckdb_kql import ir, schema, translate
from duckdb_kql.schema import join_output_columns, lookup_output_columns

from lazydelta.engines.kql import summaries
from lazydelta.engines.kql.kinds import Kind, kind_of, plain_kind
from lazydelta.engines.kql.make_series import MakeSeries
from lazydelta.engines.kql.operators import Sample

Columns = dict[str, Kind]  # in their order; None: of a type that is not known
_ONE_SIDE = {"leftsemi": 0, "leftanti": 0, "rightsemi": 1, "rightanti": 1}
_OF_SCHEMA = {"ColumnName": "string", "ColumnOrdinal": "int", "DataType": "string", "ColumnType": "string"}


def columns_after(op: ir.Operator, columns: Columns, right: Columns | None = None) -> Columns | None:
    """What comes out of an operator; None: that is not known. `right`: the other side of a join."""
    if isinstance(op, ir.Join | ir.Lookup):
        return None if right is None else _joined(op, columns, right)
    names = _names(op, columns)
    kinds = _kinds(op, columns, names)
    return {name: kinds.get(name, columns.get(name)) for name in names}


def _names(op: ir.Operator, columns: Columns) -> list[str]:
    return list(schema._operator_columns(op, list(columns), None))


def _joined(op: Any, left: Columns, right: Columns) -> Columns:  # Any: a join or a lookup
    if isinstance(op, ir.Lookup):
        keys = [key.right for key in op.keys]
        names = lookup_output_columns(list(left), list(right), keys)
        others = [kind for name, kind in right.items() if name not in keys]
        return dict(zip(names, [*left.values(), *others], strict=True))
    if op.kind in _ONE_SIDE:
        return dict((left, right)[_ONE_SIDE[op.kind]])
    names = join_output_columns(list(left), list(right), op.kind)
    return dict(zip(names, [*left.values(), *right.values()], strict=True))


def _kinds(op: ir.Operator, columns: Columns, names: list[str]) -> Columns:  # noqa: PLR0911  # one case per operator
    """The types of the columns that an operator makes."""
    if isinstance(op, ir.Project | ir.Distinct):
        return dict(zip(names, [kind_of(one.expr) for one in op.expressions], strict=True))
    if isinstance(op, ir.Extend):
        made = translate.naming.extend_names(op.expressions, list(columns))
        return dict(zip(made, [kind_of(one.expr) for one in op.expressions], strict=True))
    if isinstance(op, ir.ProjectRename):
        return {new: columns.get(old) for old, new in op.renames}
    if isinstance(op, ir.Summarize):
        return dict(zip(names, _summarized(op, columns), strict=True))
    if isinstance(op, ir.Count):
        return {op.name: "long"}
    if isinstance(op, ir.GetSchema):
        return dict(_OF_SCHEMA)
    if isinstance(op, ir.MvExpand):
        return _expanded(op)
    if isinstance(op, ir.Parse):
        return {
            segment.name: plain_kind(segment.type) if segment.type else "string"
            for segment in op.segments
            if segment.name is not None
        }
    if isinstance(op, MakeSeries):
        keys = [kind_of(one.expr) for one in op.by]
        return dict(zip(names, [*keys, *["dynamic"] * (len(names) - len(keys))], strict=True))
    if isinstance(op, Sample) and op.of is not None:
        return {names[0]: kind_of(op.of.expr)}
    return {}


def _expanded(op: ir.MvExpand) -> Columns:
    found: Columns = {
        target.name or target.column: plain_kind(target.to_type) if target.to_type else "dynamic"
        for target in op.targets
    }
    return found | ({op.item_index: "long"} if op.item_index else {})


def _summarized(op: ir.Summarize, columns: Columns) -> list[Kind]:
    """Of the keys, then of what each aggregate gives."""
    op = summaries.spread(op, list(columns))
    keys = [key.name or translate.naming.expression_name(key.expr) or "" for key in op.by]
    found = [kind_of(key.expr) for key in op.by]
    for one in op.aggregates:
        several = translate.arg_max_targets(one, keys, list(columns))
        if several is None:
            found.append(summaries.kind_of_aggregate(one.expr, columns))
        else:
            _, ordered, picked = several
            found += [columns.get(part.name) for part in (ordered, *picked)]
    return found
