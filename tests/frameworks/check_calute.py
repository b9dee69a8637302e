# SPDX-License-Identifier: MIT
"""The drop-in beside a real Calute. What pip has of it may be older than its sandbox: then there are
no types of its own to be used, and the drop-in brings them."""

import asyncio
import importlib

import framework_tools as tools
from checks import boxed, main

from callbox.compat import calute as dropin


def test_types_are_the_packages_own_where_it_has_them():
    importlib.import_module("calute")
    try:
        real = importlib.import_module("calute.security.sandbox")
    except ModuleNotFoundError:
        print("          (this calute has no sandbox)")
        from callbox.compat import _calute_types as real
    assert dropin.SandboxRouter is real.SandboxRouter and dropin.SandboxConfig is real.SandboxConfig


def test_a_router_runs_a_tool_in_a_box():
    config = dropin.SandboxConfig(mode=dropin.SandboxMode.STRICT, sandboxed_tools={"where_am_i"})
    router = dropin.SandboxRouter(config, dropin.get_backend("subprocess", config))
    assert router.decide("where_am_i").reason == "Strict sandbox enforcement"
    boxed(router.execute_in_sandbox("where_am_i", tools.where_am_i, {"x": 21}))


def test_an_event_loop_goes_on():
    async def run():
        backend = dropin.get_backend("subprocess", dropin.SandboxConfig())
        return await backend.execute("later", tools.later, {"x": 1})

    assert asyncio.run(run()) == 2


if __name__ == "__main__":
    main(globals())
