"""What is stored about a GPU kernel besides its machine code, to launch it without Triton."""

from .frozen import frozen

# Bytes of what is passed by value, by Triton's names of types; all others are pointers.
SIZES = {
    "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8,
    "u1": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
    "fp32": 4, "fp64": 8,
}  # fmt: skip


CUDA, HIP = "cuda", "hip"  # whose driver
ALIGNMENT = 16  # bytes; Triton's code takes it for granted for what a graph is called with
BINARY, ASSEMBLY = "bin", "ptx"  # the forms of code: for one architecture, and for later ones


def is_gpu(target: str) -> bool:
    """Whether a target is a GPU, as `cuda:sm_90` is."""
    return target.partition(":")[0] in (CUDA, HIP)


def code_file(name: str, form: str = BINARY) -> str:
    """The artifact's file with a kernel's code. name: in the graph's text."""
    return f"{name}.{form}"


@frozen
class Launch:
    """name: of the kernel in the graph's text. symbol: in the binary. types: of what is passed,
    in order, in Triton's words (`*fp32`, `i64`). padding: null pointers that follow. threads: of a
    block. shared: bytes that a block needs at launch. text: defines `launch`, a function from what
    the text hands over to (x, y, z) and the tuple of what is passed. instead: of which kernel this
    is another configuration, "" for the first one. written: of a kernel that has others, which of
    the things handed over it may write to."""

    name: str
    symbol: str
    types: tuple[str, ...]
    padding: int
    threads: int
    shared: int
    text: str
    instead: str = ""
    written: tuple[int, ...] = ()
