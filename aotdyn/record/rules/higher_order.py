"""Operators of torch that take functions of the program: these become functions of the graph."""

import inspect

import torch
import torch.nn.utils.stateless
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from ...package import operators
from ..attributes import module_registry
from ..hazards import storage_of
from ..iteration import iterate
from ..live_dicts import dict_item
from ..nested import values
from ..operation import apply, call, is_none, truth
from ..polyfills.checks import warn_caller
from ..signals import GraphBreak
from ..variables import (
    Constant,
    DictVariable,
    ListVariable,
    ObjectVariable,
    Symbolic,
    TensorVariable,
    TupleVariable,
    Variable,
)
from .gradients import version_of
from .table import rule


def leaves(t, result: Variable) -> list[Variable]:
    """What a result is made of: tensors, numbers and constants in tuples, lists and dicts."""
    result = t.realize(result)
    if isinstance(result, TupleVariable | ListVariable):
        return [leaf for item in result.items for leaf in leaves(t, item)]
    if _is_plain_dict(result):
        t.complete(result)
        return [leaf for _, item in result.items.values() for leaf in leaves(t, item)]
    if isinstance(result, TensorVariable | Symbolic | Constant):
        return [result]
    raise GraphBreak("nested", f"a function gives a {result.describe()}")


def _is_plain_dict(result: Variable) -> bool:
    return isinstance(result, DictVariable) and result.cls is dict and result.owner is None


def rebuilt(t, result: Variable, new: dict[int, Variable]) -> Variable:
    """The result as the frame sees it: with other variables for what comes out of the node."""
    result = t.realize(result)
    if isinstance(result, TupleVariable):
        items = [rebuilt(t, item, new) for item in result.items]
        return t.new(TupleVariable(items, cls=result.cls))
    if isinstance(result, ListVariable):
        return t.wrap_list([rebuilt(t, item, new) for item in result.items])
    if _is_plain_dict(result):
        items = {k: (key, rebuilt(t, item, new)) for k, (key, item) in result.items.items()}
        return t.new(DictVariable(items))
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
        if _WARNING is None:
            raise GraphBreak("checkpoint", "use_reentrant is not given")
        t.inline_live(warn_caller, [Constant(_WARNING)], {})
        reentrant = True
    if context_fn is not None or debug is not None and t.constant(debug):
        raise GraphBreak("checkpoint", "it gets contexts of its own")
    if not torch.is_grad_enabled():
        return call(t, function, list(args), kwargs)
    args = [t.realize(arg) for arg in args]
    tensors = [arg for arg in args if isinstance(arg, TensorVariable)]
    if reentrant and (kwargs or not any(arg.fake.requires_grad for arg in tensors)):
        raise GraphBreak("checkpoint", "it gives no gradients here")
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


# What `checkpoint` says of the argument, as the torch at hand says it.
_WARNING = next(
    (text for text in inspect.unwrap(checkpoint).__code__.co_consts
     if isinstance(text, str) and "the use_reentrant parameter should be" in text), None,
)  # fmt: skip


@rule(checkpoint_sequential)
def checkpoint_in_parts(t, *args, **kwargs):
    """By its own code, which calls `checkpoint`."""
    return t.inline_live(checkpoint_sequential, list(args), kwargs)


# -- torch.cond ------------------------------------------------------------


@rule(torch.cond)
def cond(t, pred, true_fn, false_fn, operands=None):
    pred = t.realize(pred)
    args = [] if operands is None else iterate(t, operands)
    if not isinstance(pred, TensorVariable):
        return call(t, true_fn if truth(t, pred) else false_fn, args)
    before, changed = _versions(t, args), set(t.shapes.hazards.changed)
    yes, no = (Body(t, function, args, {}) for function in (true_fn, false_fn))
    written = t.shapes.hazards.changed - changed
    if any(version_of(fake) != version for fake, version in before) or any(
        storage_of(tensor.fake) in written for tensor in t.tensors
    ):
        raise GraphBreak("torch_refused", "torch.cond with a branch that changes a tensor")
    if _facts(t, yes) != _facts(t, no):
        raise GraphBreak("torch_refused", "torch.cond with branches that give different things")
    results = [values(body.names) for body in (yes, no)]
    free = [name for body, result in zip((yes, no), results) for name in body.scope.free(result)]
    free = list(dict.fromkeys(free))
    functions = [body.scope.function(free, result) for body, result in zip((yes, no), results)]
    node_args = (t.graph.argument(pred), *functions, values(free))
    return yes.replaced(t, t.graph.add("cond", t.references.to(operators.conditional), node_args))


def _versions(t, args: list[Variable]) -> list[tuple[torch.Tensor, int]]:
    """The tensors that a branch may know, each with how often it has been changed."""
    known = [*t.tensors, *(arg for arg in map(t.realize, args) if isinstance(arg, TensorVariable))]
    return [(tensor.fake, version_of(tensor.fake)) for tensor in known]


