"""Symbolic shapes: fake tensors, what is dynamic, and the guards that the trace has asked for.

Static first: a size or int is a constant until a later call differs in it (`History`). The
symbols and their arithmetic are those of torch's ShapeEnv; which source a symbol stands for, and
the text of the guards, are ours.
"""

import contextlib
import functools
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sympy
import torch
from sympy.printing.precedence import PRECEDENCE
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch._guards import GuardSource
from torch._guards import Source as TorchSource
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    GuardOnDataDependentSymNode,
    ShapeEnv,
    expect_true,
)
from torch.utils._sympy.functions import Max, Min
from torch.utils._sympy.printers import PythonPrinter

from ..markers import dynamic_marks, dynamic_ranges, strictly_dynamic
from ..package.errors import Unsupported
from ..package.graph import GraphInput, Symbol
from ..package.guard import Guard
from ..package.reference import Import, TensorMeta
from ..package.source import Item, Local, Size, Source, Stride
from ..package.symbolic_sums import mend_sums
from .hazards import Hazards, WatchedFakeMode
from .signals import GraphBreak
from .variables import Constant, Symbolic, TensorVariable, Variable


@dataclass(frozen=True)
class ShapeSource(TorchSource):
    """How ShapeEnv is told where a symbol comes from; the name only has to be unique."""

    text: str

    @property
    def name(self) -> str:
        return self.text

    @property
    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL


class _Length(NamedTuple):
    """What the length of an iterator is known by."""

    of: Source


@dataclass
class History:
    """What an entry has seen at each source, from one trace to the next.

    seen: the int, or the tensor's sizes. floats: all floats. dynamic: sources of ints, and
    (source, dim) of sizes, that have differed between calls.
    """

    seen: dict[Source, Any] = field(default_factory=dict)
    floats: dict[Source, set[str]] = field(default_factory=dict)
    dynamic: set[Any] = field(default_factory=set)

    def learn(self, guards: Iterable[Guard]) -> None:
        """Takes over what a variant was made for, in this process or before it was recorded."""
        for guard in guards:
            if guard.kind == "EQUALS" and type(guard.expected) is int:
                self.int_is_dynamic(guard.source, guard.expected)
            elif guard.kind == "EQUALS" and type(guard.expected) is float:
                self.float_is_dynamic(guard.source, guard.expected)
            elif guard.kind == "TYPE" and guard.expected == Import("builtins", "int"):
                self.dynamic.add(guard.source)
            elif guard.kind in ("ENDS", "TABLE_ENDS"):
                self.note_length(guard.source, guard.expected)
            elif guard.kind == "TENSORS":
                for source, meta in zip(*guard.expected, strict=True):
                    self._learn_sizes(source, meta.size)

    def _learn_sizes(self, source: Source, sizes: tuple[int | None, ...]) -> None:
        if None not in sizes:
            self.dynamic_sizes(source, sizes)
        self.dynamic.update((source, dim) for dim, size in enumerate(sizes) if size is None)

    def int_is_dynamic(self, source: Source, value: int) -> bool:
        """Notes an int; whether it has differed from an earlier one."""
        before = self.seen.setdefault(source, value)
        if type(before) is not int or before != value:
            self.dynamic.add(source)
        return source in self.dynamic

    def float_is_dynamic(self, source: Source, value: float) -> bool:
        """Notes a float; whether it has had many values. Two of them (in training and outside,
        in two layers) are better compiled as constants."""
        found = self.floats.setdefault(source, set())
        found.add(value.hex())
        return len(found) > 2

    def differs(self, source: Any, value: Any) -> bool:
        """Notes a value that is not a number; whether it has differed from an earlier one."""
        before = self.seen.setdefault(source, value)
        if before is not value and (type(before) is not type(value) or before != value):
            self.dynamic.add(source)
        return source in self.dynamic

    def note_length(self, source: Source, length: int) -> None:
        """Notes how many values an iterator has given to the end, if it has given any."""
        if length:
            self.differs(_Length(source), length)

    def length_differs(self, source: Source) -> bool:
        """Whether an iterator has given various numbers of values to the end."""
        return _Length(source) in self.dynamic

    def dynamic_sizes(self, source: Source, sizes: tuple[int, ...]) -> list[bool]:
        """Notes a tensor's sizes; which of them have differed from earlier ones."""
        before = self.seen.setdefault(source, sizes)
        if type(before) is tuple and len(before) == len(sizes):
            for dim, (old, new) in enumerate(zip(before, sizes, strict=True)):
                if old != new:
                    self.dynamic.add((source, dim))
        return [(source, dim) in self.dynamic for dim in range(len(sizes))]


