#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Directories of manifests that change while a toolbox is open: what is told on the pollable
descriptor, and what can be called."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import threading
import time

import harness
import library
import tooling
from harness import case, check, equal
from tooling import SCRATCH, bad, good, manifest, refused, toolbox

SHORT = bool(os.environ.get("CALLBOX_SMOKE"))


def saying(word, name="t", **more):
    return json.dumps(manifest(name, ["echo", word], **more))


def replace(path, text):
    """In one step, as careful programs do."""
    new = path.parent / (path.name + ".new")
    new.write_text(text)
    os.rename(new, path)


def is_ready(box):
    return bool(select.select([box], [], [], 0)[0])


def changes(box, count, seconds=20):
    """So many changes, each waited for by the descriptor; and no more after them."""
    found, deadline = [], time.monotonic() + seconds * harness.SLOW
    while len(found) < count:
        event = box.step()
        if event:
            found.append(event)
            continue
        left = deadline - time.monotonic()
        check(left > 0 and select.select([box], [], [], left)[0], lambda: f"only {found} came, not {count}")
    more = box.step()
    check(more is None, lambda: f"{more} came as well, after {found}")
    check(not is_ready(box), "the descriptor is readable though there is nothing")
    return [event[:3] for event in found] if count != 1 else found[0]


def said(box, name="t"):
    return good(box.call(name)).strip()


@contextlib.contextmanager
def watched(*files, **options):
    """A toolbox that follows a folder with these files: (name, text)."""
    folder = SCRATCH.directory()
    for name, text in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    with toolbox(**options) as box:
        box.load(folder)
        yield box, folder


@case("a folder is loaded in the order of its files; what is no manifest is left alone")
def loads():
    with watched(("b.json", saying("b", "b")), ("a.json", saying("a", "a")), (".hidden.json", "{"), ("notes.txt", "{"), ("c.json~", "{"),
                 ("policies/x.json", "{}"), (".json", "{")) as (box, _):  # fmt: skip
        check(is_ready(box), "the descriptor is not readable")
        equal(changes(box, 2), [("added", "a", "a.json"), ("added", "b", "b.json")], "the changes")
        equal([tool["name"] for tool in box.list()], ["a", "b"], "the tools")
        equal((said(box, "a"), said(box, "b")), ("a", "b"), "what they say")


@case("a file that is gone before it is looked at is no broken one")
def gone():
    with watched(("a.json", saying("a", "a")), ("b.json", saying("b", "b"))) as (box, folder):
        changes(box, 2)
        (folder / "short.json").write_text(saying("short", "short"))
        (folder / "short.json").unlink()
        (folder / "b.json").unlink()
        equal(changes(box, 1)[:3], ("removed", "b", "b.json"), "of a short life")
        (folder / "a.json").write_text("{")
        (folder / "c.json").write_text(saying("c", "c"))
        equal(sorted(changes(box, 2)), [("added", "c", "c.json"), ("broken", "a", "a.json")], "before")
        (folder / "c.json").unlink()  # its name is free: broken files are read again
        (folder / "a.json").unlink()
        equal(changes(box, 2), [("removed", "c", "c.json"), ("removed", "a", "a.json")], "after")
        os.symlink("nowhere", folder / "link.json")
        kind, _, name, text = changes(box, 1)
        check((kind, name) == ("broken", "link.json") and "No such file" in text, f"a link that leads nowhere: {kind} {name} {text}")


@case("files that are written, replaced, linked, moved and deleted are followed")
def follows():
    with watched() as (box, folder):
        equal((box.step(), is_ready(box)), (None, False), "a change at first")
        path = folder / "t.json"
        path.write_text(saying("written"))
        equal(changes(box, 1), ("added", "t", "t.json", ""), "of a file that is written")
        equal(said(box), "written", "what it says")
        replace(path, saying("replaced"))
        equal(changes(box, 1)[:3], ("updated", "t", "t.json"), "of one that is replaced")
        equal(said(box), "replaced", "what it says")
        path.write_text(saying("again"))
        equal(changes(box, 1)[:3], ("updated", "t", "t.json"), "of one that is written again")
        os.rename(path, folder / "u.json")
        equal(changes(box, 2), [("removed", "t", "t.json"), ("added", "t", "u.json")], "of one that is renamed")
        os.unlink(folder / "u.json")
        equal(changes(box, 1)[:3], ("removed", "t", "u.json"), "of one that is deleted")
        refused(box.call("t"), "unknown tool: t")
        elsewhere = SCRATCH.directory() / "linked"
        elsewhere.write_text(saying("linked"))
        os.symlink(elsewhere, folder / "s.json")
        equal(changes(box, 1)[:3], ("added", "t", "s.json"), "of a symbolic link")
        equal(said(box), "linked", "what it says")
        os.unlink(folder / "s.json")
        changes(box, 1)
        os.link(elsewhere, folder / "h.json")
        equal(changes(box, 1)[:3], ("added", "t", "h.json"), "of a hard link")
        os.rename(folder / "h.json", folder / "h.txt")
        equal(changes(box, 1)[:3], ("removed", "t", "h.json"), "of one that is no manifest any more")


