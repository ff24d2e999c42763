"""Why a graph breaks or a frame is skipped: one row per reason, with a hint for the user."""

REASONS: dict[str, tuple[str, str]] = {
    # -- asked for ---------------------------------------------------------------------------
    "requested": ("a graph break was requested", "remove the call to graph_break()"),
    "disabled": ("the function is marked as not to be traced", "remove the disable marker"),
    # -- data that only exists at run time ---------------------------------------------------
    "tensor_branch": (
        "control flow depends on the value of a tensor",
        "use torch.where or torch.cond, or accept a graph on each side",
    ),
    "tensor_value": (
        "the value of a tensor is needed in Python",
        "keep the value in a tensor, or move item()/tolist()/numpy() to the end",
    ),
    "data_dependent": (
        "the shape or value of a result depends on the data",
        "keep shapes independent of the data where possible",
    ),
    "varies": (
        "a value that differs between calls is needed in Python",
        "keep it in a tensor, or out of what is compiled",
    ),
    "live_iterator": (
        "an iterator made before this point is advanced",
        "iterate over the container itself where the graph should be whole",
    ),
    # -- calls -------------------------------------------------------------------------------
    "builtin_call": ("a function implemented in C is called", "move the call out of the hot path"),
    "foreign_call": (
        "a function of a library that is not traced is called",
        "move the call out of the hot path",
    ),
    "unknown_call": ("the called object is not understood", "call a plain function or module"),
    "recursion": ("functions are inlined too deeply", "write the recursion as a loop"),
    "long_trace": ("the frame takes too many instructions", "loop over fewer Python objects"),
    "bad_arguments": ("the arguments do not fit the function", "the call raises in Python as well"),
    "autograd": ("autograd is run or changed inside the frame", "call backward() outside"),
    "inner_gradient": (
        "a gradient within the graph is kept, or gets a hook after the tensor was used",
        "give hooks to a tensor right where it is made; pass what retain_grad() is called on",
    ),
    "checkpoint": (
        "checkpoint() is called in a way that is not captured",
        "pass use_reentrant=False, and no contexts of its own",
    ),
    "lazy": (
        "a lazy module is made, or gets its parameters",
        "call it once before it is compiled",
    ),
    "layout": (
        "a sparse, nested or quantized tensor is used",
        "convert it to a dense one outside of what is compiled",
    ),
    "nested": (
        "a value made inside a function of the graph is used outside of it",
        "return it from the function (checkpoint, autograd.Function, cond, ...)",
    ),
    "torch_refused": ("this torch function is not captured in graphs", "call it outside"),
    "fake_failed": (
        "the operator failed on tensors without data",
        "the operation raises in Python as well, or has no meta kernel",
    ),
    "random": (
        "random numbers are drawn outside of torch",
        "draw them with torch, or before the call",
    ),
    # -- values ------------------------------------------------------------------------------
    "unknown_type": ("no rule knows this kind of value", "use plain containers and objects"),
    "unknown_operation": ("no rule knows this operation on this value", "simplify the expression"),
    "attribute": ("the attribute cannot be followed", "use plain attributes here"),
    "missing_attribute": ("the attribute does not exist", "the access raises in Python as well"),
    "mutation": ("this object cannot be changed while tracing", "change it outside the frame"),
    "no_source": ("the object cannot be reached again from the frame", "pass it as an argument"),
    "reconstruct": ("the object cannot be rebuilt after the graph", "avoid keeping it alive"),
    "hash": ("the key's hash is not known while tracing", "use strings, ints or classes as keys"),
    "subclass": ("the class overrides what the tracer relies on", "use the plain class here"),
    "finalizer": (
        "an object with __del__ is made",
        "make it outside of the frame, or use a context manager",
    ),
    "lifetimes": (
        "the frame looks at what keeps objects alive",
        "count references and collect garbage outside of what is compiled",
    ),
    "locals": (
        "the frame asks for the table of its variables more than once",
        "call locals() once, or break the graph elsewhere",
    ),
    "hooks": ("the module has hooks that are not traced", "remove the hooks for the hot path"),
    # -- control flow ------------------------------------------------------------------------
    "exception": ("an exception leaves the frame", "the program raises here in Python as well"),
    "exception_handling": (
        "the break lies inside try, except or with",
        "move the operation out of the block",
    ),
    "generator": ("a generator, coroutine or async frame", "make it a plain function or a list"),
    "opcode": ("the instruction is not traced", "see the detail"),
    "import": ("an import runs inside the frame", "import at the top of the file"),
    "class_body": ("a class is made inside the frame", "define classes at the top of the file"),
    "late_failure": (
        "an operator may raise inside try or with, after a large tensor was changed in place",
        "make the changes in place outside of the block, or after what may raise",
    ),
    # -- limits ------------------------------------------------------------------------------
    "recompile_limit": ("the entry has too many variants", "mark what differs as dynamic"),
    "builtins": ("a builtin of Python is replaced", "replace it outside of what is compiled"),
    "mode": ("a torch mode or functional transform is active", "compile outside of the transform"),
    "internal": ("the tracer failed", "please report this with the program"),
}


def message(reason: str, detail: str) -> str:
    """One line for logs and errors."""
    text = REASONS[reason][0]
    return f"{text}: {detail}" if detail else text


def hint(reason: str) -> str:
    """What the user could do about it."""
    return REASONS[reason][1]
