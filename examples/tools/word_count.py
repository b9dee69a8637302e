# SPDX-License-Identifier: MIT
"""Count the words of a file: word_count.py PATH TOP"""
import collections
import json
import re
import sys

with open(sys.argv[1], encoding="utf-8", errors="replace") as file:
    words = collections.Counter(word.lower() for line in file for word in re.findall(r"\w+", line))
json.dump({"words": words.total(), "top": [{"word": word, "count": count} for word, count in words.most_common(int(sys.argv[2]))]},
          sys.stdout)