class Shapes:
    """Fakes and symbols of one trace.

    dynamic: None for static first, True for everything dynamic, False for nothing. crowded: the
    entry has so many variants that one for each value of a number would serve nobody. capture:
    whether numbers that depend on data get symbols, rather than to break the graph. here: gives
    the place in the user's program that is traced.
    """

    def __init__(
        self,
        history: History,
        dynamic: bool | None,
        crowded: bool,
        here: Callable[[], str],
        capture: bool = False,
    ):
        self.history = history
        self.crowded = crowded
        self.here = here
        self.dynamic = dynamic
        self._capture = capture
        # symbol -> the source whose value it is
        self.bindings: dict[sympy.Symbol, Source] = {}
        # (source, expression) that must agree
        self.equations: list[tuple[Source, Any, str]] = []
        self._tensors: list[tuple[Source, TensorVariable]] = []
        self._places: list[str] = []
        self._floats: dict[sympy.Symbol, Source] = {}
        self._fixed: list[Guard] = []
        # What steps before this piece of a frame have given: if a float, then another each time.
        self.computed: set[Source] = set()
        # (expression, source) of sizes that must not become constants
        self._strict: list[tuple[Any, Size]] = []

    # Many frames meet no tensor, and no symbol either: these are made when they are needed.

    @functools.cached_property
    def env(self) -> ShapeEnv:
        mend_sums()
        return ShapeEnv(
            duck_shape=True,
            specialize_zero_one=True,
            allow_scalar_outputs=self._capture,
            allow_dynamic_output_shape_ops=self._capture,
        )

    @functools.cached_property
    def fake_mode(self) -> WatchedFakeMode:
        return WatchedFakeMode(shape_env=self.env, allow_non_fake_inputs=False)

    @property
    def hazards(self) -> Hazards:
        """What the operators do that have been run on fakes."""
        return self.fake_mode.hazards if "fake_mode" in vars(self) else Hazards()

    # -- ints --------------------------------------------------------------------------------

    def int_value(self, value: int, source: Source, place: str) -> Variable:
        """An int that came in: a constant, or symbolic where it has been seen to differ."""
        differs = self.history.int_is_dynamic(source, value)
        wanted = self.dynamic and _is_argument(source)
        if self.dynamic is False or not (differs or wanted) or abs(value) >= 2**62:
            return Constant(value, source)
        name = ShapeSource(repr(source))
        symbol = self.env.create_symbol(
            value, name, DimDynamic.DYNAMIC, positive=None, do_not_specialize_zero_one=True
        )
        symint = self.env.create_symintnode(symbol, hint=value, source=name)
        self._bind(symbol, source, place)
        return Symbolic(symint, source=source)

    def float_value(self, value: float, source: Source) -> Variable:
        """A float that came in: a constant, or symbolic where it has had many values, or where an
        eager step has just computed it."""
        differs = self.history.float_is_dynamic(source, value) or source in self.computed
        # Those below the normal ones are 0 to sympy.
        if self.dynamic is False or not differs or not _is_normal(value):
            return Constant(value, source)
        name = ShapeSource(repr(source))
        symbol = self.env.create_unspecified_symbol(
            value, source=name, dynamic_dim=DimDynamic.DYNAMIC
        )
        symfloat = self.env.create_symfloatnode(symbol, hint=value, source=name)
        self.bindings[symbol] = source
        self._floats[symbol] = source
        return Symbolic(symfloat, source=source)

    def decide(self, value: Symbolic) -> bool:
        """The truth of a symbolic value; adds the guard that makes it so."""
        return self.holds(value.value)

    def holds(self, condition: Any) -> bool:
        """The truth of a SymBool or bool; adds the guard that makes it so."""
        with self.at(self.here()), _data_independent():
            return bool(condition)

    def assume(self, condition: Any) -> None:
        """From here on a condition that depends on data holds; the graph has to check it.

        Raises GraphBreak for one that cannot hold.
        """
        try:
            with self.at(self.here()):
                holds = expect_true(condition)
        except (RuntimeError, AssertionError) as error:
            raise GraphBreak("data_dependent", str(condition)) from error
        if not holds:
            raise GraphBreak("data_dependent", f"{condition} cannot hold")

    def assumptions(self) -> list[sympy.Basic]:
        """What operators have assumed of numbers that depend on data, in the order in which they
        did."""
        if "env" not in vars(self):
            return []
        found = [a for each in self.env.deferred_runtime_asserts.values() for a in each]
        return list(dict.fromkeys(assertion.expr for assertion in found))

    def is_of_any_length(self, value: Any) -> bool:
        """Whether a number is an int that depends on ints of Python; sizes, and what tensors hold,
        are never long."""
        if not isinstance(value, torch.SymInt):
            return False
        sources = map(self.bindings.get, value.node.expr.free_symbols)
        return any(not isinstance(source, _OF_TENSORS) for source in sources)

    def function_of(self, value: torch.SymFloat, function: Callable) -> torch.SymFloat:
        """A function of a symbolic number, as guards write it."""
        node = value.node
        hint = float(function(sympy.Float(node.hint)))
        return self.env.create_symfloatnode(function(node.expr), hint=hint)

    def specialize(self, value: Variable) -> Variable:
        """Fixes a symbolic number at its present value; adds the guard that makes it so."""
        if not isinstance(value, Symbolic):
            return value
        if self.crowded:
            raise GraphBreak("varies", value.describe())
        if value.source is not None and value.type is float:
            # By its bits, which a comparison would not see: -0.0 is not 0.0.
            fixed = float(value.value.node.hint)
            self._fixed.append(Guard("EQUALS", value.source, fixed, self.here()))
            return Constant(fixed)
        with self.at(self.here()), _data_independent():
            return Constant(value.type(value.value), None)

    # -- tensors -----------------------------------------------------------------------------

    def fake(self, tensor: torch.Tensor, source: Source, place: str) -> torch.Tensor:
        """The stand-in for a tensor that came in, made as if it had been before the frame: in none
        of the transforms that the frame is in."""
        with temporarily_clear_interpreter_stack():
            return self._fake_outside(tensor, source, place)

    def _fake_outside(self, tensor: torch.Tensor, source: Source, place: str) -> torch.Tensor:
        if torch.is_inference_mode_enabled() and not tensor.is_inference():
            with torch.inference_mode(False):
                return self._fake(tensor, source, place)
        return self._fake(tensor, source, place)

    def _fake(self, tensor: torch.Tensor, source: Source, place: str) -> torch.Tensor:
        dims = self._dynamic_dims(tensor, source)
        if not any(dims):
            return self.fake_mode.from_tensor(tensor, static_shapes=True)
        sizes = [
            self._size(value, Size(source, dim), dims[dim], place)
            for dim, value in enumerate(tensor.shape)
        ]
        self._keep_marks(tensor, source, sizes, place)
        strides = self._strides(tensor, source, sizes, place)
        return self._empty_like(tensor, sizes, strides)

    def _dynamic_dims(self, tensor: torch.Tensor, source: Source) -> list[bool]:
        """Which sizes are symbolic. Parameters are static: their sizes make the model."""
        shape = tuple(tensor.shape)
        marks = dynamic_marks(tensor)
        if self.dynamic is False or isinstance(tensor, torch.nn.Parameter):
            dims = [False] * len(shape)
        elif self.dynamic:
            dims = [True] * len(shape)
        else:
            dims = self.history.dynamic_sizes(source, shape)
        for dim, wanted in marks.items():
            if 0 <= dim < len(dims):
                dims[dim] = wanted
        if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
            return [False] * len(shape)
        return [wanted and size not in (0, 1) for wanted, size in zip(dims, shape, strict=True)]

    def _size(self, value: int, source: Size, is_dynamic: bool, place: str):
        if not is_dynamic:
            return value
        name = ShapeSource(repr(source))
        symbol = self.env.create_symbol(value, name, DimDynamic.DUCK)
        symint = self.env.create_symintnode(symbol, hint=value, source=name)
        self._bind(symbol, source, place)
        return symint

    def _keep_marks(self, tensor: torch.Tensor, source: Source, sizes: list, place: str) -> None:
        """Notes what the program has demanded of the sizes of a tensor."""
        ranges = dynamic_ranges(tensor)
        for dim, size in enumerate(sizes):
            if not isinstance(size, torch.SymInt):
                continue
            if dim in strictly_dynamic(tensor):
                self._strict.append((size.node.expr, Size(source, dim)))
            low, high = ranges.get(dim, (None, None))
            with self.at(place):
                # Each becomes a guard; the present size was checked when it was marked.
                bool(low is None or size >= low)
                bool(high is None or size <= high)

    def _refuse_fixed(self) -> None:
        """Raises Unsupported where a size that was marked dynamic has become a constant."""
        for expression, source in self._strict:
            fixed = self.env.replace(expression)
            if fixed.is_number:
                path = source.text(lambda ref: getattr(ref, "qualname", ""))
                raise Unsupported(
                    f"{path} is marked dynamic, but the program fixes it at {fixed}: "
                    "use maybe_mark_dynamic, or leave the mark out"
                )

    def _strides(self, tensor: torch.Tensor, source: Source, sizes: list, place: str) -> list:
        """Strides as expressions over sizes, in the order from the innermost outwards."""
        strides = tensor.stride()
        result: list[Any] = [0] * len(strides)
        candidates: dict[int, Any] = {1: 1}
        order = sorted(range(len(strides)), key=lambda d: (strides[d], -d))
        for dim in order:
            value = strides[dim]
            free = value not in candidates and value not in (0, 1)
            if value in (0, 1):
                result[dim] = value
            elif value in candidates:
                result[dim] = candidates[value]
            else:
                result[dim] = self._free_stride(value, Stride(source, dim), place)
            candidates.setdefault(value * tensor.shape[dim], result[dim] * sizes[dim])
            if isinstance(result[dim], torch.SymInt) and not free:
                self.equations.append((Stride(source, dim), result[dim].node.expr, place))
        return result

    def _free_stride(self, value: int, source: Stride, place: str):
        """A stride that follows from no size: a constant until it is seen to differ."""
        if not self.history.int_is_dynamic(source, value):
            return value
        name = ShapeSource(repr(source))
        symbol = self.env.create_symbol(value, name, DimDynamic.DYNAMIC)
        self._bind(symbol, source, place)
        return self.env.create_symintnode(symbol, hint=value, source=name)

    def _empty_like(self, tensor: torch.Tensor, sizes: list, strides: list) -> torch.Tensor:
        with self.fake_mode, torch.inference_mode(tensor.is_inference()), torch.enable_grad():
            made = torch.empty_strided(
                sizes, strides, dtype=tensor.dtype, device=tensor.device,
                requires_grad=tensor.requires_grad,
            )  # fmt: skip
            if tensor.requires_grad and not tensor.is_leaf:
                # Not a leaf, as the original: a leaf would refuse updates in place.
                leaf, bare = made, made.detach()
                made = leaf.clone()
                if [str(s) for s in made.stride()] != [str(s) for s in strides]:
                    # Overlapping memory, which nothing copies.
                    made = _NoLeaf.apply(leaf, bare)
        return made

    def _bind(self, symbol: Any, source: Source, place: str) -> None:
        """The symbol is the value of this source; a second source must agree with the first."""
        if not isinstance(symbol, sympy.Symbol):
            return
        if symbol in self.bindings:
            self.equations.append((source, symbol, place))
        else:
            self.bindings[symbol] = source

    def tensor_input(self, name: str, variable: TensorVariable) -> GraphInput:
        """What the graph's data says of a tensor input, as it was when it came in."""
        live = variable.live
        return GraphInput(
            name,
            str(live.dtype).removeprefix("torch."),
            str(live.device),
            live.requires_grad,
            tuple(map(_plain_size, variable.shape)),
            tuple(map(_plain_size, variable.strides)),
            0,
            parameter=isinstance(live, torch.nn.Parameter),
            buffer=_is_buffer(variable.source),
        )

    def meta(self, variable: TensorVariable) -> TensorMeta:
        """What the guard compares of a tensor that came in."""
        live = variable.live
        keys = tuple(
            name
            for name, is_set in (
                ("Conjugate", live.is_conj()),
                ("Negative", live.is_neg()),
                ("Inference", live.is_inference()),
            )
            if is_set
        )
        return TensorMeta(
            str(live.dtype).removeprefix("torch."),
            str(live.device),
            live.requires_grad,
            tuple(size if type(size) is int else None for size in variable.shape),
            tuple(stride if type(stride) is int else None for stride in variable.strides),
            Import(type(live).__module__, type(live).__qualname__),
            str(live.layout).removeprefix("torch."),
            keys,
        )

    # -- what the trace has relied on ------------------------------------------------------------

    @contextlib.contextmanager
    def at(self, place: str):
        """Guards that arise inside belong to this place of the user's program."""
        try:
            yield
        finally:
            missing = len(self.env.guards) - len(self._places)
            self._places.extend([place] * missing)

    def guards(self) -> list[Guard]:
        """The conditions on sizes and ints, in the order in which they arose."""
        self._refuse_fixed()
        found: list[Guard] = list(dict.fromkeys(self._fixed))
        for source in self._floats.values():
            # What sympy simplifies holds for these only.
            found.append(Guard("SHAPE", None, ("math.isfinite({0})", (source,))))
        for source in self.bindings.values():
            if isinstance(source, Size | Stride):
                found.append(Guard("SHAPE", None, ("{0} >= 2", (source,))))
        for source, expression, place in self.equations:
            template, sources = self._template(expression, 1)
            found.append(Guard("SHAPE", None, (f"{{0}} == {template}", (source, *sources)), place))
        conditions = self.env.guards if "env" in vars(self) else []
        places = [*self._places, *[""] * len(conditions)]
        for guard, place in zip(conditions, places, strict=False):
            if self._always_holds(guard.expr):
                continue
            template, sources = self._template(guard.expr, 0)
            found.append(Guard("SHAPE", None, (template, tuple(sources)), place))
        return found

    def _always_holds(self, condition: Any) -> bool:
        """Whether a comparison holds for all sizes: of a number with the lesser or the greater one
        of itself and another, as slices make them."""
        if not isinstance(condition, sympy.LessThan | sympy.GreaterThan):
            return False
        difference = condition.gts - condition.lts
        extremes = [term for term in sympy.Add.make_args(difference) if term.has(Min, Max)]
        if len(extremes) != 1:
            return False
        factor, extreme = extremes[0].as_coeff_Mul()
        if not isinstance(extreme, Min | Max):
            return False
        rest = difference - extremes[0]
        parts = [self.env.bound_sympy(factor * arg + rest).lower >= 0 for arg in extreme.args]
        return all(parts) if isinstance(extreme, Min) == (factor > 0) else any(parts)

    def _template(self, expression: Any, first: int) -> tuple[str, list[Source]]:
        """An expression as a template for `Guard`, its symbols being the sources."""
        sources: list[Source] = []
        names: dict[sympy.Symbol, str] = {}
        for symbol in sorted(expression.free_symbols, key=str):
            if symbol not in self.bindings:
                raise GraphBreak("data_dependent", f"a guard on {symbol}")
            names[symbol] = f"{{{first + len(sources)}}}"
            sources.append(self.bindings[symbol])
        return SymbolPrinter(names).doprint(expression), sources

    def facts(self) -> tuple[tuple[Symbol, ...], tuple[str, ...]]:
        """The symbols, and what the guards make sure of, for whoever compiles the graph."""
        symbols = []
        for symbol in sorted(self.bindings.keys() - self._floats.keys(), key=str):
            bounds = self.env.var_to_range[symbol]
            hint = int(self.env.backed_var_to_val[symbol])
            symbols.append(Symbol(str(symbol), hint, _bound(bounds.lower), _bound(bounds.upper)))
        return tuple(symbols), tuple(str(guard.expr) for guard in self.env.guards)