def _facts(t, body: Body) -> list:
    """What the other branch must agree with. Raises GraphBreak for a tensor from outside."""
    facts: list = [type(body.result)]
    made = {id(output) for output in body.outputs}
    for leaf in leaves(t, body.result):
        if isinstance(leaf, Constant):
            facts.append((type(leaf.value), leaf.value))
            continue
        if id(leaf) not in made:
            raise GraphBreak("torch_refused", "torch.cond with a branch that gives what it got")
        made.discard(id(leaf))
        fake = leaf.fake
        sizes = [*map(str, fake.shape), *map(str, fake.stride())]
        facts.append((fake.dtype, fake.device, sizes, fake.requires_grad))
    return facts


# -- torch.func.functional_call ------------------------------------------------------------


@rule((torch.func.functional_call, torch.nn.utils.stateless.functional_call))
def functional_call(
    t, module, tensors, args=None, kwargs=None, tie_weights=None, strict=None
):  # fmt: skip
    """The module's call, while its registries hold the given tensors."""
    module = t.realize(module)
    if not isinstance(module, ObjectVariable) or not isinstance(module.live, torch.nn.Module):
        raise GraphBreak("torch_refused", "functional_call of a module made in the frame")
    if strict is not None and t.constant(strict):
        raise GraphBreak("torch_refused", "functional_call that is strict")
    given = _named_tensors(t, tensors)
    if tie_weights is None or t.constant(tie_weights):
        given = _with_ties(module.live, given)
    positional = t.realize(args) if args is not None else None
    if positional is None:
        passed = []
    else:
        is_tuple = isinstance(positional, TupleVariable) and positional.cls is tuple
        passed = list(positional.items) if is_tuple else [positional]
    named = {}
    if kwargs is not None and not is_none(t, kwargs):
        mapping = t.realize(kwargs)
        t.complete(mapping)
        named = {t.constant(key): item for key, item in mapping.items.values()}
    places = [(*_place(t, module, name), tensor) for name, tensor in given.items()]
    for items, key, _ in places:
        # Which of them are one is guarded.
        t.realize(items.items[key][1])
    before = [(items, key, items.items[key]) for items, key, _ in places]
    try:
        for items, key, tensor in places:
            items.items[key] = (items.items[key][0], tensor)
        result = call(t, module, passed, named)
        if any(items.items[key][1] is not tensor for items, key, tensor in places):
            raise GraphBreak("mutation", "functional_call of a module that replaces its tensors")
        return result
    finally:
        for items, key, held in before:
            items.items[key] = held


def _named_tensors(t, tensors: Variable) -> dict[str, Variable]:
    tensors = t.realize(tensors)
    found: dict[str, Variable] = {}
    dicts = [tensors] if isinstance(tensors, DictVariable) else iterate(t, tensors)
    for mapping in map(t.realize, dicts):
        if not isinstance(mapping, DictVariable):
            raise GraphBreak("bad_arguments", "functional_call without a dict of tensors")
        t.complete(mapping)
        for key, item in mapping.items.values():
            name, item = t.constant(key), t.realize(item)
            if name in found or not isinstance(item, TensorVariable):
                raise GraphBreak("bad_arguments", f"functional_call with {name!r}")
            found[name] = item
    return found


def _with_ties(module: torch.nn.Module, given: dict[str, Variable]) -> dict[str, Variable]:
    """Tensors that the module has under several names are replaced under all of them. Raises
    GraphBreak where two of these are given."""
    named = [*module.named_parameters(remove_duplicate=False),
             *module.named_buffers(remove_duplicate=False)]  # fmt: skip
    ties: dict[int, list[str]] = {}
    for name, tensor in named:
        ties.setdefault(id(tensor), []).append(name)
    found = dict(given)
    for names in ties.values():
        replaced = [given[name] for name in names if name in given]
        if any(each is not replaced[0] for each in replaced):
            raise GraphBreak("bad_arguments", f"functional_call with {', '.join(names)}")
        found.update((name, replaced[0]) for name in names if replaced)
    return found


def _place(t, module: Variable, name: str) -> tuple[DictVariable, str]:
    """The registry that holds a tensor, and its key."""
    *path, key = name.split(".")
    for part in path:
        module = t.realize(apply(t, getattr, [module, Constant(part)]))
    if isinstance(module, ObjectVariable) and isinstance(module.live, torch.nn.Module):
        for registry in ("_parameters", "_buffers"):
            items = module_registry(t, module, registry)
            if dict_item(t, items, key) is not None:
                return items, key
    raise GraphBreak("torch_refused", f"functional_call with {name!r}")
