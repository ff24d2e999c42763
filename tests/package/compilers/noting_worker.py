"""The worker that lowers graphs for GPUs, which besides notes what Triton compiles: for each
binary, by its hash, its source and for which arguments it was made. Into the folder
NOTED_KERNELS."""

import hashlib
import inspect
import itertools
import os
import pickle
import runpy
from pathlib import Path

# As the worker itself does: Triton reads it when it is imported.
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"

import triton

_numbers = itertools.count()


def note(*, src, metadata, metadata_group, **others):
    """Triton calls it for each kernel that it has compiled."""
    names = src.fn.arg_names

    def name_of(key):
        return names[key[0]] if isinstance(key, tuple) else key

    facts = {
        "text": Path(inspect.getsourcefile(src.fn.fn)).read_text(),
        "function": src.fn.__name__,
        "arguments": names,
        "signature": dict(src.signature),
        "constants": {name_of(key): getattr(v, "value", v) for key, v in src.constants.items()},
        "attributes": {name_of(key): value for key, value in src.attrs.items() if value},
        "symbol": metadata["name"],
        "threads": metadata["num_warps"] * metadata["target"].warp_size,
        "shared": metadata["shared"],
    }
    data = pickle.dumps(facts)
    for file, path in metadata_group.items():
        if file.endswith((".cubin", ".hsaco", ".ptx")):
            hashed = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            name = f"{hashed}.{os.getpid()}.{next(_numbers)}"
            (Path(os.environ["NOTED_KERNELS"]) / name).write_bytes(data)


def noted(folder, code):
    """What was noted for a binary. It may have been made several times: what one of them did not
    take for granted the code does not need."""
    hashed = hashlib.sha256(code).hexdigest()
    first, *others = (
        pickle.loads(path.read_bytes()) for path in sorted(Path(folder).glob(f"{hashed}.*"))
    )
    for other in others:
        first["attributes"] = {
            name: [each for each in found if each in other["attributes"].get(name, ())]
            for name, found in first["attributes"].items()
        }
    return first


if __name__ == "__main__":
    triton.knobs.compilation.listener = note
    runpy.run_module("aotdyn.package.compilers.gpu.worker", run_name="__main__")
