# SPDX-License-Identifier: Apache-2.0
"""The command line of all programs: help, version, errors, exit statuses, completion, the log's format:
words.py ALIQUOT SAMPLE SOURCE_ROOT VERSION"""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

ALIQUOT, SAMPLE, ROOT, VERSION = sys.argv[1:5]
VERBS = ["convert", "doctor", "local", "node", "resize", "run", "scheduler", "smi"]
PROGRAMS = {f"aliquot {v}": [ALIQUOT, v] for v in VERBS} | {"aliquot-sample": [SAMPLE]}
V100 = "2xTesla-V100-SXM2-16GB:16160MiB"


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL, **more)


def options_of(command):
    """--help's options: name -> value."""
    text = run(*command, "--help").stdout
    return {m[1]: m[2] for m in re.finditer(r"^  (?:-\w,|   ) --([a-z-]+)(?: (\S+))?", text, re.M)}


class Help(unittest.TestCase):
    def test_help(self):
        for name, command in PROGRAMS.items():
            for option in "--help", "-h":
                p = run(*command, option)
                self.assertEqual((p.returncode, p.stderr), (0, ""), name)
                self.assertRegex(p.stdout, rf"\AUsage: {name} .*\n\n[A-Z][^$]*\nOptions:\n[^$]*"
                                           r"  -h, --help +print this text\n +--version +print the version\n\nExit status: ")
                self.assertLessEqual(max(map(len, p.stdout.splitlines())), 80, name)
        for verb in VERBS:
            self.assertEqual(run(ALIQUOT, "help", verb).stdout, run(ALIQUOT, verb, "--help").stdout)
        texts = {run(ALIQUOT, word).stdout for word in ("help", "--help", "-h")}
        (text,) = texts
        for verb in VERBS + ["help", "version"]:
            self.assertRegex(text, rf"(?m)^  {verb} ")

    def test_version(self):
        for name, command in {"aliquot": [ALIQUOT], **PROGRAMS}.items():
            p = run(*command, "--version")
            self.assertEqual((p.returncode, p.stderr), (0, ""))
            self.assertRegex(p.stdout, rf"^{name} {re.escape(VERSION)} \(built with .+\)\n$")
        self.assertEqual(run(ALIQUOT, "version").stdout, run(ALIQUOT, "--version").stdout)

    def test_manual(self):
        """Each option of --help stands in the program's page."""
        for name, command in PROGRAMS.items():
            stem = os.path.join(ROOT, "man", name.replace(" ", "-"))
            with open(stem + (".8" if os.path.exists(stem + ".8") else ".1"), encoding="utf-8") as f:
                page = f.read()
            for option in options_of(command).keys() - {"help", "version"}:
                self.assertRegex(page, rf"Fl -{option}\b", f"{name} --{option}")


