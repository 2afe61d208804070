# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium, driven by its DevTools protocol over two pipes (--remote-debugging-pipe)."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from patience import PATIENCE

PROGRAM = shutil.which("chromium")


class Browser:
    """One page. Every call that does not answer in time fails."""

    def __init__(self, *options):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.to = os.pipe()
        self.of, of_write = os.pipe()

        def pipes():  # Chromium reads from 3 and writes to 4
            first, second = os.dup(to_read), os.dup(of_write)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen([PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                                         "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}",
                                         *options, "about:blank"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=pipes, close_fds=False)
        os.close(to_read)
        os.close(of_write)
        self.rest, self.number, self.session, self.events = b"", 0, None, []
        pages = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in pages if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Network", "Log":
            self.call(domain + ".enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.of)
        self.folder.cleanup()

    def _message(self):
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            ready = select.select([self.of], [], [], max(0, deadline - time.monotonic()))[0]
            data = os.read(self.of, 1 << 20) if ready else b""
            if not data:
                raise AssertionError("Chromium does not answer")
            self.rest += data
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        text = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            text["sessionId"] = self.session
        os.write(self.to, json.dumps(text).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def key(self, key, code=0, text=""):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
