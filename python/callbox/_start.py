# SPDX-License-Identifier: MIT
"""The program that a box starts, as `python3 -I -B _start.py CONFIG [FILE...]`: a zygote (_serve.py), or an
interpreter for one call (_once.py). It is compiled each time that it is started, and so it is short."""

import os
import sys

CALLBOX_BOX = True  # see _late.py

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if "CALLBOX_FORK_FD" in os.environ:
        from callbox._serve import main
    else:
        from callbox._once import main
    os._exit(main())  # threads of the tool's end with it
