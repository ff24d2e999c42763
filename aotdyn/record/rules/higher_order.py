"""Operators of torch that take functions of the program: these become functions of the graph."""

import torch
from torch.utils.checkpoint import checkpoint

from ...package import operators
from ..nested import values
from ..operation import call
from ..signals import GraphBreak
from ..variables import (
    Constant,
    ListVariable,
    Symbolic,
    TensorVariable,
    TupleVariable,
    Variable,
)
from .table import rule


def leaves(t, result: Variable) -> list[Variable]:
    """What a result is made of: tensors, numbers and constants in tuples and lists."""
    result = t.realize(result)
    if isinstance(result, TupleVariable | ListVariable):
        return [leaf for item in result.items for leaf in leaves(t, item)]
    if isinstance(result, TensorVariable | Symbolic | Constant):
        return [result]
    raise GraphBreak("nested", f"a function gives a {result.describe()}")


def rebuilt(t, result: Variable, new: dict[int, Variable]) -> Variable:
    """The result as the frame sees it: with other variables for what comes out of the node."""
    result = t.realize(result)
    if isinstance(result, TupleVariable):
        items = [rebuilt(t, item, new) for item in result.items]
        return t.new(TupleVariable(items, cls=result.cls))
    if isinstance(result, ListVariable):
        return t.wrap_list([rebuilt(t, item, new) for item in result.items])
    return new.get(id(result), result)


class Body:
    """A function of the program, traced into a function of the graph.

    outputs: the tensors of its result that it has made; what else it gives is known outside.
    """

    def __init__(self, t, function: Variable, args: list[Variable], kwargs: dict):
        with t.graph.function() as self.scope, t.effects.only_own():
            self.result = t.realize(call(t, function, args, kwargs))
            made = {
                id(leaf): leaf
                for leaf in leaves(t, self.result)
                if isinstance(leaf, TensorVariable) and t.graph.is_of(leaf, self.scope)
            }
            self.outputs: list[TensorVariable] = list(made.values())
            self.names = [t.graph.tensor_name(output) for output in self.outputs]

    def replaced(self, t, node: str) -> Variable:
        """The result, whose tensors are now the parts of what a node gives."""
        new: dict[int, Variable] = {}
        for index, output in enumerate(self.outputs):
            t.graph.released(output)
            part = t.graph.add_part(node, index)
            new[id(output)] = t.graph.wrap(output.fake, part)
        return rebuilt(t, self.result, new)


# -- torch.utils.checkpoint ------------------------------------------------------------


@rule(checkpoint)
def checkpoint_function(
    t, function, *args, use_reentrant=None, preserve_rng_state=None, debug=None,
    determinism_check=None, early_stop=None, context_fn=None, **kwargs,
):  # fmt: skip
    reentrant = None if use_reentrant is None else t.constant(use_reentrant)
    if reentrant is None:
        raise GraphBreak("torch_refused", "checkpoint() warns about use_reentrant")
    if context_fn is not None or debug is not None and t.constant(debug):
        raise GraphBreak("torch_refused", "checkpoint() with contexts of its own")
    if not torch.is_grad_enabled():
        return call(t, function, list(args), kwargs)
    args = [t.realize(arg) for arg in args]
    tensors = [arg for arg in args if isinstance(arg, TensorVariable)]
    if reentrant and (kwargs or not any(arg.fake.requires_grad for arg in tensors)):
        raise GraphBreak("autograd", "checkpoint() gives no gradients here")
    body = Body(t, function, args, kwargs)
    if not body.scope.nodes:
        return body.result
    free = body.scope.free(values(body.names))
    passed = [arg.node for arg in tensors if arg.node in free]
    given = list(dict.fromkeys(passed))
    others = [name for name in free if name not in given]
    made = body.scope.function([*given, *others], values(body.names))
    preserve = preserve_rng_state is None or bool(t.constant(preserve_rng_state))
    node = t.graph.add(
        "checkpoint",
        t.references.to(operators.checkpointed),
        (made, preserve, values(given), values(others)),
    )
    return body.replaced(t, node)
