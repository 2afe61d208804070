# SPDX-License-Identifier: Apache-2.0
"""What the suite found: a line per test as it ends, results.json, and results.md for docs/internals/gpu-results.md."""
import datetime
import json
import os


def line(result):
    if result["result"] == "ok":
        return "ok %s %s" % (result["name"], " ".join("%s=%s" % pair for pair in result["figures"].items()))
    return "%s %s: %s" % (result["result"], result["name"], result["why"])


class Results:
    """folder: where to; None: nowhere. It is written after each test, because the time on a card may end before the tests do."""

    def __init__(self, host, cuda, simulated, folder):
        self.folder = folder
        self.head = {"card": host.name, "cards": host.cards, "memory-MiB": host.memory().total >> 20, "driver": host.driver, "cuda": cuda,
                     "date": datetime.date.today().isoformat(), "simulated": simulated}
        self.tests = []
        print("# %(card)s, driver %(driver)s, CUDA %(cuda)s, %(date)s" % self.head + (", simulated" if simulated else ""), flush=True)

    def add(self, result):
        self.tests.append(result)
        print(line(result), flush=True)
        if self.folder:
            self.write(self.folder)

    def count(self, result):
        return sum(t["result"] == result for t in self.tests)

    def summary(self):
        print("gpu-test: %d passed, %d failed, %d skipped" % (self.count("ok"), self.count("not ok"), self.count("skip")), flush=True)
        return 1 if self.count("not ok") else 0 if self.count("ok") else 77

    def markdown(self):
        h = self.head
        out = ["## %s, driver %s, CUDA %s, %s%s" % (h["card"], h["driver"], h["cuda"], h["date"], ", simulated" if h["simulated"] else ""),
               "", "%d card%s of %d MiB. %d passed, %d failed, %d skipped." % (
                   h["cards"], "s" if h["cards"] > 1 else "", h["memory-MiB"], self.count("ok"), self.count("not ok"), self.count("skip")),
               "", "| test | result | figures |", "|---|---|---|"]
        for t in sorted(self.tests, key=lambda t: t["result"] != "not ok"):  # what has failed stands in front
            what = ", ".join("%s %s" % pair for pair in t["figures"].items()) if t["result"] == "ok" else t["why"]
            out.append("| %s | %s | %s |" % (t["name"], t["result"], what.replace("|", "\\|")))
        return "\n".join(out) + "\n"

    def write(self, folder):
        with open(os.path.join(folder, "results.json"), "w") as f:
            json.dump(dict(self.head, tests=self.tests), f, indent=1)
            f.write("\n")
        with open(os.path.join(folder, "results.md"), "w") as f:
            f.write(self.markdown())