_OF_TENSORS = (Size, Stride, type(None))


class _NoLeaf(torch.autograd.Function):
    """A tensor as autograd knows results. Nothing is computed of it."""

    @staticmethod
    def forward(ctx, leaf: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(result)
        return result

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> Any:
        raise AssertionError("no backward runs while tracing")


def _is_normal(value: float) -> bool:
    return math.isfinite(value) and abs(value) >= sys.float_info.min


def _is_argument(source: Source) -> bool:
    """Whether a value is an argument, or in a container that is one: what a caller chooses at each
    call, unlike the settings that objects and modules hold."""
    while isinstance(source, Item):
        source = source.of
    return isinstance(source, Local)


@contextlib.contextmanager
def _data_independent():
    """A number that depends on data cannot be decided while tracing."""
    try:
        yield
    except GuardOnDataDependentSymNode as error:
        raise GraphBreak("data_dependent", str(error.cond)) from error


def _bound(value: Any) -> int | None:
    return int(value) if isinstance(value, sympy.Integer) else None


def _plain_size(value: Any) -> int | str:
    return value if type(value) is int else str(value.node.expr)


_ATOM = PRECEDENCE["Atom"]


class SymbolPrinter(PythonPrinter):
    """Prints sympy as Python with the symbols replaced by a template's fields."""

    def __init__(self, names: dict[sympy.Symbol, str]):
        super().__init__()
        self.names = names

    def _print_ToFloat(self, expr: sympy.Expr) -> str:
        return f"float({self._print(expr.args[0])})"

    def _print_Float(self, expr: sympy.Float) -> str:
        return repr(float(expr))

    def _helper_sqrt(self, expr: sympy.Expr) -> str:
        return f"math.sqrt({self._print(expr)})"

    def _of_math(self, expr: sympy.Expr) -> str:
        name = type(expr).__name__.removeprefix("OpaqueUnaryFn_")
        return f"math.{name}({self._print(expr.args[0])})"

    _print_OpaqueUnaryFn_log = _print_OpaqueUnaryFn_exp = _of_math

    def _bitwise(operator: str):
        def printed(self, expr: sympy.Expr) -> str:
            args = [self.parenthesize(arg, _ATOM, strict=True) for arg in expr.args]
            return f" {operator} ".join(args)

        return printed

    _print_BitwiseFn_bitwise_and = _bitwise("&")
    _print_BitwiseFn_bitwise_or = _bitwise("|")
    _print_BitwiseFn_bitwise_xor = _bitwise("^")

    def _print_Symbol(self, expr: sympy.Symbol) -> str:
        return self.names[expr]


def _is_buffer(source: Source | None) -> bool:
    """Whether a value is found among a module's buffers."""
    of = getattr(source, "base", None)
    return type(of) is Item and of.key == "_buffers"
