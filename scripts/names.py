#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names within src. No two files and no two types have one name, and each X.c has its header. An extern function begins
with its header's stem or with its room's word. main.c, and types that only one .c file knows, are excepted. The
simulator speaks CUDA's words and stands apart.

X.c has its header when the folder holds X.h or X-internal.h, or when a header of the folder names X.c in its first
comment. A stem counts in the singular, too: cards.h may declare card_free()."""
import collections
import os
import re
import subprocess
import sys

# What a room's functions may begin with instead of a header's stem, beside the folder's own name.
WORDS = {
    "src/gpu/cards": ["card"],
    "src/gpu/rm": ["rm"],
    "src/local/apiserver": ["store"],
    "src/net/grpc": ["rpc"],
    "src/preload/inject": [],
    "src/preload/launch": [],
    "src/preload/memory": ["gate", "rm"],
    "src/scheduler/webhook": [],
}
# Static functions of one word, in many lines that read as sentences. The list only gets shorter.
ONE_WORD = {"src/cli/convert/convert.c": ["keep", "tell"], "src/share/refusal_format.c": ["put", "say"], "src/share/refusal_reason.c": ["put"]}
LONG = 150  # lines
DEFINED = re.compile(r"^(?:typedef )?(?:struct|enum|union) ([A-Z]\w*) \{|^\} ([A-Z]\w*);|^typedef [^;{}]*?\b([A-Z]\w*);|"
                     r"^typedef [^;{}]*\(\*([A-Z]\w*)\)\(", re.MULTILINE)
EXTERN = re.compile(r"^(?!static|typedef|extern|#|return)[A-Za-z_][\w *]*?[ *](\w+)\([^;{]*?\)[^;{()]*(?:\(\([^)]*\)[^;]*)?;", re.MULTILINE)

STATIC = re.compile(r"^(?:_\w+\([^)\n]*\) )?static (?:_\w+\([^)\n]*\) |\w+ \**)+([a-z][a-z0-9]*)\(", re.MULTILINE)


def stem(path):
    return re.sub(r"(-internal)?\.[ch]$", "", os.path.basename(path))


def singular(word):
    return [word, word[:-3] + "y" if word.endswith("ies") else word[:-1] if word.endswith("s") else word]


def bare(text):
    """C without comments, strings and bodies of macros; every line stays where it was."""
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.DOTALL)
    return re.sub(r"^[ \t]*#(?:.*\\\n)*.*", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.MULTILINE)


def twice(files):
    folders = collections.defaultdict(set)
    for path in files:
        folders[stem(path)].add(os.path.dirname(path))
    for name, where in sorted(folders.items()):
        if len(where) > 1 and name not in ("main", "tunables"):
            yield f"{name}: a file of this name is in {', '.join(sorted(where))}"


def types_twice(texts):
    """A type belongs to the header that defines it; where only its name is declared, to the headers that do so."""
    defined, declared = collections.defaultdict(set), collections.defaultdict(set)
    for path, text in texts.items():
        if not path.endswith(".h"):
            continue
        for match in DEFINED.finditer(text):
            name = next(group for group in match.groups() if group)
            opaque = re.match(r"typedef (struct|enum|union) (\w+) \2;", match[0])
            (declared if opaque else defined)[name].add(path)
    for name in sorted({*defined, *declared}):
        where = defined[name] or declared[name]
        if len(where) > 1 or len({stem(path) for path in declared[name]}) > 1 and not defined[name]:
            yield f"{name}: a type of this name is in {', '.join(sorted(where))}"


def headless(files, raw):
    for path in files:
        if not path.endswith(".c") or stem(path) == "main":
            continue
        folder, name = os.path.dirname(path), os.path.basename(path)
        if f"{path[:-2]}.h" in raw or f"{path[:-2]}-internal.h" in raw:
            continue
        firsts = (re.search(r"#pragma once\s*/\*.*?\*/", text, re.DOTALL) for other, text in raw.items()
                  if other.endswith(".h") and os.path.dirname(other) == folder)
        if not any(first and re.search(rf"(?<![\w/-]){re.escape(name)}\b", first[0]) for first in firsts):
            yield f"{path}:1: no header of its own, and no header of {folder} names {name} in its first comment"


def prefixes(texts):
    for path, text in sorted(texts.items()):
        folder = os.path.dirname(path)
        if not path.endswith(".h"):
            continue
        words = singular(os.path.basename(folder)) + WORDS.get(folder, [])
        allowed = [word for name in singular(stem(path).replace("-", "_")) for word in [name]] + words
        for match in EXTERN.finditer(text):
            name = match[1]
            if not any(name == word or name.startswith(word + "_") for word in allowed) and not name.isupper():
                line = text.count("\n", 0, match.start(1)) + 1
                yield f"{path}:{line}: {name}() begins with none of {', '.join(dict.fromkeys(allowed))}"


def one_word(texts):
    for path, text in sorted(texts.items()):
        left = set(ONE_WORD.get(path, []))
        if path.endswith(".c") and text.count("\n") > LONG:
            for match in STATIC.finditer(text):
                if match[1] not in ONE_WORD.get(path, []):
                    yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match[1]}() has one word; name what it acts on"
                left.discard(match[1])
        for name in sorted(left):
            yield f"scripts/names.py: ONE_WORD: {path} has no {name}() any more"


def main():
    files = subprocess.run([os.path.join(os.path.dirname(__file__), "sources.sh"), "c", "h"], check=True, stdout=subprocess.PIPE,
                           text=True).stdout.split()
    files = [path for path in files if path.startswith("src/")]
    raw = {}
    for path in files:
        with open(path, encoding="utf-8") as f:
            raw[path] = f.read()
    texts = {path: bare(text) for path, text in raw.items()}
    faults = [*twice(files), *types_twice(texts), *headless(files, raw), *prefixes(texts), *one_word(texts)]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