@case("a file that is written in pieces is read when it is closed, and not before")
def pieces():
    with watched() as (box, folder):
        text = saying("whole", description="x" * 20000)
        with open(folder / "t.json", "w") as stream:
            for at in range(0, len(text), 500):
                stream.write(text[at : at + 500])
                stream.flush()
                equal(box.step(), None, f"a change after {at} bytes")
        equal(changes(box, 1)[:3], ("added", "t", "t.json"), "after it was closed")
        with open(folder / "t.json", "r+") as stream:  # the last good version stays, whatever is there meanwhile
            stream.truncate(10)
            stream.flush()
            equal(box.step(), None, "a change of one that is open")
            equal(said(box), "whole", "what it says meanwhile")
            stream.write(saying("new"))
        equal(changes(box, 1)[:3], ("updated", "t", "t.json"), "of one that was written anew")
        equal(said(box), "new", "what it says")
        # Another that comes while one is open must not have it read early.
        with open(folder / "u.json", "w") as stream:
            stream.write('{"name": "u"')
            stream.flush()
            (folder / "v.json").write_text(saying("v", "v"))
            equal(changes(box, 1)[:3], ("added", "v", "v.json"), "of the other")
            os.unlink(folder / "v.json")
            equal(changes(box, 1)[:3], ("removed", "v", "v.json"), "of the other")
            stream.seek(0)
            stream.write(saying("u", "u"))
        equal(changes(box, 1)[:3], ("added", "u", "u.json"), "of the one that was open")


@case("a broken manifest is told with every mistake, and the last good version stays")
def broken():
    with watched(("t.json", saying("good"))) as (box, folder):
        changes(box, 1)
        replace(folder / "t.json", '{"name": "t", "colour": 1, "run": {"command": []}}')
        kind, tool, file, text = changes(box, 1)
        equal((kind, tool, file), ("broken", "t", "t.json"), "the change")
        lines = text.splitlines()
        check(len(lines) == 3 and any(line.startswith("colour: ") for line in lines) and any(line.startswith("inputSchema: ") for line in lines)
              and any(line.startswith("run.command: ") for line in lines), f"the mistakes are {lines}")  # fmt: skip
        check("(to fix it: " in text, f"no fix: {text}")
        equal(said(box), "good", "what it says")
        for text in ("", "{", "[]", "null", '{"name": "t"', "\xff", '{"name":"t","name":"t"}', " " * 1100000):
            replace(folder / "t.json", text)
            equal(changes(box, 1)[:3], ("broken", "t", "t.json"), f"the change to {text[:20]!r}")
        equal(said(box), "good", "what it says")
        replace(folder / "t.json", saying("mended"))
        equal(changes(box, 1)[:3], ("updated", "t", "t.json"), "of one that was mended")
        equal(said(box), "mended", "what it says")
        replace(folder / "t.json", "{")
        changes(box, 1)
        os.unlink(folder / "t.json")
        equal(changes(box, 1)[:3], ("removed", "t", "t.json"), "of a broken one that is deleted")
        refused(box.call("t"), "unknown tool: t")
        (folder / "new.json").write_text("{")
        equal(changes(box, 1)[:3], ("broken", "", "new.json"), "of one that never was good")
        os.unlink(folder / "new.json")
        equal(box.step(), None, "a change when it goes")
        os.mkdir(folder / "d.json")
        os.mkfifo(folder / "p.json")
        os.symlink("/nonexistent", folder / "l.json")
        equal(changes(box, 1)[:3], ("broken", "", "l.json"), "of a link to nothing; a directory and a pipe are not read")
        os.rename(folder / "p.json", folder / "q.json")
        equal(changes(box, 1), ("broken", "", "q.json", "cannot be read: it is no regular file"), "of a pipe that was moved here: nobody waits for it")


