"""Writes a trampoline for each kernel: a C function that reads the kernel's arguments from words and calls it."""

from __future__ import annotations

import re

DECLARED = re.compile(r"^int (\w+)\(([^()]*)\);", re.MULTILINE)
#: the member of a word (kernels.h) that holds an argument, by its type; the others are pointers
MEMBERS = {"double": "real", "uintptr_t": "address"} | dict.fromkeys(
    ("int", "intptr_t", "int64_t", "uint64_t"), "integer"
)


def _read(number: int, parameter: str) -> str:
    """The expression of an argument, from its parameter: ``uintptr_t input``, ``const intptr_t options[8]``."""
    name = re.search(r"(\w+)(\[\d*\])?$", parameter)
    assert name is not None, parameter
    kind = parameter[: name.start()].strip() + (" *" if name[2] else "")
    return f"({kind})a[{number}].{MEMBERS.get(kind, 'address')}"


def trampolines(header: str) -> str:
    """The trampolines of all kernels that a header declares, and the table of them."""
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    functions, rows = [], []
    for name, listed in DECLARED.findall(code):
        if listed == "void" or name == "point_arrays":
            continue
        arguments = ", ".join(_read(i, parameter.strip()) for i, parameter in enumerate(listed.split(",")))
        functions.append(f"static int words_to_{name}(const union word *a) {{ return {name}({arguments}); }}")
        rows.append(f'    {{"{name}", words_to_{name}}},')
    table = ["static const struct trampoline all_trampolines[] = {", *rows, "    {0, 0}", "};"]
    getter = "const struct trampoline *trampolines(void) { return all_trampolines; }"
    return "\n".join([*functions, *table, getter, ""])
