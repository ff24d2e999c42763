"""Compares each graph of a package on its own: machine code for this GPU with the same graph run
eagerly, gradients included, for made-up inputs. `python gpu_graphs.py PACKAGE [--device cpu]`.

It needs no variants, which are bound to one Python, and does not ask for the torch that a package
was made with: it is how a package is tried with another Python or torch.
"""

import argparse
import sys
import warnings
from pathlib import Path

import torch

from aotdyn.package.archive import PackageFile
from aotdyn.package.errors import AotdynError
from aotdyn.package.state import process_state_is
from aotdyn.runtime.artifacts import ordered
from aotdyn.runtime.artifacts.replay import Mismatch, replay


def compare(file, id):
    """(what for, what is wrong) of one graph; nothing is wrong if that is empty."""
    graph = file.graph(id)
    for target in ordered(file.artifacts(id)):
        artifact = file.artifact(id, target)
        if artifact.notes.get("way") == "eager":
            continue
        try:
            with process_state_is(graph.state):
                replay(graph, artifact, {})
        except (Mismatch, AotdynError) as error:
            return target, str(error)
        except Exception as error:
            return target, f"running it: {type(error).__name__}: {error}"[:300]
        return target, ""
    return "", "there is no code for this device"


def answers(device):
    """Whether the device still computes: some errors end all use of it in a process."""
    try:
        return float(torch.ones(2, device=device).sum()) == 2
    except RuntimeError:
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("package", type=Path)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("there is no GPU here")
    warnings.simplefilter("ignore")
    # The eager graph is what is compared with: in all digits.
    torch.backends.cudnn.allow_tf32 = False
    name = "the CPU"
    if options.device == "cuda":
        torch.cuda.init()
        name = torch.cuda.get_device_name()
    right = 0
    with PackageFile.open(options.package) as file:
        print(
            f"{name}, torch {torch.__version__}, Python {sys.version.split()[0]}; "
            f"the package is by torch {file.torch}"
        )
        for id in file.graphs:
            target, problem = compare(file, id)
            print(f"{id} {target or '-':12} {problem or 'as in eager'}", flush=True)
            if problem and not answers(options.device):
                print("the device does not answer any more: the other graphs were not tried")
                break
            right += not problem
        print(f"{right} of {len(file.graphs)} graphs as in eager")
        sys.exit(right < len(file.graphs))


if __name__ == "__main__":
    main()
