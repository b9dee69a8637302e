# SPDX-License-Identifier: MIT
"""Replace a text in a file; the arguments come as JSON on stdin."""
import json
import sys

arguments = json.load(sys.stdin)
with open(arguments["path"], encoding="utf-8", newline="") as file:
    text = file.read()
found = text.count(arguments["old"])
if found != arguments["count"]:
    sys.exit(f"the text occurs {found} times in {arguments['path']}, not {arguments['count']}; nothing was changed")
text = text.replace(arguments["old"], arguments["new"])
with open(arguments["path"], "w", encoding="utf-8", newline="") as file:
    file.write(text)
json.dump({"replaced": found, "bytes": len(text.encode())}, sys.stdout)