@case("a name belongs to the file that gave it first, and passes on when it is free")
def names():
    with watched(("a.json", saying("a")), ("b.json", saying("b"))) as (box, folder):
        equal(changes(box, 2), [("added", "t", "a.json"), ("broken", "", "b.json")], "the changes at first")
        equal(said(box), "a", "what it says")
        os.unlink(folder / "a.json")
        equal(changes(box, 2), [("removed", "t", "a.json"), ("added", "t", "b.json")], "after the first was deleted")
        equal(said(box), "b", "what it says")
        (folder / "c.json").write_text(saying("c"))
        equal(changes(box, 1)[:3], ("broken", "", "c.json"), "of a third")
        replace(folder / "b.json", saying("b", "other"))
        equal(changes(box, 3), [("removed", "t", "b.json"), ("added", "other", "b.json"), ("added", "t", "c.json")],
              "after the second took another name")  # fmt: skip
        replace(folder / "b.json", saying("b"))
        equal(changes(box, 1)[:3], ("broken", "other", "b.json"), "of one that wants a name in use")
        equal(said(box, "other"), "b", "its last good version")
        os.unlink(folder / "c.json")
        equal(changes(box, 3), [("removed", "t", "c.json"), ("removed", "other", "b.json"), ("added", "t", "b.json")], "after that one was deleted")
        (folder / "x.json").write_text("{")
        (folder / "y.json").write_text(saying("y", "y"))
        changes(box, 2)
        os.unlink(folder / "y.json")
        equal(changes(box, 1)[:3], ("removed", "y", "y.json"), "of a deletion: the broken one is not told again")


@case("what calls add and remove, and what files give, keep out of each other's way")
def calls_and_files():
    with watched() as (box, folder):
        box.add(manifest("t", ["echo", "by a call"]))
        equal(changes(box, 1), ("added", "t", "", ""), "of a call")
        (folder / "t.json").write_text(saying("by a file"))
        kind, _, _, text = changes(box, 1)
        check(kind == "broken" and "added by a call" in text, f"{kind}: {text}")
        equal(said(box), "by a call", "what it says")
        box.remove("t")
        equal(changes(box, 2), [("removed", "t", ""), ("added", "t", "t.json")], "after the call took its own away")
        equal(said(box), "by a file", "what it says")
        box.add(manifest("t", ["echo", "taken over"]))
        equal(changes(box, 1)[:3], ("updated", "t", ""), "of a call that replaces a file's")
        os.unlink(folder / "t.json")
        equal(box.step(), None, "a change when that file goes")
        equal(said(box), "taken over", "what it says")
        box.remove("t")
        (folder / "t.json").write_text(saying("once more"))
        equal(changes(box, 2), [("removed", "t", ""), ("added", "t", "t.json")], "of the file that comes again")
        box.remove("t")
        equal(changes(box, 1)[:3], ("removed", "t", ""), "of a call that removes a file's")
        replace(folder / "t.json", saying("back"))
        equal(changes(box, 1)[:3], ("added", "t", "t.json"), "of the file that is written again")


@case("tools are read again when the policy that they name changes, comes or goes")
def policies():
    with watched(("t.json", saying("t", policy="p")), ("u.json", saying("u", "u", policy="q")), ("policies/q.json", "{}")) as (box, folder):
        equal(changes(box, 2), [("broken", "", "t.json"), ("added", "u", "u.json")], "at first")
        (folder / "policies" / "p.json").write_text('{"limits": {"wall": 5}}')
        equal(changes(box, 1)[:3], ("added", "t", "t.json"), "of a policy that comes")
        replace(folder / "policies" / "p.json", '{"limits": {"wall": 6}}')
        equal(changes(box, 1)[:3], ("updated", "t", "t.json"), "of a policy that changes")
        replace(folder / "policies" / "p.json", '{"limits": {"wal": 6}}')
        kind, tool, _, text = changes(box, 1)
        check((kind, tool) == ("broken", "t") and "p.json: limits.wal" in text, f"{kind} {tool}: {text}")
        equal(said(box), "t", "what it says")
        replace(folder / "t.json", saying("new", policy="later"))
        equal(changes(box, 1)[:2], ("broken", "t"), "of a manifest that names another, which is missing")
        os.symlink(folder / "policies" / "q.json", folder / "policies" / "later.json")
        equal(changes(box, 1)[:3], ("updated", "t", "t.json"), "of that one, as a link")
        equal(said(box), "new", "what it says")
        os.unlink(folder / "policies" / "later.json")
        equal(changes(box, 1)[:2], ("broken", "t"), "of a policy that goes")
        equal(said(box), "new", "what it says")