class Wrong(unittest.TestCase):
    def says(self, status, text, *command):
        """Status and the one line on standard error."""
        p = run(*command)
        self.assertEqual((p.returncode, p.stdout, p.stderr), (status, "", text + "\n"), command)

    def test_verbs(self):
        for word, text in (("nod", "nod: no such verb; did you mean node? See"), ("sched", "sched: no such verb; did you mean scheduler? See"),
                           ("hepl", "hepl: no such verb; did you mean help? See"), ("apply", "apply: no such verb; see"),
                           ("--vers", "--vers: no such verb; see")):
            self.says(2, f"aliquot: {text} `aliquot --help`", ALIQUOT, word)
        self.says(2, "aliquot: a verb is missing; see `aliquot --help`", ALIQUOT)
        self.says(2, "aliquot: smii: no such verb; did you mean smi? See `aliquot --help`", ALIQUOT, "help", "smii")

    def test_options(self):
        for name, command in PROGRAMS.items():
            self.says(2, f"{name}: --hepl: no such option; did you mean --help? See `{name} --help`", *command, "--hepl")
            self.says(2, f"{name}: --qqqqqq: no such option; see `{name} --help`", *command, "--qqqqqq=1")
            self.says(2, f"{name}: -Q: no such option; see `{name} --help`", *command, "-Q")
            self.says(2, f"{name}: --version takes no value; see `{name} --help`", *command, "--version=1")
            for option, value in options_of(command).items():
                if value:
                    self.says(2, f"{name}: --{option} has no value, must have {value}; see `{name} --help`", *command, f"--{option}")

    def test_values(self):
        for verb, words, text in (
                ("run", "--gpu-men 3 -- true", "--gpu-men: no such option; did you mean --gpu-mem?"),
                ("run", "--gpu-mem 40% -- true", '--gpu-mem is "40%", must be a number of units from 1, or an amount as 2GiB or 512MiB'),
                ("run", "--gpu-mem 2GB -- true", '--gpu-mem is "2GB", must be a number of units from 1, or an amount as 2GiB or 512MiB'),
                ("run", "--gpu-mem 2GiB --gpu-mem-unit GiB -- true",
                 "--gpu-mem has its own unit; --gpu-mem-unit goes with a number alone"),
                ("run", "--gpu-mem 2 --gpu-core 7 -- true", '--gpu-core is "7", must be a multiple of 5 from 0 to 100'),
                ("run", "--gpu-mem 2 --gpu-core 105% -- true", '--gpu-core is "105%", must be a multiple of 5 from 0 to 100'),
                ("run", "--slices= --gpu-mem 2 -- true", '--slices is "", must be a path'), ("smi", "--slices=", '--slices is "", must be a path'),
                ("resize", "--slices= 1 --gpu-mem 2", '--slices is "", must be a path'),
                ("smi", "-o yaml", '--output is "yaml", must be table or json'),
                ("smi", "me", "me: unexpected argument, must be an option"),
                ("local", "--once -f x --logs-timeout 0", '--logs-timeout is "0", must be a whole number from 1 to 3600'),
                ("node", "--node-name n --log-format xml", '--log-format is "xml", must be text or json'),
                ("node", "--node-name n --max-inst 0", '--max-inst is "0", must be a whole number from 1 to 100'),
                ("scheduler", "--allow-mixed yes", '--allow-mixed is "yes", must be true or false')):
            self.says(2, f"aliquot {verb}: {text}{' See' if text.endswith('?') else '; see'} `aliquot {verb} --help`",
                      ALIQUOT, verb, *words.split())

    def test_slicedir(self):
        """A path with a typo: nothing is made."""
        with tempfile.TemporaryDirectory() as folder:
            slicedir = folder + "/x/y"
            self.says(3, f"aliquot smi: cannot open {slicedir}: No such file or directory", ALIQUOT, "smi", "--slices", slicedir)
            for more in [], ["--simulate", V100]:
                p = run(ALIQUOT, "run", "--slices", slicedir, *more, "--gpu-mem", "1", "--", "true")
                self.assertEqual((p.returncode, len(p.stderr.splitlines()), os.listdir(folder)), (125, 1, []), p.stderr)

    def test_no_driver(self):
        with tempfile.TemporaryDirectory() as folder:
            p = run(ALIQUOT, "run", "--gpu-mem", "1", "--", "true", env={"ALIQUOT_SIM_DIR": folder})
        self.assertEqual((p.returncode, p.stderr),
                         (125, f"aliquot run: {folder}/nvidiactl is not there: is the NVIDIA driver loaded? Without a card, try "
                          "--simulate 1xTesla-V100-SXM2-16GB:16160MiB\n"))


