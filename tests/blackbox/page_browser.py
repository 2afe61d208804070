#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scheduler's page in headless Chromium: what a person sees, by keyboard, on a phone, light and dark.

    page_browser.py ALIQUOT STORE_SERVER

SHOTS=DIR keeps pictures."""
import http.server
import json
import os
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fake"))

from page_browser_driver import PROGRAM, Browser  # noqa: E402
from page_lab import ALLOCATION, MEM, Agent, Lab, fence, limits, measured, node, pod, timed  # noqa: E402
from patience import until  # noqa: E402

ALIQUOT, STORE = sys.argv.pop(1), sys.argv.pop(1)
NODES, PODS, MAPS = "/api/v1/nodes", "/api/v1/namespaces/default/pods", "/api/v1/namespaces/kube-system/configmaps"
ROW = "document.getElementById('node/%s')"
LACKS = "the driver does not limit memory here: NVML cannot set a memory limit: Not Supported (3)"
VISIBLE = "[...document.querySelectorAll('#nodes details:not([hidden]) .name')].map(e => e.textContent)"


def limits_of(mem):
    return {"limits": {MEM: str(mem)}}


class Page(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.lab = Lab(self, ALIQUOT, STORE)
        for i in range(12):
            self.lab.api.post(NODES, node(f"n{i}", cards=2, units=16, mode="core_mem" if i % 2 else "cgpu"))
        self.lab.api.post(PODS, pod("one", 4, on="n0", card=1))
        self.lab.api.post(PODS, pod("two", 8, on="n0", card=1))
        self.lab.api.post(PODS, pod("large", 17))
        self.lab.start()
        self.browser = Browser()
        self.addCleanup(self.browser.close)
        self.open()

    def open(self):
        self.browser.call("Page.navigate", url=f"http://localhost:{self.lab.page}/")
        self.wait("document.querySelector('#status')?.dataset.is === 'live'", "the page is live")

    def wait(self, script, what):
        return until(lambda: self.browser.run(script), what)

    def shot(self, name):
        if os.environ.get("SHOTS"):
            self.browser.screenshot(os.path.join(os.environ["SHOTS"], name + ".png"))

    def text(self, selector):
        return self.browser.run(f"document.querySelector({selector!r}).innerText")

    def test_shows_cards_pods_and_changes(self):
        self.assertIn("12 GiB", self.text("#sums"))
        self.assertIn("of 384 GiB", self.text("#sums"))
        self.assertEqual(self.browser.run(VISIBLE), [f"n{i}" for i in range(12)])
        self.assertRegex(self.text("#sums"), r"Largest free slice\s+16 GiB")
        self.assertIn("no card is large enough for 17 GiB", self.wait("document.querySelector('#waiting .list').textContent", "the waiting pod"))
        self.assertFalse(self.browser.run("!document.querySelector('#trouble').hidden"))
        self.shot("light")
        self.lab.api.post(MAPS, fence("n3", 0))
        self.wait("document.querySelector('#trouble').innerText.includes('gpu0: fenced by a ConfigMap')", "the fence is shown")
        self.assertIn("n3", self.text("#trouble"))
        self.assertEqual(self.browser.run(ROW % "n3" + ".querySelectorAll('.card.out').length"), 1)
        self.browser.run("document.querySelector('#only').click()")
        self.assertEqual(self.browser.run(VISIBLE), ["n3"])
        self.lab.api.delete(NODES + "/n7")
        self.wait("!document.getElementById('node/n7')", "a node goes")
        self.assertRegex(self.text("#status"), "live; last change .*[0-9]")

    def test_slices_of_an_open_node_follow(self):
        self.browser.run(ROW % "n0" + ".querySelector('summary').click()")
        self.wait(ROW % "n0" + ".textContent.includes('default/two')", "the slices")
        self.assertEqual(self.browser.run(ROW % "n0" + ".querySelectorAll('.stack i').length"), 2)
        self.lab.api.post(PODS, pod("three", 2, on="n0", card=0))
        self.wait(ROW % "n0" + ".textContent.includes('default/three')", "the new slice")
        self.shot("open")

    def test_long_lists_above_the_nodes_are_short_until_asked_for(self):
        for i in range(10):
            self.lab.api.post(PODS, pod(f"w{i}", 18 + i))
            self.lab.api.post(MAPS, fence(f"n{i}", 0, 1))
        for section, line, all_of_them in (("#waiting", "details", 11), ("#trouble", "li", 10)):
            lines = f"document.querySelectorAll('{section} {line}').length"
            self.wait(f"document.querySelector('{section} .count').innerText === '{all_of_them}' && {lines} === 6", "few lines")
            self.browser.run(f"document.querySelector('{section} .all').click()")
            self.assertEqual(self.browser.run(lines), all_of_them)
            self.browser.run(f"document.querySelector('{section} .all').click()")
            self.assertEqual(self.browser.run(lines), 6)
        self.assertIn("gpu0, gpu1: fenced by a ConfigMap", self.text("#trouble"))
        self.assertIn("w9", self.browser.run("(document.querySelector('#waiting .all').click(), document.querySelector('#waiting .list').textContent)"))

    def test_equal_pods_wait_in_one_block(self):
        for i in range(3):
            self.lab.api.post(PODS, pod(f"like{i}", 17))
        self.lab.api.post(PODS, pod("other", 18))
        self.wait("document.querySelector('#waiting .count').innerText === '5'", "all wait")
        self.wait("document.querySelectorAll('#waiting details').length === 2", "two blocks")
        self.assertIn("default/large and 3 pods like it", self.text("#waiting"))
        run = "node(s) run pods with compute percent, and take none without it"
        self.assertEqual(self.browser.run(f"[ofNodes({run!r}, 1), ofNodes('node(s) have no card', 2)]"),
                         ["1 node runs pods with compute percent, and takes none without it", "2 nodes have no card"])

    def test_a_pod_counts_once(self):
        """Also with a slice of each of two cards; and in its namespace."""
        self.lab.api.post(PODS, pod("wide", 4, on="n2", cards=2))
        self.wait(ROW % "n2" + ".textContent.includes('4 GiB of 32 GiB')", "the slices")
        self.assertRegex(self.browser.run(ROW % "n2" + ".querySelector('.pods').textContent"), "^1 pod$")
        self.assertEqual(self.browser.run("[...document.querySelectorAll('#namespaces tr')].map(e => [...e.children].map(c => c.textContent))"),
                         [["default", "3 pods", "16 GiB"]])

    def opened(self, name, what):
        """The cells of the tables of slices of this node, which is opened, by row."""
        self.browser.run(ROW % name + ".querySelector('summary').click()")
        self.wait(ROW % name + f".textContent.includes({what!r})", "the slices")
        return self.browser.run("[..." + ROW % name + ".querySelectorAll('table tr:has(td)')].map(e => [...e.children].map(c => c.textContent.trim()))")

    def test_an_init_container_stands_in_its_pods_row(self):
        for name, main, inits in (("both", 3, [10]), ("many", 2, [1, 4, 4]), ("only", 0, [5, 6])):
            made = pod(name, main or 1, on="n6", card=0)
            made["spec"]["initContainers"] = [{"name": f"i{i}", "image": "none", "resources": limits_of(mem)} for i, mem in enumerate(inits)]
            made["metadata"]["annotations"]["aliquot.dev/init-allocation"] = json.dumps({str(i): {"0": mem} for i, mem in enumerate(inits)})
            if not main:
                made["spec"]["containers"][0]["resources"] = {}
                made["metadata"]["annotations"][ALLOCATION] = "{}"
            self.lab.api.post(PODS, made)
        self.assertEqual(self.opened("n6", "default/only"),
                         [["default/bothbefore: init container 0, 10 GiB", "3 GiB"], ["default/manybefore: 3 init containers, up to 4 GiB", "2 GiB"],
                          ["default/only init 0before: init container 1, 6 GiB", "5 GiB"]])

    def test_the_part_of_a_name_that_differs_is_plain(self):
        """Only a domain is faint: the address in a name of ACK's nodes is what tells them apart."""
        for name, faint in (("cn-beijing.192.168.1.10", []), ("gpu-1.example.com", [".example.com"]), ("10.0.0.7", [])):
            self.lab.api.post(NODES, node(name))
            label = ROW % name + ".querySelector('.name')"
            found = self.wait(ROW % name + f" && [...{label}.querySelectorAll('*')].map(e => [e.textContent, getComputedStyle(e).color])"
                              f".concat([getComputedStyle({label}).color])", "the node")
            self.assertEqual([text for text, _ in found[:-1]], faint)
            for _, color in found[:-1]:
                self.assertNotEqual(color, found[-1])

    def test_no_slice_has_the_colour_of_an_alarm(self):
        """Of nine pods on one card, light and dark; a number between 0 and 180 says how far a hue is from the alarm's."""
        for i in range(9):
            self.lab.api.post(PODS, pod(f"h{i}", 1, on="n8", card=0))
        self.opened("n8", "default/h8")
        self.wait(ROW % "n8" + ".querySelectorAll('.stack i').length === 9", "the bar")
        hue = ("(color => { const [r, g, b] = color.match(/[0-9.]+/g).map(Number), most = Math.max(r, g, b), d = most - Math.min(r, g, b);"
               " return d < 40 ? null : 60 * (most === r ? (g - b) / d : most === g ? 2 + (b - r) / d : 4 + (r - g) / d); })")
        for dark in False, True:
            self.browser.dark(dark)
            alarm = self.browser.run("(e => (e.style.color = 'var(--over)', document.body.append(e), "
                                     + hue + "(getComputedStyle(e).color)))(document.createElement('i'))")
            hues = self.browser.run("[..." + ROW % "n8" + ".querySelectorAll('.stack i')].map(e => " + hue
                                    + "(getComputedStyle(e).backgroundImage.match(/rgba?[(][^)]*[)]/)[0]))")
            self.assertEqual(len(hues), 9)
            for found in hues:
                if found is not None:
                    self.assertGreater(abs((found - alarm + 180) % 360 - 180), 20, (hues, alarm))

    def test_a_pod_without_percent_shows_none(self):
        self.lab.api.post(PODS, pod("plain", 2, on="n5", card=0))
        self.lab.api.post(PODS, pod("timed", 2, on="n5", card=1, core=30))
        self.assertEqual(self.opened("n5", "default/timed"), [["default/plain", "2 GiB", ""], ["default/timed", "2 GiB", "30 %"]])

    def test_amounts_side_by_side_have_one_unit(self):
        self.lab.api.post(NODES, node("big", cards=16, units=1024))
        self.lab.api.post(PODS, pod("part", 900, on="big", card=3))
        self.wait(ROW % "big" + "?.textContent.includes('1 pod')", "the pod")
        self.assertIn("0.9 TiB of 16 TiB", self.browser.run(ROW % "big" + ".querySelector('.memory').textContent"))
        self.assertRegex(self.browser.run("document.querySelector('#sums dd').textContent"), r"^0\.9 TiB of 16\.4 TiB$")

    def test_reasons_of_a_waiting_pod_do_not_scroll_inside(self):
        self.browser.resize(400, 1000)
        self.browser.run("document.querySelector('#waiting summary').click()")
        self.wait("document.querySelector('#waiting pre').textContent.length > 60", "the reasons")
        self.assertEqual(self.browser.run("(e => [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight])"
                                          "(document.querySelector('#waiting pre'))"), [0, 0])
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 400)

    def test_what_isolates_memory(self):
        self.lab.api.patch(NODES + "/n0/status", limits("False", "LimitedByDriver", "memory is isolated by the library and by limits of the driver (dmem)"))
        self.browser.run(ROW % "n0" + ".querySelector('summary').click()")
        self.wait(ROW % "n0" + ".textContent.includes('Memory is isolated by the library and by limits of the driver (dmem).')", "the mechanism")
        self.lab.api.patch(NODES + "/n2/status", limits("True", "GPUMemoryLimitsUnavailable", LACKS))
        self.wait("document.querySelector('#trouble').innerText.includes('no isolated container starts')", "the trouble")
        self.browser.run(ROW % "n2" + ".querySelector('summary').click()")
        self.wait(ROW % "n2" + f".querySelector('.state')?.textContent === {LACKS[0].upper() + LACKS[1:] + '.'!r}", "the reason")
        self.lab.api.patch(NODES + "/n2/status", limits("True", "GPUMemoryLimitsUnavailable", "the kernel has no dmem"))
        self.wait(ROW % "n2" + ".querySelector('.state')?.textContent === 'The kernel has no dmem.'", "the next reason, in the open node")
        self.browser.run(ROW % "n4" + ".querySelector('summary').click()")
        self.wait(ROW % "n4" + ".textContent.includes('the node does not ask for limits of the driver.')", "why not more")
        for width in 400, 1280:
            for scheme in "light", "dark":
                self.browser.resize(width, 1000)
                self.browser.dark(scheme == "dark")
                self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
                self.shot(f"isolation-{width}-{scheme}")

    def test_names_are_text(self):
        self.lab.api.patch(NODES + "/n1", {"metadata": {"annotations": {"aliquot.dev/change-pending": "<img src=x onerror=document.title='bad'>"}}})
        self.wait("document.querySelector('#trouble').innerText.includes('<img src=x')", "the text as it is")
        self.assertEqual(self.browser.run("document.title"), "Aliquot")

    def test_the_name_of_the_cluster(self):
        self.assertEqual(self.text("h1").strip(), "Aliquot")
        self.lab.stop()
        self.lab.start("--page-cluster", "<b>prod</b> 1")
        self.open()
        self.assertEqual(self.text("h1").split(), ["Aliquot", "<b>prod</b>", "1"])
        self.assertEqual(self.browser.run("document.title"), "<b>prod</b> 1 - Aliquot")
        self.shot("cluster")

    def test_keyboard(self):
        self.browser.key("/", 191, "/")
        self.assertEqual(self.browser.run("document.activeElement.id"), "find")
        for key in "N11":
            self.browser.key(key, ord(key), key)
        self.assertEqual(self.browser.run(VISIBLE), ["n11"])
        self.assertEqual(self.browser.run("document.activeElement.value"), "N11")
        for _ in range(3):
            self.browser.key("Tab", 9)
        self.assertEqual(self.browser.run("document.activeElement.innerText.trim().split(/\\s/)[0]"), "n11")
        self.browser.key("Enter", 13, "\r")
        self.wait(ROW % "n11" + ".open && " + ROW % "n11" + ".textContent.includes('gpu1')", "Enter opens the node")
        self.browser.run("document.querySelector('#find').focus()")
        self.browser.key("Escape", 27)
        self.assertEqual(len(self.browser.run(VISIBLE)), 12)

    def test_orders(self):
        self.browser.run("document.querySelector('#order').value = 'full'; document.querySelector('#order').dispatchEvent(new Event('change'))")
        self.assertEqual(self.browser.run(VISIBLE)[0], "n0")
        self.lab.api.post(PODS, pod("more", 15, on="n9", card=0, core=50))
        self.wait(VISIBLE + "[0] === 'n9'", "the fullest stays first")

    def test_phone_and_dark(self):
        light = self.browser.run("getComputedStyle(document.body).backgroundColor")
        self.browser.dark(True)
        self.assertNotEqual(self.browser.run("getComputedStyle(document.body).backgroundColor"), light)
        self.browser.resize(360, 740)
        self.browser.run(ROW % "n0" + ".querySelector('summary').click()")
        self.wait(ROW % "n0" + ".textContent.includes('default/two')", "the slices")
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 360, "nothing is wider than the screen")
        self.shot("phone")

    def test_goes_nowhere_else_and_breaks_no_rule(self):
        self.browser.run(ROW % "n0" + ".querySelector('summary').click()")
        self.browser.run("document.querySelector('#waiting summary').click()")
        self.wait("document.querySelector('#waiting pre').innerText.includes('missing')", "why")
        self.browser.run("0")
        asked = [e["params"]["request"]["url"] for e in self.browser.events if e["method"] == "Network.requestWillBeSent"]
        self.assertTrue(asked)
        self.assertEqual([url for url in asked if not url.startswith(f"http://localhost:{self.lab.page}/")], [])
        self.assertEqual([e["params"] for e in self.browser.events if e["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")], [])

    def test_another_site_reads_nothing(self):
        """A page of another site, opened in a browser that can reach the port, and one whose name points to this machine."""
        ours, secret = f"http://localhost:{self.lab.page}", "large"
        html = f"""<title>evil</title><script src="{ours}/page.js"></script><link rel=stylesheet href="{ours}/page.css">
            <iframe src="{ours}/"></iframe><img src="{ours}/icon.svg"><script>
            window.said = [];
            for (const path of ["/node/n0", "/events", "/"]) for (const mode of ["cors", "no-cors"])
              fetch("{ours}" + path, {{mode}}).then(async a => said.push(await a.text()), () => said.push(""));
            new EventSource("{ours}/events").onerror = () => said.push("");
            </script>""".encode()

        class Evil(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(html)

            def log_message(self, *_):
                pass

        evil = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
        self.addCleanup(evil.server_close)
        self.addCleanup(evil.shutdown)
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        browser = Browser("--host-resolver-rules=MAP evil.example 127.0.0.1")
        self.addCleanup(browser.close)
        browser.call("Page.navigate", url=f"http://evil.example:{evil.server_port}/")
        until(lambda: browser.run("document.title === 'evil' && window.said?.length >= 7"), "all attempts have ended")
        self.assertEqual(browser.run("said.join('')"), "")
        self.assertEqual(browser.run("frames.length === 1 && typeof connect"), "undefined", "its script does not run here")
        browser.call("Page.navigate", url=f"http://evil.example:{self.lab.page}/")
        until(lambda: browser.run("document.readyState === 'complete' && document.body.innerText.includes('Host')"), "the refusal by the Host header")
        self.assertNotIn(secret, browser.run("document.documentElement.outerHTML"))
        answers = [(e["params"]["response"]["url"], e["params"]["response"]["status"]) for e in browser.events if e["method"] == "Network.responseReceived"]
        of_ours = [status for url, status in answers if f":{self.lab.page}/" in url]
        self.assertIn(421, of_ours)
        self.assertEqual([(url, status) for url, status in answers if url != ours + "/" and f":{self.lab.page}/" in url and status < 400], [])

    def test_what_processes_use(self):
        agent = Agent(self, self.lab.api, "n0", measured(1, 11 << 10) + measured(1, 3 << 10, "default", "two") + measured(0, 0, xid=79))
        self.browser.run(ROW % "n0" + ".querySelector('summary').click()")
        self.wait(ROW % "n0" + ".textContent.includes('11 GiB used, by the driver')", "the use of the card")
        told = self.browser.run(ROW % "n0" + ".textContent")
        self.assertIn("8 GiB3 GiB used", told)
        self.assertIn("XID 79", told)
        self.assertEqual(self.browser.run(f"[...{ROW % 'n0'}.querySelectorAll('.stack i')].map(e => e.style.getPropertyValue('--u'))"), ["", "37.5%"])
        self.shot("use")
        agent.metrics = measured(1, 2 << 10)
        self.wait(ROW % "n0" + ".textContent.includes('2 GiB used, by the driver')", "it follows")
        self.browser.run(ROW % "n1" + ".querySelector('summary').click()")
        self.wait(ROW % "n1" + ".textContent.includes('What processes use is not known: the node has no agent.')", "why there is none")

    def test_a_deleted_pods_use_is_not_that_of_the_next_of_its_name(self):
        """Both may be on the node while the processes of the first run."""
        deleted = measured(1, 3 << 10, "a", "p").replace("}", ',DeletedPodUID="u"}')
        use = f"useOf({{ use: readUse({json.dumps(deleted + measured(1, 2 << 10, 'a', 'p'))}) }}, {{ namespace: 'a', name: 'p', card: 1, gone: %s }})"
        self.assertEqual([self.browser.run(use % gone) for gone in ("true", "undefined")], [3 << 10, 2 << 10])
        rows = "[{}, {}, { kind: 'init' }].map((s) => ({ namespace: 'a', name: 'p', kind: 'main', gone: s.kind === 'init', ...s }))"
        self.assertEqual(self.browser.run(f"rowsOf({rows}).map(([s, inits]) => [s.kind, inits.length])"), [["main", 0], ["main", 0], ["init", 0]])

    def test_rates_of_compute(self):
        """Two answers, as the page reads them: percent of the card between them."""
        def answer(at, *lines):
            return json.dumps(f"# at {at}\n" + "".join(lines))

        first = answer(100, timed(1, "a", "p", 0.3, 10, 12), timed(1, "a", "q", 0.5, 5, 5), timed(1, "a", "again", 0.2, 9, 9))
        second = answer(104, timed(1, "a", "p", 0.3, 11, 14), timed(1, "a", "q", 0.5, 5, 5), timed(1, "a", "again", 0.2, 0, 0), timed(1, "a", "new", 0.1, 1, 1))
        rates = "[...readUse(%s, readUse(%s)).rates].map(([k, r]) => [k, Math.round(r.share), Math.round(r.used), Math.round(r.held)])"
        self.assertEqual(self.browser.run(rates % (second, first)), [["a/p 1", 30, 25, 50], ["a/q 1", 50, 0, 0]])
        self.assertEqual(self.browser.run(rates % (first, second)), [], "another scheduler's time")
        same = f"(b => [...readUse({second}, b).rates.keys()])(readUse({second}, readUse({first})))"
        self.assertEqual(self.browser.run(same), ["a/p 1", "a/q 1"], "the same answer again")
        two = [answer(at, timed(0, "a", "p", 0.1, at, at), timed(0, "a", "p", 0.2, at / 2, at, "side")) for at in (10, 20)]
        self.assertEqual(self.browser.run(rates % (two[1], two[0])), [["a/p 0", 30, 150, 200]], "containers of a pod are added up")

    def test_compute_of_a_slice(self):
        for name, share in (("train", 30), ("serve", 50)):
            self.lab.api.post(PODS, pod(name, 4, on="n1", card=0, core=share))
        Agent(self, self.lab.api, "n1", lambda: measured(0, 6 << 10) + timed(0, "default", "train", .3, time.monotonic() * .2, time.monotonic() * .25)
              + timed(0, "default", "serve", .5, 3, 4))
        Agent(self, self.lab.api, "n0", lambda: timed(1, "default", "one", .5, 3, time.monotonic()))
        for name in "n1", "n0":
            self.browser.run(ROW % name + ".querySelector('summary').click()")
        self.wait(ROW % "n1" + ".querySelectorAll('.stack.time i').length === 2", "the time of both slices")
        told = self.browser.run(ROW % "n1" + ".textContent")
        self.assertRegex(told, r"50 %\s*0 % used\s*0 % held")
        self.assertRegex(told, r"30 %\s*[1-9]\d* % used\s*[1-9]\d* % held")
        self.assertRegex(told, r"; 6 GiB used, by the driver; \d+ % of its time used, \d+ % held")
        widths = f"[...{ROW % 'n1'}.querySelectorAll('.stack.time i')].map(e => e.style.width)"
        self.assertEqual(self.browser.run(widths), ["50%", "30%"], "in the order of the slices")
        self.wait(ROW % "n0" + ".querySelectorAll('th').length === 3", "a node without percents has the column where compute is limited")
        self.assertRegex(self.browser.run(ROW % "n0" + ".textContent"), r"50 %\s*0 % used")
        self.browser.run(ROW % "n1" + ".scrollIntoView()")
        self.shot("compute")
        self.browser.dark(True)
        self.browser.resize(360, 1100)
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 360, "nothing is wider than the screen")
        self.browser.run(ROW % "n1" + ".scrollIntoView()")
        self.shot("compute-phone")
        self.assertEqual([e["params"] for e in self.browser.events if e["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")], [])

    def test_resizes_and_configmaps_are_told(self):
        self.lab.api.patch(PODS + "/two", {"metadata": {"annotations": {"aliquot.dev/gpu-mem": "4"}}})
        self.wait("document.querySelector('#trouble').textContent.includes('1 resize refused, waiting, or not answered')", "the open resize")
        self.browser.run(ROW % "n0" + ".querySelector('summary').click()")
        self.wait(ROW % "n0" + ".textContent.includes('resize: asked for, and the agent of the node has not answered')", "the resize of the slice")
        said = "in force: container 0: gpu-mem 4 of 8"
        self.lab.api.patch(PODS + "/two", {"metadata": {"annotations": {"aliquot.dev/resize-status": said}}})
        self.wait(ROW % "n0" + f".textContent.includes('resize: {said}') && document.querySelector('#trouble').hidden", "the answer")
        self.lab.api.post(MAPS, fence("n0", 1))
        self.wait(ROW % "n0" + ".textContent.includes('fenced by the ConfigMap kube-system/unhealthy-gpu-n0')", "which ConfigMap")

    def test_a_silent_stream_is_not_live(self):
        """As behind a port-forward without a way to the cluster any more: the connection stays, and tells no error."""
        self.lab.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.lab.process.send_signal, signal.SIGCONT)
        self.browser.run("heard = 0")
        self.wait("document.querySelector('#status').dataset.is === 'lost'", "the page says so")
        self.assertIn("nothing came", self.text("#status"))
        self.lab.process.send_signal(signal.SIGCONT)
        self.wait("document.querySelector('#status').dataset.is === 'live'", "it is live again")

    def test_the_scheduler_goes_and_comes_back(self):
        self.lab.process.terminate()
        self.lab.process.wait()
        self.wait("document.querySelector('#status').dataset.is === 'lost'", "the page says so")
        self.assertEqual(len(self.browser.run(VISIBLE)), 12, "what was known stays on the screen")


if __name__ == "__main__":
    if not PROGRAM:
        print("skipped: chromium is missing")
        sys.exit(77)
    unittest.main()
