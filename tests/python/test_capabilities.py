# SPDX-License-Identifier: MIT
"""What is enforced, before there is a call: as the report of one then says."""

import pytest

import callbox
from callbox import CallboxError, Policy, run


@pytest.mark.parametrize("box", ["namespaces", "landlock"])
def test_a_policy_tells_what_the_report_of_a_call_says(box):
    policy = Policy.from_json({"box": box})
    told = policy.capabilities()
    report = run(["true"], policy=policy)
    assert told.backend == box
    assert told.met
    assert [(i.name, i.enforced, i.by) for i in told.guarantees] == [tuple(i) for i in report.guarantees]
    assert told.warnings == report.warnings
    assert told.of("files").required
    assert not told.of("cpu").enforced
    assert "limits" in told.of("cpu").fix
    with pytest.raises(KeyError):
        told.of("nothing")
    assert callbox.capabilities(policy) == told


def test_what_is_required_and_missing_is_told_with_its_fix():
    told = callbox.capabilities(Policy.from_json({"limits": {"cpus": 0.5}}))
    share = told.of("cpu")
    assert share.required
    assert told.met == share.enforced
    assert share.enforced or share.fix


def test_a_policy_that_cannot_be_kept_raises():
    with pytest.raises(CallboxError, match="/nonexistent/place"):
        Policy(read=["/nonexistent/place"]).capabilities()


def test_no_policy_says_that_there_is_no_box():
    for form in ({"box": "none"}, {"mode": "off"}):
        with pytest.raises(CallboxError) as caught:
            Policy.from_json(form)
        assert "only the application says" in caught.value.hint


def test_backends_say_whether_they_can_be_used():
    found = {item.name: item for item in callbox.backends()}
    assert sorted(found) == ["auto", "host", "landlock", "namespaces"]
    assert all(item.available or item.why for item in found.values())
    assert found["host"].available
    assert found["auto"].uses in ("namespaces", "landlock")
    assert not any(i.enforced for i in found["host"].guarantees if i.name in ("files", "network", "syscalls"))
    assert {i.by for i in found["host"].guarantees if i.name == "files"} == {"no box: mode off"}


def test_what_is_no_policy_is_refused_as_by_run():
    for asked in (callbox.capabilities, lambda policy: run(["true"], policy=policy)):
        with pytest.raises(TypeError, match=r"a policy is a callbox\.Policy, not dict"):
            asked({"network": "host"})
