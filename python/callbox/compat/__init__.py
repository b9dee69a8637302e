# SPDX-License-Identifier: MIT
"""Drop-ins for sandboxes that other packages have: the same names, signatures, result fields and
texts, with a box behind them. docs/migrating.md has a section on each.

    callbox.compat.jeevesagent, callbox.compat.loomflow
    callbox.compat.openjarvis
    callbox.compat.calute, callbox.compat.xerxes

_calls.py runs a function of the agent's in a box, _box.py is its other side; the rest is names and
texts. Where the other package is installed its own types are used, else types of the same shape."""
