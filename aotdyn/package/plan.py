"""How a compiled graph is called: what AOTAutograd made of it, as plain data.

The compiler writes a plan beside the machine code, the runtime reads it. The compiled forward part
takes the graph's inputs and gives, in this order: the new values of `updated` inputs, the graph's
outputs, the bases of outputs that are views, and what the backward part needs (tensors, of which
the last `unchecked` without a check of their version, then ints). The backward part takes the
ints, the tensors and the gradients, and gives a gradient for each input.
"""


from .errors import PackageError
from .frozen import frozen
from .launch import Launch
from .values import Codec, from_bytes, to_bytes
from .weights import FrozenInput

NEW, INPUT, VIEW_OF_INPUT, VIEW_OF_BASE, VIEW_OF_OUTPUT, UNSAFE_VIEW = (
    "new", "input", "view_of_input", "view_of_base", "view_of_output", "unsafe_view",
)  # fmt: skip


@frozen
class Output:
    """An output of the graph.

    kind: one of the names above. base: the index of the input, base or output it is a view of.
    requires_grad: of the tensor that is handed out. gradient: whether the backward part takes a
    gradient for it. contiguous: eager gives it contiguous, in memory of its own, and the code
    does not, so that it is copied.
    """

    kind: str
    base: int = -1
    requires_grad: bool = False
    gradient: bool = False
    contiguous: bool = False


@frozen
class Updated:
    """An input whose new value the caller writes back. data, metadata, storage: what changes.

    gradient: whether the backward part takes a gradient for the new value. visible: the program
    does it where autograd sees it, so that it is an error if the input is a leaf.
    """

    input: int
    data: bool
    metadata: bool
    storage: bool
    requires_grad: bool
    gradient: bool
    visible: bool = False


@frozen
class Layout:
    """The memory layout that the backward part was compiled for: a memory format, else strides."""

    memory_format: str = ""
    size: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()


@frozen
class Constant:
    """A tensor of the graph itself, stored in a file of the artifact as contiguous bytes. stride:
    that which the code takes for granted; () is contiguous."""

    file: str
    dtype: str
    size: tuple[int, ...]
    stride: tuple[int, ...] = ()


# The types that a kernel's arguments can have, besides "tensor".
KERNEL_TYPES = ("int64_t", "int32_t", "double", "float", "bool")


@frozen
class Kernel:
    """A function of the library that the artifact's text calls. name: in the text. symbol: in the
    library. types: of the arguments, each of KERNEL_TYPES or "tensor"."""

    name: str
    symbol: str
    types: tuple[str, ...]


@frozen
class Plan:
    """library: the name of the library's contents, the same for all its vector ISAs.

    forward, backward: the parts' numbers in it; backward is -1 for a graph without gradients.
    bumped: inputs that the code changes in place. detached: inputs that get no gradient. bases:
    how many. tangents: one layout for each gradient that the backward part takes, None for a
    number. partial: for inputs whose gradient does not follow from all of these, the indices of
    those that it does; without them there is none. grad_mode: what the graph leaves gradient mode
    at, if it changes it. autocast: whether autocast was on. mutates: whether any input is changed,
    so that inputs must not overlap.
    external: whether operators are called through torch's dispatcher, described in the library's
    file of the same name with the suffix `.json`. python: the parts are functions of the artifact's
    text, which calls `kernels`; they have no numbers in the library. launches: kernels of a GPU
    that the text starts; each one's code is a file of the artifact (`code_file`). frozen: inputs
    whose values are part of the code. static: inputs of constant size that the program keeps, such
    as weights. captured: whether launches are captured into CUDA graphs unless the user says
    otherwise. uncapturable: why they cannot be, or nothing.
    """

    library: str
    forward: int
    backward: int = -1
    updated: tuple[Updated, ...] = ()
    outputs: tuple[Output, ...] = ()
    bases: int = 0
    ints: int = 0
    unchecked: int = 0
    bumped: tuple[int, ...] = ()
    detached: tuple[int, ...] = ()
    tangents: tuple[Layout | None, ...] = ()
    partial: tuple[tuple[int, tuple[int, ...]], ...] = ()
    constants: tuple[Constant, ...] = ()
    grad_mode: bool | None = None
    autocast: bool = False
    mutates: tuple[int, ...] = ()
    external: bool = False
    python: bool = False
    kernels: tuple[Kernel, ...] = ()
    frozen: tuple[FrozenInput, ...] = ()
    launches: tuple[Launch, ...] = ()
    static: tuple[int, ...] = ()
    captured: bool = False
    uncapturable: str = ""

    @property
    def trains(self) -> bool:
        return self.backward >= 0


PLANS: dict[str, type] = {
    "plan": Plan,
    "output": Output,
    "updated": Updated,
    "memory_layout": Layout,
    "graph_constant": Constant,
    "kernel": Kernel,
    "frozen": FrozenInput,
    "launch": Launch,
}
_CODEC = Codec(PLANS)


def plan_to_bytes(plan: Plan) -> bytes:
    """The stored form of a plan."""
    return to_bytes(_CODEC.encode(plan))


def plan_from_bytes(data: bytes | memoryview) -> Plan:
    """The mirror of `plan_to_bytes`. Raises PackageError for anything that it does not make."""
    found = _CODEC.decode(from_bytes(data))
    if type(found) is not Plan:
        raise PackageError("it is no plan of a compiled graph")
    return found
