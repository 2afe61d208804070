#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The standard of docs/internals/CODING_STYLE.md for comments and pages, as far as a machine can judge it.

- Person-words ("who", "he", "nobody") stay below a rate per room or page.
- A sentence has at most 30 words, a comment line 100 columns, a page 2,500 words: not those that are looked up in,
  *-figures.md and reference.md.
- A comment in src or sim holds no measured figure.

Usage: prose.py [FILE...]; without a file, all of the tree."""
import collections
import io
import os
import re
import subprocess
import sys
import tokenize

PERSON = re.compile(r"\b(who|whom|whose|whoever|he|him|his|himself|she|her|hers|somebody|someone|nobody|anybody|anyone|"
                    r"everybody|everyone)\b", re.IGNORECASE)
HITS, RATE = 3, 2.0  # a room or page fails with more hits than HITS and more than RATE per 1,000 words
SENTENCE, COLUMNS, PAGE = 30, 100, 2500
# A duration or size beside a word that says it was measured. Constants of a specification have no
# such word.
MEASURED = re.compile(r"\b(measured|medians?|p50|p99|took|takes|on this machine|today)\b", re.IGNORECASE)
FIGURE = re.compile(r"\b\d+(\.\d+)?\s?(ns|us|ms|%|points?|times faster)\B|\b\d+(\.\d+)?\s?(ns|us|ms|points)\b")

Comment = collections.namedtuple("Comment", "line text")  # text: its lines, without the marks


def c_comments(text):
    for match in re.finditer(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", text, re.DOTALL):
        if match[0].startswith("/*"):
            lines = [re.sub(r"^\s*\* ?", "", line) for line in match[0][2:-2].split("\n")]
            yield Comment(text.count("\n", 0, match.start()) + 1, "\n".join(lines))


def hash_comments(text):
    """Comments behind # of a script, YAML or meson file; neighbouring lines are one comment."""
    start, lines = 0, []
    for number, line in enumerate(text.split("\n") + [""], 1):
        match = re.match(r"\s*#(?!!) ?(.*)$", line) or re.search(r"\s{1,2}# (.*)$", line)
        whole = line.lstrip().startswith("#")
        if match and whole and lines:
            lines.append(match[1])
            continue
        if lines:
            yield Comment(start, "\n".join(lines))
            lines = []
        if match:
            start, lines = number, [match[1]]


def python_parts(text):
    """The text with every string blanked, and the docstrings among them as tokens. Other strings are no prose."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    docstrings, before = [], tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING:
            begin, end = (starts[line - 1] + column for line, column in (token.start, token.end))
            text = text[:begin] + re.sub(r"[^\n]", " ", token.string) + text[end:]
            if before in (tokenize.NEWLINE, tokenize.INDENT) and token.string.lstrip("rR").startswith('"""'):
                docstrings.append(token)
        if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.DEDENT):
            before = token.type
    return text, docstrings


def python_comments(text):
    bare, docstrings = python_parts(text)
    yield from hash_comments(bare)
    for token in docstrings:
        words = token.string.lstrip("rR")[3:-3]
        yield Comment(token.start[0], "\n".join(line.strip() for line in words.split("\n")))


def page_text(text):
    """The prose of a page: fenced code goes, the lines stay where they are."""
    return [Comment(1, re.sub(r"(?ms)^```.*?^```", lambda m: "\n" * m[0].count("\n"), text))]


READERS = {".c": c_comments, ".h": c_comments, ".in": c_comments, ".py": python_comments, ".sh": hash_comments,
           ".yaml": hash_comments, ".md": page_text}


def plain(text):
    """Without code, links' targets, quotations and licences."""
    text = re.sub(r"SPDX-License-Identifier:.*", "", text)
    text = re.sub(r"``.*?``|`[^`\n]*`", " x ", text)
    text = re.sub(r"\]\([^)\n]*\)", "]", text)
    return re.sub(r"\"[^\"]{0,400}?\"", lambda m: " x " + "\n" * m[0].count("\n"), text)


