"""The Python around the compiled parts, as text: from a part's own inputs and outputs, which may be
ints or None, to the tensors of its code."""

import ast
from typing import Any

from ..refusal import Refused
from .tensors_only import Interface, text


def adapter_text(
    interfaces: dict[str, Interface], first_constant: dict[str, int], conditions: list[Any]
) -> str:
    """A function for each part, from the list of its inputs to the list of its outputs, and `fits`.

    Free names: `run_forward`, `run_backward`, `constants`, `sized`, which makes a tensor of a
    size, and `number`, which makes one of an int or float. `fits` says whether the code is right
    for a list of inputs; without conditions there is none.
    """
    texts = [
        _function(name, interface, first_constant[name]) for name, interface in interfaces.items()
    ]
    if conditions:
        texts.append(_fits(interfaces["forward"], conditions))
    return "\n".join(texts)


def _function(name: str, interface: Interface, first: int) -> str:
    lines = [f"def {name}(a):"]
    both = (*interface.inputs, *interface.outputs)
    texts = [how[1] for how in both if how[0] in ("size", "int", "number")]
    lines += _symbols(interface, texts)
    given = [_input(how, first) for how in interface.inputs]
    whole = given == [f"a[{index}]" for index in range(interface.arity)]
    passed = "a" if whole else f"[{', '.join(given)}]"
    call = f"run_{name}({passed})"
    plain = all(how == ("tensor", index) for index, how in enumerate(interface.outputs))
    if plain and whole:
        return f"{name} = run_{name}\n"
    if plain:
        lines.append(f"    return {call}")
    else:
        lines.append(f"    o = {call}")
        lines.append(f"    return [{', '.join(map(_output, interface.outputs))}]")
    return "\n".join(lines) + "\n"


def _fits(interface: Interface, conditions: list[Any]) -> str:
    for condition in conditions:
        for symbol in condition.free_symbols:
            if str(symbol) not in interface.symbols:
                raise Refused(f"the condition {condition} does not follow from the inputs")
    texts = list(map(text, conditions))
    lines = ["def fits(a):", *_symbols(interface, texts)]
    lines.append(f"    return {' and '.join(f'({each})' for each in texts)}")
    return "\n".join(lines) + "\n"


def _symbols(interface: Interface, texts: list[str]) -> list[str]:
    """The symbols that the texts use."""
    used: set[str] = set()
    for each in texts:
        used.update(_names(each))
    return [
        f"    {symbol} = {where}" for symbol, where in interface.symbols.items() if symbol in used
    ]


def _names(expression: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Name)}


def _input(how: tuple, first: int) -> str:
    kind, value = how
    if kind == "input":
        return f"a[{value}]"
    if kind == "int":
        return value
    if kind == "float":
        return f"number(a[{value}])"
    if kind == "number":
        return f"number({value})"
    return f"constants[{first + value}]" if kind == "constant" else f"sized({value})"


def _output(how: tuple) -> str:
    kind = how[0]
    if kind == "none":
        return "None"
    if kind == "int":
        return how[1]
    return f"o[{how[1]}]" if kind == "tensor" else f"o[{how[1]}].item()"
