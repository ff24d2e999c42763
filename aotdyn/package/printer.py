"""Prints what a recording or a package holds. Called by `aotdyn inspect` and by the pack report.

Nothing of the file is run, and nothing of it reaches a terminal that is not printable text.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from . import archive, recording
from .archive import Artifact, PackageFile
from .break_sites import break_sites
from .errors import AotdynError, PackageError
from .graph import Graph, GraphInput, python_source
from .guard import Guard
from .recording import counted, read_recording
from .reference import (
    Classes,
    ClassLike,
    CodeOf,
    EntryAt,
    Globals,
    GraphOf,
    Import,
    Literal,
    Live,
    Made,
    Reference,
    Runtime,
    State,
    TensorMeta,
    Tensors,
    Verified,
)
from .schema import FORMAT_VERSION
from .variant import EntryKey, Variant


@dataclass(frozen=True)
class _Contents:
    """What recordings and packages have in common. texts: of graphs that have been compiled. ways:
    how each of them was compiled, where there is more than one way."""

    title: str
    summary: str
    entries: dict[EntryKey, list[Variant]]
    graphs: dict[str, Graph]
    texts: dict[str, tuple[str, dict[str, Reference]]]
    targets: dict[str, tuple[str, ...]]
    obstacles: tuple[str, ...] = ()
    hits: dict[str, int] | None = None
    ways: dict[str, tuple[str, ...]] = field(default_factory=dict)


def render(
    path: str | os.PathLike,
    guards: bool = False,
    source: str | None = None,
    graph: str | None = None,
    breaks: bool = False,
) -> str:
    """The contents of a recording or package as text.

    breaks: the places at which graphs break, and nothing else. guards: with the guards of every
    variant. source: with the generated source of the entries whose name contains this. graph: with
    the code of the graphs whose id starts with this. Empty texts mean all. Raises AotdynError when
    nothing is found, PackageError for a file that is damaged or foreign.
    """
    contents = _read(path)
    lines = [contents.title, contents.summary]
    if breaks:
        return _printable("\n".join([*lines, "", *_break_sites(contents)]))
    for key, variants in contents.entries.items():
        lines += ["", *_entry(key, variants, guards)]
    if contents.graphs:
        lines += ["", "graphs:"]
    for id, data in contents.graphs.items():
        lines += _indented(_graph(id, data, contents.targets.get(id, ())))
        lines += _indented(contents.ways.get(id, ()), 4)
    if contents.obstacles:
        lines += ["", "not recorded:", *_indented(contents.obstacles)]
    if source is not None:
        lines += _sources(contents, source)
    if graph is not None:
        lines += _codes(contents, graph)
    return _printable("\n".join(lines))


def _read(path: str | os.PathLike) -> _Contents:
    try:
        with open(path, "rb") as file:
            start = file.read(max(len(archive.MAGIC), len(recording.MAGIC)))
    except OSError as error:
        raise PackageError(f"cannot read {path}: {error.strerror}") from error
    if start.startswith(recording.MAGIC):
        return _read_recording(path)
    if start.startswith(archive.MAGIC):
        with PackageFile.open(path) as package:
            return _read_package(package)
    raise PackageError(f"{path} is neither a recording nor a package of aotdyn")


def _read_recording(path: str | os.PathLike) -> _Contents:
    found = read_recording(path)
    return _Contents(
        f"recording {path}, format {found.header.format}",
        found.summary(),
        _by_entry(found.variants),
        found.graphs,
        {},
        {},
        tuple(map(str, found.obstacles)),
        found.hits,
    )


def _read_package(package: PackageFile) -> _Contents:
    found = package.contents()
    summary = recording.Recording(
        recording.Header(FORMAT_VERSION, found.python, found.torch, found.device, found.script),
        found.variants,
        found.graphs,
    ).summary()
    eager = {id: of_graph.get("eager") for id, of_graph in found.artifacts.items()}
    return _Contents(
        f"package {package.path}, format {FORMAT_VERSION}, {sized(package.size)}",
        f"{summary}\n{_needs(found.targets)}\n{_python(found)}",
        _by_entry(found.variants),
        found.graphs,
        {id: (artifact.text, artifact.names) for id, artifact in eager.items() if artifact},
        {id: tuple(of_graph) for id, of_graph in found.artifacts.items()},
        ways={id: tuple(_ways(of_graph)) for id, of_graph in found.artifacts.items()},
    )


def _ways(artifacts: dict[str, Artifact]) -> Iterator[str]:
    """How a graph was compiled for each target, and why not in the first way."""
    for target, artifact in artifacts.items():
        way, why = artifact.notes.get("way", ""), artifact.notes.get("why", "")
        if way:
            yield f"{target}: {way}{f', because: {why}' if why else ''}"
        if artifact.notes.get("kernels"):
            yield f"{target}: kernels {artifact.notes['kernels']}"
        for note in ("cudagraphs", "frozen"):
            if note in artifact.notes:
                yield f"{target}: {artifact.notes[note]}"


def _by_entry(variants: tuple[Variant, ...]) -> dict[EntryKey, list[Variant]]:
    entries: dict[EntryKey, list[Variant]] = {}
    for variant in variants:
        entries.setdefault(variant.entry, []).append(variant)
    return entries


def _python(found: archive.PackageContents) -> str:
    """What of a package is for one Python only."""
    resumed = {v.entry for v in found.variants if v.entry.point is not None}
    text = f"variants: for Python {found.python} only, by whose bytecode functions are recognized"
    if resumed:
        text += f" and {counted(len(resumed), 'frame')} continued"
    return f"{text}; graphs and their code: for any Python"


def _needs(targets: dict[str, dict[str, str]]) -> str:
    texts = [
        f"{target} (needs {', '.join(f'{what} {value}' for what, value in needs.items())})"
        for target, needs in targets.items()
    ]
    return f"targets: {', '.join(texts) or 'none'}"


def _entry(key: EntryKey, variants: list[Variant], guards: bool) -> Iterator[str]:
    yield _entry_title(key, variants[0])
    for variant in variants:
        graph = f"graph {variant.graph}" if variant.graph else "no graph"
        yield f"  variant {_id(variant)}: {graph}, {counted(len(variant.guards), 'guard')}"
        for obstacle in variant.obstacles:
            yield f"    cannot be packed: {obstacle}"
        if variant.breaks is not None:
            where, why = break_place_and_reason(variant)
            yield f"    graph break at {where}: {why}"
            if variant.breaks.hint:
                yield f"      hint: {variant.breaks.hint}"
        if guards:
            for guard in variant.guards:
                yield from _indented(_guard(guard), 4)


def _break_sites(contents: _Contents) -> Iterator[str]:
    variants = [variant for each in contents.entries.values() for variant in each]
    for site in break_sites(variants, contents.graphs, contents.hits):
        yield from site.lines()
    if contents.obstacles:
        yield "not recorded:"
        yield from _indented(contents.obstacles)


def _entry_title(key: EntryKey, variant: Variant) -> str:
    at = "" if key.point is None else f", continued at byte {key.point.offset}"
    place = f"{variant.file}:{variant.line}  " if variant.file else ""
    return f"{place}{key.qualname}{at}  ({key})"


def _id(variant: Variant) -> str:
    try:
        return variant.id
    except ValueError:  # an int of more than 4300 digits has no text
        return "?"


def break_place_and_reason(variant: Variant) -> tuple[str, str]:
    """The user's line at which a variant ends in a graph break, and why it does."""
    found = variant.breaks
    where = found.stack[-1] if found.stack else f"{variant.file}:{variant.line}"
    return where, f"{found.reason}: {found.detail}" if found.detail else found.reason