class Statuses(unittest.TestCase):
    """The table of docs/reference/reference.md: each cell is tried, and each status that is tried stands there."""

    NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {ack.node.gpu.schedule: share}, annotations: " \
           "{aliquot.dev/simulated-cards: 'A:16GiB'}}\n"
    POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: m, image: x, resources: {limits: {%s: %s}}}]}\n"

    def table(self):
        with open(os.path.join(ROOT, "docs/reference/reference.md"), encoding="utf-8") as f:
            section = f.read().split("\n## Exit statuses\n")[1].split("\n## ")[0]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("| `")]
        return {row[0].strip("`"): {n for n in range(4) if row[1 + n]} | {int(n) for n in re.findall(r"\b[4-9]\b", row[5])} for row in rows}

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def status(self, *command, full=False):
        """full: standard output is a full disk. A command with a message has the same status where nothing reads it."""
        with open("/dev/full" if full else os.devnull, "w", encoding="utf-8") as out:
            p = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120, check=False)
            if p.stderr and command[1] not in ("node", "scheduler"):  # these have a log
                self.assertEqual(self.unread(command, out), [p.returncode] * 2, command)
        return p.returncode

    def unread(self, command, out):
        """The statuses with a standard error that is a pipe without a reader, and with one that is closed."""
        reader, writer = os.pipe()
        os.close(reader)
        broken = subprocess.run(command, stdout=out, stderr=writer, stdin=subprocess.DEVNULL, timeout=120, check=False).returncode
        os.close(writer)
        closed = subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", *command], stdout=out, stdin=subprocess.DEVNULL, timeout=120, check=False)
        return [broken, closed.returncode]

    def daemon(self, *command):
        p = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while "listening" not in (line := p.stderr.readline()):
            self.assertTrue(line, "it ended")
        p.terminate()
        p.stderr.read()
        p.stderr.close()
        return p.wait(120)

    def tried(self):
        node, fits = self.write("n.yaml", self.NODE), self.write("p.yaml", self.POD % ("aliyun.com/gpu-mem", 1))
        large, bad = self.write("l.yaml", self.POD % ("aliyun.com/gpu-mem", 99)), self.write("b.yaml", "a: [")
        hami = self.write("h.yaml", self.POD % ("nvidia.com/gpumem-percentage", 50))
        kube = self.write("k", f"apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: '{self.server}'}}}}]\n"
                               "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u}]\ncurrent-context: c\n")
        local, slicedir = [ALIQUOT, "local", "--once", "-f", node], ["--slices", self.folder + "/slices"]
        inspect, sim = os.path.join(os.path.dirname(ALIQUOT), "kubectl-inspect-cgpu"), os.path.join(os.path.dirname(ALIQUOT), "aliquot-sim")
        absent = self.folder + "/absent"
        listing = self.write("list.json", run(*local, "--get", "nodes,pods").stdout)
        os.mkdir(self.folder + "/slices")
        yield "aliquot", 0, self.status(ALIQUOT, "help")
        yield "aliquot", 2, self.status(ALIQUOT, "nod")
        yield "aliquot", 3, self.status(ALIQUOT, "help", full=True)
        yield "aliquot convert", 0, self.status(ALIQUOT, "convert", fits)
        yield "aliquot convert", 1, self.status(ALIQUOT, "convert", hami)
        yield "aliquot convert", 2, self.status(ALIQUOT, "convert", bad)
        yield "aliquot convert", 3, self.status(ALIQUOT, "convert", fits, full=True)
        yield "aliquot doctor", 1, self.status(ALIQUOT, "doctor", "cluster", "--server", self.server)
        yield "aliquot doctor", 2, self.status(ALIQUOT, "doctor", "clutser")
        yield "aliquot doctor", 3, self.status(ALIQUOT, "doctor", "cluster", "--server", self.server, full=True)
        yield "aliquot local", 0, self.status(*local, "-f", fits)
        yield "aliquot local", 1, self.status(*local, "-f", large)
        yield "aliquot local", 2, self.status(*local, "-f", bad)
        yield "aliquot local", 3, self.status(*local, full=True)
        yield "aliquot scheduler", 0, self.daemon(ALIQUOT, "scheduler", "--kubeconfig", kube, "--listen", "127.0.0.1:0", "--no-leader-election")
        for verb, more in ("node", ["--node-name", "n", "--no-supervisor", "--slices-size", "0", "--slices-dir", self.folder + "/made"]), ("scheduler", []):
            yield f"aliquot {verb}", 2, self.status(ALIQUOT, verb, "--nonsense")
            yield f"aliquot {verb}", 3, self.status(ALIQUOT, verb, *more, "--kubeconfig", absent)
        yield "aliquot resize", 1, self.status(ALIQUOT, "resize", *slicedir, "run-0", "--gpu-mem", "1")
        yield "aliquot resize", 2, self.status(ALIQUOT, "resize", *slicedir, "run-0")
        yield "aliquot resize", 3, self.status(ALIQUOT, "resize", "--slices", "/dev/null", "run-0", "--gpu-mem", "1")
        yield "aliquot smi", 0, self.status(ALIQUOT, "smi", *slicedir)
        yield "aliquot smi", 2, self.status(ALIQUOT, "smi", "--nonsense")
        yield "aliquot smi", 3, self.status(ALIQUOT, "smi", "--slices", absent)
        yield "aliquot-sample", 1, self.status(SAMPLE, "--gpu-mem-mib", "1")
        yield "aliquot-sample", 2, self.status(SAMPLE, "--nonsense")
        yield "aliquot-sim", 0, self.status(sim, "--version")
        yield "aliquot-sim", 2, self.status(sim, "--nonsense")
        yield "aliquot-sim", 3, self.status(sim, "--status", absent)
        yield "kubectl inspect cgpu", 0, self.status(inspect, "--from", listing)
        yield "kubectl inspect cgpu", 1, self.status(inspect, "--from", listing, "no-such-node")
        yield "kubectl inspect cgpu", 2, self.status(inspect, "--nonsense")
        yield "kubectl inspect cgpu", 3, self.status(inspect, "--from", listing, full=True)
        for n in range(4):  # where cards can be simulated; else the tests of aliquot run say what is missing
            if self.status(ALIQUOT, "run", *slicedir, "--simulate", V100, "--gpu-mem", "1", "--", "true") == 0:
                yield "aliquot run", n, self.status(ALIQUOT, "run", *slicedir, "--simulate", V100, "--gpu-mem", "1", "--", "sh", "-c", f"exit {n}")

    # Tried by blackbox-node-changes, blackbox-resize, blackbox-sample-work and blackbox-doctor.
    ELSEWHERE = {("aliquot node", 0), ("aliquot resize", 0), ("aliquot-sample", 0), ("aliquot doctor", 0), ("aliquot doctor", 4)}

    def test_table(self):
        with tempfile.TemporaryDirectory() as self.folder, socket.socket() as refusing:
            refusing.bind(("127.0.0.1", 0))  # and does not listen
            self.server = "http://127.0.0.1:%d" % refusing.getsockname()[1]
            seen = set()
            for program, expected, status in self.tried():
                self.assertEqual(status, expected, program)
                seen.add((program, status))
        written = {(program, n) for program, row in self.table().items() for n in row}
        if ("aliquot run", 0) not in seen:
            seen |= {("aliquot run", n) for n in range(4)}
        self.assertEqual(written, seen | self.ELSEWHERE)

    @staticmethod
    def full_pipe():
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(writer, b"x" * 4096):
                pass
        os.set_blocking(writer, True)
        return reader, writer

    def test_a_full_pipe_that_is_read(self):
        """It has the whole message."""
        reader, writer = self.full_pipe()
        with subprocess.Popen([ALIQUOT, "nod"], stderr=writer, stdin=subprocess.DEVNULL) as p:
            os.close(writer)
            with open(reader, "rb") as file:
                text = file.read().lstrip(b"x")
        self.assertEqual((p.wait(120), text), (2, b"aliquot: nod: no such verb; did you mean node? See `aliquot --help`\n"))

    def test_a_full_pipe_that_nothing_reads(self):
        """No program waits for it, and its status is the same."""
        reader, writer = self.full_pipe()
        here = os.path.dirname(ALIQUOT)
        notes = "".join(f"---\n{{apiVersion: v1, kind: Pod, metadata: {{name: p{i}}}, spec: {{containers: [{{name: c, resources: {{limits: "
                        "{nvidia.com/gpumem: 1000}}}]}}\n" for i in range(500))
        rows = [(2, [*command, "--no-such-option"], "") for command in PROGRAMS.values()]
        rows += [(2, [ALIQUOT, "resize", "--no"], ""), (2, [os.path.join(here, "aliquot-sim"), "--no"], ""),
                 (2, [os.path.join(here, "kubectl-inspect-cgpu"), "--from", "-"], "x"), (2, [ALIQUOT, "local", "-f", "-"], "a: ["),
                 (1, [ALIQUOT, "convert", "-f", "-"], notes)]
        with subprocess.Popen([ALIQUOT, "convert", "-f", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True) as p:
            self.assertGreater(len(p.communicate(notes, timeout=120)[1]), 1 << 16, "more than a pipe takes")
        for status, command, given in rows:
            with self.subTest(command):
                p = subprocess.run(command, input=given, text=True, stdout=subprocess.DEVNULL, stderr=writer, timeout=120, check=False)
                self.assertEqual(p.returncode, status)
        os.close(writer)
        with open(reader, "rb") as file:
            self.assertEqual(file.read().strip(b"x"), b"")

    def test_help(self):
        """--help says the same statuses."""
        for program, row in self.table().items():
            if program in PROGRAMS and program != "aliquot run":
                text = " ".join(run(*PROGRAMS[program], "--help").stdout.split("Exit status: ")[1].split())
                self.assertEqual({int(n) for n in re.findall(r"(?:^|[,;] )([0-9])(?= |,)", text)}, row, text)


class Log(unittest.TestCase):
    """Without an API server both daemons end after their first lines."""

    def ended(self, verb, *options, **more):
        required = ["--node-name", "n", "--no-supervisor", "--slices-size", "0"] if verb == "node" else []
        with tempfile.TemporaryDirectory() as folder:
            if verb == "node":
                required += ["--slices-dir", folder + "/slices"]
            command = [ALIQUOT, verb, *required, "--kubeconfig", f"{folder}/absent/a \"b\"\\", *options]
            return subprocess.run(command, **({"capture_output": True} | more), text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)

    def lines(self, verb, *options):
        p = self.ended(verb, *options)
        self.assertEqual((p.returncode, p.stdout), (3, ""))
        return p.stderr.splitlines()

    def test_without_a_reader(self):
        """The reader of the log ended before the first line."""
        for verb in "node", "scheduler":
            reader, writer = os.pipe()
            os.close(reader)
            self.assertEqual(self.ended(verb, capture_output=False, stderr=writer).returncode, 3, verb)
            os.close(writer)

    def test_text(self):
        for verb in "node", "scheduler":
            lines = self.lines(verb)
            self.assertRegex(lines[0], rf"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ info aliquot {verb} begins version={re.escape(VERSION)}\b")
            self.assertIn("/absent/a", lines[-1])

    def test_json(self):
        for verb in "node", "scheduler":
            lines = [json.loads(line) for line in self.lines(verb, "--log-format=json")]
            self.assertEqual((lines[0]["level"], lines[0]["version"]), ("info", VERSION))
            self.assertRegex(lines[0]["time"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ$")
            self.assertTrue(lines[0]["message"].startswith(f"aliquot {verb} begins "), lines[0])
            self.assertIn('/absent/a "b"\\', lines[-1]["message"])
            self.assertEqual(lines[-1]["level"], "error")


class Completion(unittest.TestCase):
    """bash itself is asked: what would it offer for the last word?"""

    SHELL, ASKED = "bash", VERBS  # ASKED: the verbs whose options are

    def setUp(self):
        if not shutil.which(self.SHELL):
            self.skipTest(f"{self.SHELL} is missing")

    def ask(self, words):
        script = """. "$1"; shift
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
            complete -p aliquot >/dev/null && _aliquot && printf '%s\\n' "${COMPREPLY[@]}" """
        return ["bash", "--norc", "-c", script, "bash", os.path.join(ROOT, "completions", "aliquot.bash"), ALIQUOT, *words]

    def offers(self, *words):
        p = run(*self.ask(words))
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return set(p.stdout.split("\n")) - {""}

    def test_verbs(self):
        self.assertEqual(self.offers(""), set(VERBS + ["help", "version"]))
        self.assertEqual(self.offers("s"), {"scheduler", "smi"})
        self.assertEqual(self.offers("help", "n"), {"node"})

    def test_options(self):
        for verb in self.ASKED:
            self.assertEqual(self.offers(verb, "--"), {"--" + name for name in options_of([ALIQUOT, verb])})
        self.assertEqual(self.offers("run", "--gpu-mem", "2", "--gpu-c"), {"--gpu-core", "--gpu-count"})

    def test_values(self):
        self.assertEqual(self.offers("node", "--on-excess", ""), {"report", "kill"})
        self.assertEqual(self.offers("smi", "-o", "j"), {"json"})
        self.assertEqual(self.offers("doctor", "cluster", ""), self.offers("doctor", "-") | {"machine", "node", "cluster"})
        self.assertEqual(self.offers("run", "--gpu-mem", ""), set())
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(folder + "/made")
            with open(folder + "/manifest.yaml", "w", encoding="utf-8"):
                pass
            self.assertEqual({name.rstrip("/") for name in self.offers("local", "-f", folder + "/m")}, {folder + "/made", folder + "/manifest.yaml"})
            self.assertEqual({name.rstrip("/") for name in self.offers("run", "--slices", folder + "/m")}, {folder + "/made"})

    def test_values_behind_an_equals_sign(self):
        self.assertEqual(self.offers("node", "--log-format", "=", "j"), {"json"})
        self.assertEqual(self.offers("scheduler", "--log-format", "="), {"text", "json"})

    def test_a_command_of_the_user(self):
        self.assertIn("true", self.offers("run", "--gpu-mem", "2", "--", "tru"))

    def test_names_of_slices(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [ALIQUOT, "run", "--slices", folder, "--simulate", "A10:16GiB", "--gpu-mem", "2", "--", "sh", "-c", "echo; cat"]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
                p.stdout.readline()  # the slice is there
                self.assertEqual(self.offers("resize", "--slices", folder, "run-"), {f"run-{p.pid}"})
                p.communicate()
            self.assertEqual(self.offers("resize", "--slices", folder, "run-"), set())


class CompletionOfZsh(Completion):
    """The function alone, with what the shell would be told: compadd and its like print, and the words are all of them."""

    SHELL, ASKED = "zsh", ["node", "smi"]

    def ask(self, words):
        script = """compadd() { shift; print -rl -- ${(M)@:#$last*} }; compset() { last=${last#*=} }; _normal() { print -rl -- true }
            _describe() { print -rl -- ${${(M)${(P)2}:#$last*}%%:*} }
            _files() { [[ $1 == -/ ]] && print -rl -- $last*(N/) || print -rl -- $last*(N) }
            file=$1; shift; words=("$@"); CURRENT=$#; last=$words[-1]; . $file"""
        return ["zsh", "-f", "-c", script, "zsh", os.path.join(ROOT, "completions", "_aliquot"), ALIQUOT, *words]

    def test_values_behind_an_equals_sign(self):
        self.assertEqual(self.offers("node", "--log-format=j"), {"json"})
        self.assertEqual(self.offers("scheduler", "--log-format="), {"text", "json"})


class CompletionOfFish(Completion):
    SHELL, ASKED = "fish", ["node", "smi"]

    def ask(self, words):
        line = " ".join([ALIQUOT, *words]).replace("'", "\\'")
        return ["fish", "--no-config", "-c", f"source {os.path.join(ROOT, 'completions', 'aliquot.fish')}; complete -C '{line}' | string split -f 1 \\t; true"]

    def test_values_behind_an_equals_sign(self):
        self.assertEqual(self.offers("node", "--log-format=j"), {"--log-format=json"})
        self.assertEqual(self.offers("scheduler", "--log-format="), {"--log-format=text", "--log-format=json"})


class Packages(unittest.TestCase):
    """scripts/deps.sh, with an apt of our own."""

    def deps(self, apt):
        with tempfile.TemporaryDirectory() as folder:
            for name, script in {"apt-get": apt, "dpkg-query": "exit 1", "id": "echo 0"}.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(f"#!/bin/sh\nD={folder}\n{script}\n")
                os.chmod(f.name, 0o755)
            p = run(os.path.join(ROOT, "scripts", "deps.sh"), "build", env={"PATH": f"{folder}:{os.environ['PATH']}", "DEPS_PAUSE": "0"})
            calls = os.path.join(folder, "calls")
            with open(calls, encoding="utf-8") as f:
                return p, f.read()

    def test_a_lock_is_waited_for(self):
        p, calls = self.deps("""echo "$*" >>$D/calls
            [ $(wc -l <$D/calls) -gt 3 ] || { echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1' >&2; exit 100; }""")
        self.assertEqual((p.returncode, p.stdout), (0, ""), p.stderr)
        self.assertEqual([line.split()[1] for line in calls.splitlines()], ["update"] * 4 + ["install"])
        self.assertEqual(p.stderr.count("waiting for it"), 1)

    def test_other_faults_are_not(self):
        p, calls = self.deps("""echo "$*" >>$D/calls; echo 'E: Unable to fetch some archives' >&2; exit 100""")
        self.assertEqual((p.returncode, len(calls.splitlines())), (1, 1))
        self.assertIn("Unable to fetch", p.stderr)


class Skipped(unittest.TestCase):
    def test_reasons(self):
        """scripts/skipped.py tells what the skipped tests of a meson log lack."""
        tests = [{"name": "aliquot:unit / good", "result": "OK", "stdout": "skipped: not this"},
                 {"name": "aliquot:blackbox / one", "result": "SKIP", "stdout": "skipped: there is no FUSE\n"},
                 {"name": "aliquot:deploy / two", "result": "SKIP", "stdout": "no helm here: what needs it is skipped\n", "stderr": "OK (skipped=2)\n"},
                 {"name": "aliquot:unit / three", "result": "SKIP", "stderr": "1 case\nno kernel 3.15\n"},
                 {"name": "aliquot:unit / mute", "result": "SKIP"}]
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(folder + "/meson-logs")
            with open(folder + "/meson-logs/testlog.json", "w", encoding="utf-8") as f:
                f.writelines(json.dumps(test) + "\n" for test in tests)
            p = run(sys.executable, os.path.join(ROOT, "scripts", "skipped.py"), folder)
        self.assertEqual((p.returncode, p.stderr, p.stdout.splitlines()), (0, "", [
            "skipped: one: there is no FUSE", "skipped: two: no helm here: what needs it is skipped", "skipped: three: no kernel 3.15",
            "skipped: mute: it does not say why"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
