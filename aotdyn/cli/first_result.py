"""Times one call of the example's network in a fresh process; `aotdyn demo` runs it as a script.

    python -P first_result.py (eager | compile) FOLDER STARTED
    python -P first_result.py package FOLDER STARTED PACKAGE

FOLDER holds model.py, STARTED is time.time() from just before the process was made. The last line
of the output is a JSON list: seconds from STARTED to the result, and those after `import torch`.
Nothing of aotdyn may be imported before torch, hence a script (-P: this folder has an inspect.py).
"""

import json
import sys
import time


def call(mode: str, folder: str, started: float, imported: float) -> None:
    import torch

    sys.path.insert(0, folder)
    from model import DigitNet

    model = DigitNet().eval()
    function = model if mode == "eager" else torch.compile(model)
    with torch.no_grad():
        function(torch.rand(64, 1, 8, 8)).sum().item()
    now = time.time()
    print(json.dumps([now - started, now - imported]))


def main(mode: str, folder: str, started: str, *rest: str) -> None:
    import torch

    if mode == "again":  # inside `aotdyn run`, where torch.compile means the package
        call("compile", folder, float(started), float(rest[0]))
        return
    imported = time.time()
    torch.set_num_threads(1)
    if mode != "package":
        call(mode, folder, float(started), imported)
        return
    from aotdyn.cli import main as aotdyn

    probe = [__file__, "again", folder, started, str(imported)]
    aotdyn(["run", "--package", rest[0], "--on-miss", "error", *probe])


if __name__ == "__main__":
    main(*sys.argv[1:])