@case("a folder of policies may come later, and be replaced")
def later_policies():
    with watched(("t.json", saying("t", policy="p"))) as (box, folder):
        equal(changes(box, 1)[:2], ("broken", ""), "at first")
        new = SCRATCH.directory()
        (new / "p.json").write_text("{}")
        os.rename(new, folder / "policies")
        equal(changes(box, 1)[:3], ("added", "t", "t.json"), "of the folder")
        replace(folder / "policies" / "p.json", '{"limits": {"wall": 5}}')
        equal(changes(box, 1)[:3], ("updated", "t", "t.json"), "of a policy in it")
        newer = SCRATCH.directory()
        (newer / "p.json").write_text('{"limits": {"wall": 1}}')
        os.rename(folder / "policies", folder / "old")
        os.rename(newer, folder / "policies")
        changed = [box.step()]
        while changed[-1]:
            changed.append(box.step())
        check(changed[:-1] and {event[0] for event in changed[:-1]} <= {"updated", "broken"} and changed[-2][0] == "updated", f"of another folder: {changed}")
        replace(folder / "policies" / "p.json", '{"limits": {"wall": 2}}')
        equal(changes(box, 1)[:3], ("updated", "t", "t.json"), "of a policy in that one")
        shutil.rmtree(folder / "old")
        equal(box.step(), None, "a change when the old folder goes")


@case("a folder that is removed or moved away takes its tools with it")
def folder_gone():
    for gone in (shutil.rmtree, lambda path: os.rename(path, str(path) + "-moved")):
        with watched(("a.json", saying("a", "a")), ("b.json", saying("b", "b")), ("policies/p.json", "{}")) as (box, folder):
            changes(box, 2)
            box.add(manifest("kept", ["echo", "kept"]))
            changes(box, 1)
            gone(folder)
            equal(sorted(changes(box, 2)), [("removed", "a", "a.json"), ("removed", "b", "b.json")], "the changes")
            equal([tool["name"] for tool in box.list()], ["kept"], "the tools")
            equal(said(box, "kept"), "kept", "what is left says")


@case("several folders, one of them twice, and one that is none")
def folders():
    with watched(("t.json", saying("first"))) as (box, folder):
        other = SCRATCH.directory()
        (other / "t.json").write_text(saying("second"))
        (other / "u.json").write_text(saying("u", "u"))
        changes(box, 1)
        box.load(other)
        equal(changes(box, 2), [("broken", "", "t.json"), ("added", "u", "u.json")], "of the second folder")
        box.load(folder)
        box.load(str(folder) + "/../" + folder.name)
        equal(box.step(), None, "a change when a folder is loaded again")
        replace(other / "t.json", saying("second, changed"))
        equal(changes(box, 1)[:3], ("broken", "", "t.json"), "of a file with the name of another folder's")
        equal(said(box), "first", "what it says")
        os.unlink(folder / "t.json")
        equal(changes(box, 2), [("removed", "t", "t.json"), ("added", "t", "t.json")], "after the first was deleted")
        equal(said(box), "second, changed", "what it says")
        for path in ("/nonexistent", str(other / "u.json"), ""):
            try:
                box.load(path)
                raise harness.Failed(f"{path} was loaded")
            except library.CallboxError as error:
                check(error.where == "directory" and path in str(error), f"{error.where}: {error}")


@case("a call keeps the version that it began with")
def versions():
    with watched(("t.json", json.dumps(manifest("t", ["sh", "-c", "sleep 0.3; echo old"])))) as (box, folder):
        changes(box, 1)
        call = box.start("t")
        replace(folder / "t.json", saying("new"))
        changes(box, 1)
        equal(said(box), "new", "what the new one says")
        os.unlink(folder / "t.json")
        changes(box, 1)
        equal(good(call.wait()), "old\n", "what the old one says")
        call.free()


