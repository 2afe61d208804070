#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pictures of the README, in headless Chromium, of the simulated cluster docs/pictures/cluster.yaml.

    pictures.py BUILD

page.png is the web page of `aliquot local --page`, inspect.png what `kubectl inspect cgpu -d` prints on a terminal. Each
has at most 256 colours and 60 KB."""
import html
import os
import re
import struct
import subprocess
import sys
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path += [os.path.join(ROOT, "tests/blackbox"), os.path.join(ROOT, "tests/fake")]

from page_browser_driver import Browser  # noqa: E402
from patience import until  # noqa: E402

CLUSTER = os.path.join(ROOT, "docs/pictures/cluster.yaml")
WIDTH, MOST_BYTES = 1000, 60000
# The terminal's colours: what `--color always` writes, as a class.
COLOURS = {"0": None, "1": "bold", "2": "dim", "31": "bad", "32": "good", "33": "warn"}
TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: #1a2028; } pre { margin: 0; padding: 14px 18px; color: #e4e9ef; font: 13px/1.35 monospace; display: inline-block; }
.bold { font-weight: bold; } .dim { color: #9aa7b5; } .good { color: #4cc38a; } .warn { color: #e3a34b; } .bad { color: #f2726d; }
</style><pre>"""


def pixels(data):
    """Width, height and rows of (red, green, blue) of a PNG without interlace, as Chromium writes it."""
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", body[:10])
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    size, raw, rows = 4 if colour == 6 else 3, zlib.decompress(packed), []
    before = bytearray(width * size)
    for y in range(height):
        start = y * (width * size + 1)
        line, how = bytearray(raw[start + 1:start + 1 + width * size]), raw[start]
        for i in range(len(line) if how else 0):
            left, up, corner = (line[i - size], before[i], before[i - size]) if i >= size else (0, before[i], 0)
            nearest = min((abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner))[2]
            line[i] = (line[i] + (0, left, up, (left + up) // 2, nearest)[how]) & 255
        rows.append([tuple(line[i:i + 3]) for i in range(0, len(line), size)])
        before = line
    return width, height, rows


def small(data):
    """The same picture with a palette: colours are made coarser until 256 are enough."""
    width, height, rows = pixels(data)
    for step in (1, 2, 4, 8, 16, 32):
        coarse = [[tuple(min(255, (value + step // 2) // step * step) for value in pixel) for pixel in row] for row in rows]
        palette = sorted({pixel for row in coarse for pixel in row})
        if len(palette) <= 256:
            break
    index = {colour: i for i, colour in enumerate(palette)}

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) +
            chunk(b"PLTE", bytes(value for colour in palette for value in colour)) +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(index[pixel] for pixel in row) for row in coarse), 9)) + chunk(b"IEND", b""))


def keep(browser, name, height, width=WIDTH):
    browser.resize(width, height)
    path = os.path.join(ROOT, "docs/pictures", name)
    browser.screenshot(path)
    with open(path, "rb") as f:
        data = small(f.read())
    if len(data) > MOST_BYTES:
        raise SystemExit(f"pictures: {name} has {len(data)} bytes, at most {MOST_BYTES}")
    with open(path, "wb") as f:
        f.write(data)
    print(f"docs/pictures/{name}: {width} x {height}, {len(data)} bytes")


def page(browser, build):
    command = [os.path.join(build, "aliquot"), "local", "--page", "127.0.0.1:0", "-f", CLUSTER]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as cluster:
        url = next(filter(None, (re.search(r"page at (http://\S+/) until", line) for line in cluster.stderr)))[1]
        browser.resize(WIDTH, 800)
        browser.call("Page.navigate", url=url)
        until(lambda: browser.run("document.querySelector('#status')?.dataset.is === 'live' && document.querySelector('#waiting .why').innerText"), "the page")
        browser.run("document.querySelector('#nodes summary').click()")
        last = "document.querySelectorAll('#nodes .one')[1]"
        until(lambda: browser.run(last + "?.querySelectorAll('tr').length"), "the cards of a node")
        browser.run("scrollTo(0, 0)")
        keep(browser, "page.png", int(browser.run(last + ".getBoundingClientRect().bottom")) + 10)
        cluster.terminate()


def terminal(browser, build):
    found = subprocess.run([os.path.join(build, "aliquot"), "local", "--once", "--get", "nodes,pods", "-f", CLUSTER],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    command = [os.path.join(build, "kubectl-inspect-cgpu"), "-d", "-o", "cards", "--color", "always", "--from", "-"]
    text = subprocess.run(command, input=found, stdout=subprocess.PIPE, check=True).stdout.decode()
    text = html.escape("$ kubectl inspect cgpu -d\n" + text)
    text = re.sub("\033\\[(\\d+)m", lambda m: f'<b class="{COLOURS[m[1]]}" style="font-weight:inherit">' if COLOURS[m[1]] else "</b>", text)
    text = text.replace('class="bold" style="font-weight:inherit"', 'class="bold"')
    browser.resize(WIDTH, 800)
    browser.call("Page.navigate", url="about:blank")
    browser.run(f"document.documentElement.innerHTML = {TERMINAL + text!r}")
    width, height = browser.run("(r => [Math.ceil(r.width), Math.ceil(r.height)])(document.querySelector('pre').getBoundingClientRect())")
    keep(browser, "inspect.png", height, width)


def main():
    browser = Browser("--hide-scrollbars")
    try:
        page(browser, sys.argv[1])
        terminal(browser, sys.argv[1])
    finally:
        browser.close()


if __name__ == "__main__":
    main()
