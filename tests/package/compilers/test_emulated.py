"""A GPU that is emulated while programs are recorded computes what the CPU computes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from aotdyn.package.compilers.cache import Cache
from aotdyn.package.compilers.gpu import emulated
from aotdyn.package.compilers.gpu.made_up import is_made_up, made_up_environment
from aotdyn.package.compilers.toolchain import Toolchain
from aotdyn.package.errors import AotdynError

PROGRAMS = Path(__file__).with_name("emulated_programs.py")


@pytest.mark.slow
def test_programs_compute_what_they_do_on_the_cpu():
    environment = os.environ | made_up_environment(Toolchain.find(Cache()))
    done = subprocess.run(
        [sys.executable, PROGRAMS], capture_output=True, text=True, env=environment
    )
    assert not done.returncode, done.stderr[-2000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    assert len(answers) > 15
    assert {name: answer for name, answer in answers.items() if answer} == {}


@pytest.mark.skipif(torch.cuda.is_available(), reason="about machines without a GPU")
def test_a_process_that_was_not_prepared_says_so():
    assert not is_made_up()
    assert not emulated.is_there("cuda:sm_90")
    with (
        pytest.raises(AotdynError, match="use `aotdyn record --device cuda:sm_90 SCRIPT`"),
        emulated.emulated("cuda:sm_90"),
    ):
        pytest.fail("there is no such device")
    assert not torch.cuda.is_available()


def test_unknown_devices_are_refused():
    with pytest.raises(AotdynError, match="there is no GPU target 'cuda:sm_1'"):
        emulated.is_there("cuda:sm_1")
