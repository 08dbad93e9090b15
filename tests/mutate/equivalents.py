"""The changes of equivalent.txt, which cannot matter."""
from pathlib import Path

import faults

LIST = Path(__file__).resolve().parent / "equivalent.txt"


def read(root):
    """({(file, function, old, new)}, [(line, text)]): the list, whose blocks are `file function`, `- old`, `+ new` and the
    reason, divided by empty lines; and what is wrong with it, such as a block that is no fault of today's file."""
    known, wrong, made, at = set(), [], {}, 1
    for block in LIST.read_text().split("\n\n"):
        lines, line = [text for text in block.splitlines() if not text.startswith("#")], at
        at += block.count("\n") + 2
        if not lines:
            continue
        if len(lines) < 4 or len(lines[0].split(" ")) != 2 or lines[1][:2] != "- " or lines[2][:2] not in ("+ ", "+"):
            wrong.append((line, f"a block is `file function`, `- old`, `+ new` and a reason, not:\n{block}"))
            continue
        name, function = lines[0].split(" ")
        if name not in made:
            path = root / name
            made[name] = {(f.function, f.old_text, f.new_text) for f in faults.faults(path.read_text())} if path.exists() else ()
        change = function, lines[1][2:], lines[2][2:]
        known.add((name, *change))
        if change not in made[name]:
            wrong.append((line, f"{name} has no such fault in {function} any more: write the block as the code is now, or, if "
                          f"the code is gone or the reason no longer holds, remove it:\n{block}"))
    return known, wrong
