# SPDX-License-Identifier: MIT
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import boxed_tools
from callbox import Toolbox

SECRET = "CALLBOX_TEST_SECRET"
os.environ[SECRET] = "the agent's own"


@pytest.fixture(scope="session")
def box():
    """A toolbox with every function of boxed_tools that is marked."""
    marked = [item for item in vars(boxed_tools).values() if hasattr(item, "__callbox_tool__")]
    assert len(marked) > 15
    return Toolbox(marked)
