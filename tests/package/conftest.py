"""The samples that the tests of the folder share: what the golden files hold."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

# How long an example takes says nothing on a machine that is busy with other things.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def samples() -> ModuleType:
    """The module golden/make.py."""
    path = Path(__file__).parent / "golden" / "make.py"
    spec = importlib.util.spec_from_file_location("golden_make", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