def _guard(guard: Guard) -> Iterator[str]:
    user = f"  # {guard.user}" if guard.user else ""
    yield f"{guard.text(describe)}{user}"
    if guard.kind == "TENSORS":
        sources, metas = guard.expected
        for source, meta in zip(sources, metas, strict=True):
            yield f"  {source.text(describe)}: {_meta(meta)}"
    elif guard.kind == "STATE":
        yield f"  {guard.expected}"


def _meta(meta: TensorMeta) -> str:
    def shown(sizes: tuple[int | None, ...]) -> str:
        return ", ".join("any" if size is None else str(size) for size in sizes)

    parts = [
        f"torch.{meta.dtype}[{shown(meta.size)}]",
        meta.device,
        f"stride ({shown(meta.stride)})",
    ]
    if meta.requires_grad:
        parts.append("requires grad")
    if meta.layout != "strided":
        parts.append(meta.layout)
    if meta.cls != Import("torch", "Tensor"):
        parts.append(describe(meta.cls))
    return ", ".join([*parts, *meta.keys])


def _graph(id: str, graph: Graph, targets: tuple[str, ...]) -> Iterator[str]:
    made = f" for {', '.join(targets)}" if targets else ""
    ops = Counter(_operation(node.target) for node in graph.nodes)
    texts = [f"{op} {count}" if count > 1 else op for op, count in ops.items()]
    grad = "" if graph.grad else ", without gradients"
    yield f"{id}{made}: {counted(len(graph.nodes), 'operation')}{grad}: {', '.join(texts)}"
    for item in graph.inputs:
        yield f"  {_input(item)}"
    for symbol in graph.symbols:
        lower = "" if symbol.lower is None else f"{symbol.lower} <= "
        upper = "" if symbol.upper is None else f" <= {symbol.upper}"
        yield f"  {lower}{symbol.name}{upper}, {symbol.hint} when recorded"
    for relation in graph.relations:
        yield f"  {relation}"
    if graph.options:
        yield f"  options: {', '.join(f'{name}={value!r}' for name, value in graph.options)}"
    yield f"  -> {counted(len(graph.outputs), 'output')}"


