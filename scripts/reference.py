#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds docs/reference/reference.md to the source, both ways: each name that users meet is in the page, and each name that the
page lists is in the source.

Names are the string literals of src that have the form of a key, an environment variable, a metric, an Event's reason
or a condition. So are the paths of the extender and the ports of deploy/. The page lists a name when it stands in `code` in the first column of a table;
anywhere else in the page it is only mentioned.

docs/operate/chart.md has a row for each value of the chart, and no others.

docs/reference/names.txt has the names that releases promised to keep. `check-reference.sh --promise` adds those of today, for a release."""
import re
import subprocess
import sys

PAGE = "docs/reference/reference.md"
PROMISED = "docs/reference/names.txt"
CHART, VALUES = "docs/operate/chart.md", "deploy/helm/aliquot/values.yaml"
KEY = re.compile(r"(?:aliyun\.com|aliquot\.dev|aliyun\.accelerator|ack\.node\.gpu|gpushare\.alibabacloud\.com|nvidia\.com)/?[\w./-]*[\w]"
                 r"|scheduler\.framework\.gpushare\.[\w-]+|ack\.node\.gpu\.\w+|(?:ALIYUN|CGPU|ALIQUOT|NVIDIA|CUDA)_[A-Z_]*[A-Z]"
                 r"|kubernetes\.io/config\.mirror")
# A path of the extender, and how its table of routes has it.
PATH = re.compile(r"/gpushare-scheduler/[a-z]+")
ROUTE = re.compile(r'\{"(?:GET|POST)", STR\("(/[a-z]+)"\)')
METRIC = re.compile(r"aliquot_(?:node|scheduler)_\w+|DCGM_CUSTOM_\w+")
REASON = re.compile(r"[A-Z]\w*[a-z]\w*")
# How the source names an Event's reason or a condition, with the literal as the one group.
REASONS = [re.compile(r'#define (?:REASON|CONDITION)_\w+\s+"(\w+)"'), re.compile(r'\.reason = "(\w+)"'),
           re.compile(r'"(?:Normal|Warning)",\s*"(\w+)"'), re.compile(r'#define DRIVER_REASON_\w+\s+"(\w+)"')]
# Parts of names, and names of other projects that are passed on and have no meaning of ours.
PARTS = {"aliquot.dev-gpu.json", "aliyun.com/gpu"}
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
PORT = re.compile(r"(?:containerPort: |--listen=127[.]0[.]0[.]1:)(\d+)")
SUFFIX = re.compile(r"_(?:bucket|sum|count)$")


def sources(*suffixes):
    return subprocess.run(["scripts/sources.sh", *suffixes], stdout=subprocess.PIPE, check=True, text=True).stdout.split()


def bare(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def of_source():
    """Name: where it first stands, and the keys that only deploy/ has."""
    names, deployed = {}, set()
    for path in sources("c", "h"):
        if not path.startswith("src/"):
            continue
        with open(path, encoding="utf-8") as file:
            text = bare(file.read())
        for literal in LITERAL.findall(text):
            for form in (KEY, METRIC):
                if form.fullmatch(literal) and literal not in PARTS:
                    names.setdefault(literal, path)
            # a literal that a format continues: "aliquot_scheduler_x{label=..."
            head = METRIC.match(literal)
            if head and literal[head.end():head.end() + 1] in ("{", " "):
                names.setdefault(SUFFIX.sub("", head[0]), path)
        for form in REASONS:
            for name in form.findall(text):
                names.setdefault(name, path)
        for route in ROUTE.findall(text):
            names.setdefault("/gpushare-scheduler" + route, path)
    for path in sources("yaml"):
        if path.startswith("deploy/"):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            deployed.update(KEY.findall(text))
            for port in PORT.findall(text):
                names.setdefault(port, path)
    return names, deployed


def of_page():
    """The names of first columns, with their line, and all that stands in `code`."""
    listed, mentioned = {}, set()
    with open(PAGE, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            spans = re.findall(r"`([^`]+)`", line)
            mentioned.update(word for span in spans for word in re.split(r"[:\s\"{]", span))
            if not line.startswith("| "):
                continue
            for span in re.findall(r"`([^`]+)`", line.split("|")[1]):
                name = span.split(":")[0]
                if any(form.fullmatch(name) for form in (KEY, METRIC, REASON, PATH)) or name.isdigit():
                    listed.setdefault(name, number)
    return listed, mentioned


def chart_faults():
    """Compares the values at the beginning of a line of VALUES with the first column of the section "Values" of CHART."""
    try:
        with open(VALUES, encoding="utf-8") as file:
            values = set(re.findall(r"(?m)^(\w+):", file.read()))
        with open(CHART, encoding="utf-8") as file:
            section = file.read().partition("\n## Values\n")[2].partition("\n## ")[0]
    except FileNotFoundError:
        return []
    rows = [line.split("|")[1] for line in section.split("\n") if line.startswith("| ")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)", row)}
    return ([f"{VALUES}: {name} is not in {CHART}" for name in values - listed] +
            [f"{CHART}: {name} is no value of the chart" for name in listed - values])


def promised():
    try:
        with open(PROMISED, encoding="utf-8") as file:
            return file.read().split()
    except FileNotFoundError:
        return []


def main():
    (source, deployed), (listed, mentioned) = of_source(), of_page()
    if "--promise" in sys.argv:
        names = set(promised()) | {name for name in listed if not name.isdigit()}
        with open(PROMISED, "w", encoding="utf-8") as file:
            file.write("\n".join(sorted(names)) + "\n")
        return 0
    faults = [f"{path}: {name} is not in {PAGE}" for name, path in source.items() if name not in mentioned]
    faults += [f"{PAGE}:{line}: {name} is not in the source" for name, line in listed.items() if name not in source and name not in deployed]
    faults += [f"{PROMISED}: {name} was promised, and is not in the source" for name in promised() if name not in source and name not in deployed]
    faults += chart_faults()
    if not source:
        faults.append("no name was found in the source")
    print("\n".join(sorted(faults)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