@case("hundreds of files come and go", alone=True)
def many():
    count = 100 if SHORT else 400
    with watched() as (box, folder):
        for i in range(count):
            (folder / f"{i:04}.json").write_text(saying(str(i), f"t{i}"))
        equal({event[:2] for event in changes(box, count)}, {("added", f"t{i}") for i in range(count)}, "the changes")
        equal(len(box.list()), count, "the tools")
        equal(said(box, f"t{count - 1}"), str(count - 1), "what the last says")
        for i in range(count):
            os.unlink(folder / f"{i:04}.json")
        equal(len(changes(box, count)), count, "the changes when they go")
        equal(box.list(), [], "the tools")


@case("when the kernel lost count of the changes the folder is read anew", alone=True)
def overflow():
    with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as stream:
        queued = int(stream.read())
    if queued > 70000:
        raise harness.Skip(f"the kernel queues {queued} events")
    with watched(("gone.json", saying("gone", "gone")), ("kept.json", saying("kept", "kept"))) as (box, folder):
        changes(box, 2)
        noise = folder / "noise"
        for _ in range(queued // 2 + 10):  # two events each: made and moved
            os.close(os.open(noise, os.O_CREAT | os.O_WRONLY))
            os.unlink(noise)
        os.unlink(folder / "gone.json")
        (folder / "new.json").write_text(saying("new", "new"))
        found = set()
        for _ in range(queued):
            event = box.step()
            if event:
                found.add(event[:2])
            elif not is_ready(box):
                break
        check({("removed", "gone"), ("added", "new")} <= found, f"the changes are {found}")
        equal([tool["name"] for tool in box.list()], ["kept", "new"], "the tools")


@case("changes that nobody takes are forgotten from the oldest on")
def forgotten():
    with toolbox() as box:
        for _ in range(2100):
            box.add(manifest("t"))
            box.remove("t")
        found = 0
        while box.step():
            found += 1
        equal(found, 4096, "the changes that are left")
        check(not is_ready(box), "the descriptor is readable though there is nothing")


WRITER = """
import os, sys, json
texts = [json.dumps({"name": "t", "inputSchema": {"type": "object"}, "run": {"command": ["echo", "x" * n]}}) for n in (1, 30000, 100, 60000)]
for i in range(int(sys.argv[2])):
    with open(sys.argv[1], "w") as stream:
        for at in range(0, len(texts[i % 4]), 4096):
            stream.write(texts[i % 4][at:at + 4096])
            stream.flush()
    if i % 7 == 0:
        os.unlink(sys.argv[1])
"""


@case("a file that is rewritten without pause neither crashes the agent nor holds up a step", alone=True)
def restless():
    with watched(("t.json", saying("t"))) as (box, folder):
        changes(box, 1)
        writer = subprocess.Popen([sys.executable, "-I", "-c", WRITER, str(folder / "t.json"), "200" if SHORT else "1000"])
        steps = kinds = 0
        try:
            while writer.poll() is None:
                event = box.step()
                steps += 1
                kinds += event is not None
        finally:
            harness.end(writer)
        check(steps > 10 and kinds > 10, f"{steps} steps, {kinds} changes")
        while box.step():
            pass
        replace(folder / "t.json", saying("at last"))
        changes(box, 1)
        equal(said(box), "at last", "what it says in the end")


@case("threads may list, call, add and step at once")
def threads():
    with watched(("t.json", saying("t"))) as (box, folder):
        wrong, stop = [], threading.Event()

        def repeat(act):
            try:
                while not stop.is_set():
                    act()
            except Exception as error:  # told below: it must not end the thread in silence
                wrong.append(repr(error))

        def call():
            report = box.call("t")
            if not report["tool"]["ok"] and report["tool"]["error"] != "unknown tool: t":
                wrong.append(report["tool"])

        def change():
            box.add(manifest("by-call"))
            replace(folder / "t.json", saying("u"))
            box.remove("by-call")

        workers = [threading.Thread(target=repeat, args=(act,)) for act in (call, call, change, box.list, box.step)]
        for worker in workers:
            worker.start()
        time.sleep(0.5 if SHORT else 1.5)
        stop.set()
        for worker in workers:
            worker.join(30)
        equal(wrong, [], "what went wrong")


if __name__ == "__main__":
    # One by one: a child that another case has just forked holds a file open for a moment, and the
    # event of its closing would come after the file was moved.
    sys.exit(harness.main(workers=1, after=SCRATCH.remove))
