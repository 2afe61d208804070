#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scheduler's page in headless Chromium: bench-page.py ALIQUOT STORE_SERVER

Its first paint, the time until all nodes stand in it, and the time from a new pod to its bar. With
1,000 nodes of 8 cards, beside the same with one node."""

import os
import sys
import time
import unittest

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", name) for name in ("blackbox", "fake")]

from page_browser_driver import PROGRAM, Browser  # noqa: E402
from page_lab import Lab, node, pod  # noqa: E402
from patience import until  # noqa: E402

ALIQUOT, STORE = sys.argv[1:3]
ROUNDS = 20
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
ROWS = "document.querySelectorAll('#nodes details').length"
BAR = "document.getElementById('node/n0').innerText"


def middle(times):
    return sorted(times)[len(times) // 2]


def measure(nodes):
    """Medians in ms: first paint, all rows, update."""
    case = unittest.TestCase()
    lab = Lab(case, ALIQUOT, STORE)
    for i in range(nodes):
        lab.api.post("/api/v1/nodes", node(f"n{i}", cards=8, units=80, mode="core_mem"))
    lab.start()
    browser = Browser()
    case.addCleanup(browser.close)
    paints, rows, updates = [], [], []
    for _ in range(ROUNDS):
        browser.call("Page.navigate", url="about:blank")
        began = time.monotonic()
        browser.call("Page.navigate", url=f"http://localhost:{lab.page}/")
        until(lambda: browser.run(ROWS) == nodes, "all nodes stand in the page")
        rows.append(1000 * (time.monotonic() - began))
        paints.append(until(lambda: browser.run(PAINT), "the first paint"))
    for i in range(ROUNDS):
        before = browser.run(BAR)
        began = time.monotonic()
        lab.api.post("/api/v1/namespaces/default/pods", pod(f"p{i}", 4, on="n0", card=i % 8))
        until(lambda: browser.run(BAR) != before, "the bar follows")
        updates.append(1000 * (time.monotonic() - began))
    case.doCleanups()
    return middle(paints), middle(rows), middle(updates)


if not PROGRAM:
    print("skipped: chromium is not there (Debian: chromium)")
    sys.exit(77)
one, many = measure(1), measure(1000)
for what, base, large in zip(("first paint", "all nodes stand in the page", "from a pod to its bar"), one, many):
    print(f"page, {what:28} p50 of {ROUNDS}: 1000 nodes of 8 cards {large:.0f} ms, one node {base:.0f} ms, ratio {large / base:.1f}")