def _operation(target: Reference | str) -> str:
    if isinstance(target, str):
        return target
    if isinstance(target, Import) and target.qualname:
        return target.qualname.removeprefix("ops.")
    return describe(target)


def _input(item: GraphInput) -> str:
    if item.dtype == "int":
        return f"{item.name}: int {item.value}"
    if item.dtype == "symfloat":
        return f"{item.name}: float"
    size = ", ".join(map(str, item.size))
    kind = "parameter" if item.parameter else ""
    grad = "requires grad" if item.requires_grad else ""
    parts = [
        f"torch.{item.dtype}[{size}]",
        item.device,
        f"stride ({', '.join(map(str, item.stride))})",
    ]
    return f"{item.name}: {', '.join([*parts, *filter(None, (kind, grad))])}"


def _sources(contents: _Contents, wanted: str) -> Iterator[str]:
    """Generated source of the entries that `wanted` is a part of the title of."""
    found = False
    for key, variants in contents.entries.items():
        title = _entry_title(key, variants[0])
        if wanted not in title:
            continue
        found = True
        for variant in variants:
            yield f"\n== {title}, variant {_id(variant)}\n"
            yield variant.check.rstrip("\n") + "\n"
            yield variant.body.rstrip("\n")
            yield from _names(variant.names)
    if wanted and not found:
        raise AotdynError(f"there is no entry with {wanted!r} in its name")


def _codes(contents: _Contents, wanted: str) -> Iterator[str]:
    """Code of the graphs whose id starts with `wanted`."""
    found = [id for id in contents.graphs if id.startswith(wanted)]
    if wanted and not found:
        raise AotdynError(f"there is no graph whose id starts with {wanted!r}")
    for id in found:
        graph = contents.graphs[id]
        yield ""
        yield from _graph(f"== graph {id}", graph, contents.targets.get(id, ()))
        text, names = contents.texts.get(id) or _graph_text(graph)
        yield f"\n{text.rstrip()}"
        yield from _names(names)


def _graph_text(graph: Graph) -> tuple[str, dict[str, Reference]]:
    try:
        return python_source(graph)
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        return f"# no source: {error}", {}


def _names(names: dict[str, Reference]) -> Iterator[str]:
    """What the names of a text stand for, where the name does not say so itself."""
    told = {name: describe(reference) for name, reference in names.items()}
    told = {name: text for name, text in told.items() if text != name}
    if told:
        yield "\nwhere"
    yield from (f"  {name} = {text}" for name, text in told.items())


def describe(reference: Any) -> str:
    """A reference in words short enough to stand inside an expression."""
    match reference:
        case Import(module, qualname):
            if not qualname or module == "builtins":
                return qualname or module
            return f"{module}.{qualname}"
        case Literal(value):
            return _shown(value)
        case CodeOf(function, path):
            owner = "the entry" if function is None else describe(function)
            return f"<code of {owner}{''.join(f'[{index}]' for index in path)}>"
        case EntryAt(point):
            return f"<the entry at byte {point.offset}>"
        case GraphOf(id):
            return f"<graph {id}>"
        case Tensors():
            return "tensors"
        case State():
            return "state"
        case Classes():
            return "classes"
        case ClassLike(order):
            return f"like {order[0] if order else ''}"
        case Runtime(name):
            return name
        case Globals():
            return "globals()"
        case Verified(root):
            return f"<what was found below {root}>"
        case Made(how, parts):
            return f"{how}({', '.join(map(describe, parts))})"
        case Live(what):
            return f"<{what}>"
    return f"<{type(reference).__name__}>"


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:
        return f"<{type(value).__name__} with an int of more digits than Python prints>"


def sized(size: int) -> str:
    """A number of bytes in words."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"


def _indented(lines: Iterator[str] | tuple[str, ...], by: int = 2) -> list[str]:
    return [" " * by + line for line in lines]


def _printable(text: str) -> str:
    """Everything but printable characters, newlines and tabs as escapes."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
        for char in text
    )
