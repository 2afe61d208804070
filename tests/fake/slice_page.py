# SPDX-License-Identifier: Apache-2.0
"""Makes and reads slice pages for tests. The layout is page.py's."""

import os
import struct

import page as layout


def limits(limit, card=0, percent=0, flags=0, policy=0, group=0, uuid=b"", files=(), container=b"", asked=b"", log=None):
    """Makes the file limits. limit, group: bytes. files: paths of the simulated control, device and
    uvm files. log: the path of the maker's standard error."""
    text = bytearray(layout.LIMITS_SIZE)
    struct.pack_into("<QII", text, 0, layout.LIMITS_MAGIC, layout.VERSION, len(text))
    struct.pack_into("<QQQQ", text, layout.GENERATION, 2, limit, 1 << 40, group)
    struct.pack_into("<III", text, layout.CARD, card, percent, flags)
    struct.pack_into("<I", text, layout.POLICY, policy)
    text[layout.UUID:layout.UUID + len(uuid)] = uuid
    text[layout.CONTAINER:layout.CONTAINER + len(container)] = container
    text[layout.ASKED:layout.ASKED + len(asked)] = asked
    struct.pack_into("<Q", text, layout.ASKED_LIMIT, limit)
    named = [(layout.FILES + layout.FILE_SIZE * i, name) for i, name in enumerate(files)]
    for at, name in named + ([(layout.LOG, log)] if log else []):
        st = os.stat(name)
        struct.pack_into("<QQQ", text, at, 0, st.st_dev, st.st_ino)
    return text


def counters():
    """Makes the file counters, with no row in use."""
    text = bytearray(layout.COUNTERS_SIZE)
    struct.pack_into("<QII", text, 0, layout.COUNTERS_MAGIC, layout.VERSION, len(text))
    return text


def row_at(row):
    """The offset of a row. Its owner locks the first byte."""
    return layout.ROWS + layout.ROW_SIZE * row


def seen(path):
    """The arbiter's heartbeat in this file, by its own clock; 0: none yet."""
    with open(path, "rb") as f:
        return struct.unpack_from("<Q", f.read(), layout.SEEN)[0]
