# SPDX-License-Identifier: MIT
"""SHA-256 sums of files; each line of output is a message."""
import hashlib
import json
import sys


def say(**message):
    print(json.dumps(message), flush=True)


sums = {}
for done, path in enumerate(sys.argv[1:]):
    say(progress=done, total=len(sys.argv) - 1, message=path)
    try:
        with open(path, "rb") as file:
            sums[path] = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as trouble:
        say(log=str(trouble), level="warning")
say(result=sums)
