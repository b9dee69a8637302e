# SPDX-License-Identifier: MIT
"""Modules that are loaded before there is a call."""

import sys

import pytest
from test_newcomer import script

from callbox import CallboxError, Tool, Toolbox, run_python

LOADED = "import sys\n[name in sys.modules for name in ('wave', 'xml.dom.minidom')]"


def loaded() -> list:
    import sys

    return [name in sys.modules for name in ("wave", "xml.dom.minidom")]


def test_modules_are_loaded_before_a_function_is_called():
    modules = ["wave", "xml.dom.minidom"]
    assert Toolbox([loaded]).call_sync("loaded").output == [False, False]
    assert Toolbox([loaded], modules=modules).call_sync("loaded").output == [True, True]


def test_modules_are_loaded_before_code_is_run():
    assert run_python(LOADED).result == [False, False]
    assert run_python(LOADED, modules=["wave", "xml.dom.minidom"]).result == [True, True]


def test_a_function_of_the_main_program_finds_them_loaded(tmp_path):
    told = script(
        tmp_path,
        """
        import sys
        from callbox import Toolbox

        def count() -> int:
            loaded = "helper" in sys.modules
            import helper
            return [loaded, helper.loads]

        for modules in ([], ["helper"]):
            box = Toolbox([count], modules=modules)
            print([box.call_sync("count").output for _ in range(2)])
        """,
        helper__py="loads = 1\n",
    )
    assert told == ["[[False, 1], [False, 1]]", "[[True, 1], [True, 1]]"]


@pytest.mark.parametrize("name", ["no_such_module_at_all", "xml.no_such_part", "wave.part", "", ".wave"])
def test_an_unknown_module_is_named(name):
    for wrong in (lambda: Toolbox([loaded], modules=[name]), lambda: run_python("1", modules=[name])):
        with pytest.raises(CallboxError) as raised:
            wrong()
        assert str(raised.value).startswith(f"modules: there is no module {name!r}")


def test_modules_of_the_program_are_not_for_code():
    with pytest.raises(CallboxError, match="there is no module 'boxed_tools'"):
        run_python("1", modules=["boxed_tools"])
    assert "boxed_tools" in sys.modules


@pytest.mark.parametrize("wrong, says", [("numpy", "must be a list of names"), ([sys], "must be names, not module")])
def test_modules_are_a_list_of_names(wrong, says):
    with pytest.raises(TypeError, match=says):
        Toolbox([Tool(loaded)], modules=wrong)
