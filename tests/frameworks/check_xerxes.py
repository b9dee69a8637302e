# SPDX-License-Identifier: MIT
"""The drop-in in a real Xerxes: its types, its router, its registry, its executor."""

import asyncio

import framework_tools as tools
import xerxes.security.sandbox as real
import xerxes.security.sandbox_backends as backends
from checks import boxed, main
from xerxes.executors import EnhancedAgentOrchestrator, EnhancedFunctionExecutor, RequestFunctionCall
from xerxes.runtime.features import RuntimeFeaturesConfig, RuntimeFeaturesState
from xerxes.types import Agent

from callbox.compat import xerxes as dropin

STRICT = dict(mode=real.SandboxMode.STRICT, backend_type="subprocess")


def test_types_are_the_packages_own():
    for name in (
        "ExecutionContext", "ExecutionDecision", "SandboxBackend", "SandboxBackendConfig", "SandboxConfig",
        "SandboxExecutionUnavailableError", "SandboxMode", "SandboxRouter",
    ):  # fmt: skip
        assert getattr(dropin, name) is getattr(real, name), name


def test_both_say_the_same():
    theirs = backends.get_backend("subprocess", sandbox_config=real.SandboxConfig())
    ours = dropin.get_backend("subprocess", sandbox_config=real.SandboxConfig())
    assert set(ours.get_capabilities()) == set(theirs.get_capabilities())
    for function, arguments in ((tools.fails, {"how": "so"}), (tools.where_am_i, {"y": 1})):
        said = []
        for backend in (ours, theirs):
            try:
                said.append(backend.execute(function.__name__, function, arguments))
            except RuntimeError as error:
                said.append(str(error))
        assert said[0] == said[1], said
    for backend in (dropin, backends):
        try:
            backend.get_backend("x", sandbox_config=real.SandboxConfig())
        except ValueError as error:
            assert str(error) == "Unknown sandbox backend 'x'. Available backends: docker, subprocess"


def test_its_router_runs_a_tool_in_a_box():
    config = real.SandboxConfig(sandboxed_tools={"where_am_i"}, **STRICT)
    router = real.SandboxRouter(config, dropin.SubprocessSandboxBackend(sandbox_config=config))
    assert router.decide("where_am_i").context is real.ExecutionContext.SANDBOX
    boxed(router.execute_in_sandbox("where_am_i", tools.where_am_i, {"x": 21}))


def executed(name, arguments, **settings):
    """By the executor of an agent whose runtime has found the backend by its name."""
    assert dropin.install()
    config = real.SandboxConfig(sandboxed_tools={name}, **STRICT, **settings)
    state = RuntimeFeaturesState(RuntimeFeaturesConfig(enabled=True, sandbox=config))
    assert isinstance(state.sandbox_backend, dropin.SubprocessSandboxBackend)
    orchestrator = EnhancedAgentOrchestrator()
    agent = Agent(id="a", model="m", functions=[getattr(tools, name)])
    orchestrator.register_agent(agent)
    executor = EnhancedFunctionExecutor(orchestrator)
    call = RequestFunctionCall(name=name, arguments=arguments, agent_id="a", max_retries=0)

    async def run():
        return (await executor._execute_single_call(call, {}, agent, state)).result

    return asyncio.run(run())


def failure(name, arguments, **settings):
    try:
        executed(name, arguments, **settings)
    except RuntimeError as error:
        return str(error)
    raise AssertionError("it did not fail")


def test_its_executor_runs_a_tool_in_a_box():
    boxed(executed("where_am_i", {"x": 21}))


def test_its_executor_runs_async_tools_and_hears_of_failures():
    assert executed("later", {"x": 1}) == 2
    assert "raised ValueError inside subprocess sandbox: so" in failure("fails", {"how": "so"})
    assert "timed out after 0.5s" in failure("sleeps", {"seconds": 60}, sandbox_timeout=0.5)


if __name__ == "__main__":
    main(globals())