def sentences(comment):
    """(LINE, SENTENCE): it ends at . ? or !, at a blank line, a list item, a table row, a heading or a diagram."""
    line, words = comment.line, []
    for number, text in enumerate(plain(comment.text).split("\n"), comment.line):
        bare = text.strip()
        broken = not bare or re.match(r"[-*+|#>]|\d+[.)] |[a-z]\) ", bare) or re.search(r"\S   +\S", text) or text.startswith("    ")
        if broken and words:
            yield line, " ".join(words)
            words = []
        if not bare or bare.startswith(("|", "#")) or re.search(r"\S   +\S", text) or text.startswith("    "):
            continue
        for word in bare.split():
            if not words:
                line = number
            words.append(word)
            if re.search(r"[.?!][\"')\]*_]*$", word) and not re.search(r"\b(e\.g|i\.e|cf|vs|etc)\.$", word):
                yield line, " ".join(words)
                words = []
    if words:
        yield line, " ".join(words)


def room_of(path):
    return path if path.endswith(".md") else os.path.dirname(path) or "."


def long_lines(path, text):
    """Lines that are nothing but comment, and are longer than COLUMNS."""
    inside = False
    if path.endswith(".py"):
        text = python_parts(text)[0]
    for number, line in enumerate(text.split("\n"), 1):
        if path.endswith((".c", ".h", ".in")):
            whole = inside or line.lstrip().startswith("/*")
            inside = (inside or "/*" in line) and "*/" not in line.rpartition("/*")[2]
        else:
            whole = line.lstrip().startswith("#")
        if whole and len(line) > COLUMNS:
            yield number


class Judge:
    def __init__(self):
        self.words, self.hits = collections.Counter(), collections.defaultdict(list)
        self.faults = []

    def read(self, path):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        room = room_of(path)
        for comment in READERS[os.path.splitext(path)[1]](text):
            bare = plain(comment.text)
            self.words[room] += len(bare.split())
            for match in PERSON.finditer(bare):
                self.hits[room].append((path, comment.line + bare.count("\n", 0, match.start()), match[0]))
            for line, sentence in sentences(comment):
                count = len([word for word in sentence.split() if re.search(r"\w", word)])
                if count > SENTENCE:
                    self.faults.append(f"{path}:{line}: a sentence of {count} words, at most {SENTENCE}: {sentence[:60]}...")
                if not path.endswith(".md") and path.startswith(("src/", "sim/")) and MEASURED.search(sentence) and FIGURE.search(sentence):
                    self.faults.append(f"{path}:{line}: a measured figure; it belongs into docs/*-figures.md: {sentence[:60]}...")
        if path.endswith(".md"):
            if self.words[room] > PAGE and not path.endswith(("-figures.md", "reference.md")):
                self.faults.append(f"{path}:1: a page of {self.words[room]} words, at most {PAGE}")
        else:
            self.faults += [f"{path}:{number}: a comment line of more than {COLUMNS} columns" for number in long_lines(path, text)]

    def persons(self):
        for room, hits in sorted(self.hits.items()):
            rate = 1000 * len(hits) / max(1, self.words[room])
            if len(hits) > HITS and rate > RATE:
                for path, line, word in hits:
                    yield f"{path}:{line}: \"{word}\": {room} has {rate:.1f} such words per 1,000, at most {RATE:g}"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    files = sys.argv[1:]
    if not files:
        endings = [ending[1:] for ending in READERS]
        files = subprocess.run([os.path.join(here, "sources.sh"), *endings], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    judge = Judge()
    for path in files:
        if os.path.splitext(path)[1] in READERS:
            judge.read(path)
    faults = [*judge.faults, *judge.persons()]
    print("\n".join(faults))
    if "--summary" in os.environ.get("PROSE", ""):
        for room in sorted(judge.words):
            mine = [fault for fault in faults if room_of(fault.split(":")[0]) == room]
            print(room, judge.words[room], len(judge.hits[room]), len(mine), file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
