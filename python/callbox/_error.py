# SPDX-License-Identifier: MIT
"""What is raised: for misuse, and where a call could not be set up. A call that fails is a result."""

from __future__ import annotations

from typing import Any

_OPTION = "--hold "
_KEY = ', or in the policy "files": {"hold": ["'


def _in_words_of_python(hint: str) -> str:
    """The library names an option of the command and a key of the JSON form, which are one keyword here."""
    before, _, rest = hint.partition(_OPTION)
    path, known, _ = rest.partition(_KEY)
    return f'{before}Policy(hold=["{path}"])' if known else hint


class CallboxError(Exception):
    """`where` is the field, path or step at fault, `text` what is wrong, `hint` what to do about it;
    `code` is the errno, 0 where there is none."""

    def __init__(self, text: str, where: str = "", hint: str = "", code: int = 0) -> None:
        hint = _in_words_of_python(hint)
        super().__init__(text, where, hint, code)
        self.text = text
        self.where = where
        self.hint = hint
        self.code = code

    def __str__(self) -> str:
        said = f"{self.where}: {self.text}" if self.where else self.text
        return f"{said} ({self.hint})" if self.hint else said


def no_policy(thing: Any) -> TypeError:
    """Of what was given as one."""
    return TypeError(f"a policy is a callbox.Policy, not {type(thing).__name__}: Policy(read=[...])")
