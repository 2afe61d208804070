# SPDX-License-Identifier: Apache-2.0
"""A program's output on a terminal of a given size: a pseudo-terminal, and the screen that it shows."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from patience import PATIENCE


class Terminal:
    """The program runs with its standard output on the terminal. Standard error is a pipe."""

    def __init__(self, command, width, height=200, env=None):
        self.width, self.height = width, height
        self.master, slave = pty.openpty()
        self.resize(width, height, slave)
        base = {k: v for k, v in os.environ.items() if not re.fullmatch("NO_COLOR|COLUMNS|LC_.*|LANG", k)}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE,
                                        env={**base, "TERM": "xterm", "LANG": "C.UTF-8", **(env or {})})
        os.close(slave)
        self.bytes = b""

    def resize(self, width, height, fd=None):
        self.width, self.height = width, height
        fcntl.ioctl(self.master if fd is None else fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def read(self, seconds):
        """What is there within that time. False at the end."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            more = os.read(self.master, 1 << 16)
        except OSError:  # EIO: the program has ended
            more = b""
        self.bytes += more
        return more != b""

    def until(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            if not self.read(1) or time.monotonic() > end:
                raise AssertionError("%s did not come: %r" % (what, self.bytes[-2000:]))

    def end(self):
        """(status, text, standard error) when the program has ended by itself."""
        while self.read(PATIENCE):
            pass
        errors = self.process.stderr.read().decode()
        status = self.process.wait(PATIENCE)
        self.close()
        return status, self.bytes.decode().replace("\r\n", "\n"), errors

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()
        if self.master >= 0:
            os.close(self.master)
        self.master = -1

    def screen(self):
        """The lines that a person sees. Knows what our programs write: text, newlines, cursor up,
        home, and clearing of lines and of the screen. Other control characters are a failure."""
        lines, row, column = [""], 0, 0
        for text, code in re.findall("([^\x00-\x1f\x7f\x1b]+)|(\x1b\\[[0-9;]*[A-Za-z]|[\x00-\x1f\x7f])", self.bytes.decode()):
            if text:
                lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text):]
                column += len(text)
            elif code == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif code == "\r":
                column = 0
            elif code == "\x1b[K":
                lines[row] = lines[row][:column]
            elif code == "\x1b[J":
                lines = lines[:row] + [lines[row][:column]]
            elif code == "\x1b[2J":
                lines = [""] * (row + 1)
            elif code == "\x1b[H":
                row = column = 0
            elif re.fullmatch("\x1b\\[[0-9]+A", code):
                row -= int(code[2:-1])
            elif not re.fullmatch("\x1b\\[[0-9]*m", code):
                raise AssertionError("control sequence %r" % code)
        return lines

    def line(self, index):
        """Empty where the screen has none."""
        return "".join(self.screen()[index:][:1])
