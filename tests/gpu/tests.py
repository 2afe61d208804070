# SPDX-License-Identifier: Apache-2.0
"""The tests of the GPU suite. Each gets the card and returns figures (MiB unless the name says otherwise), or raises Failure or Skip.

For the driver (NVML), the memory of a process is what its memory objects hold. The card's total is more, by what the driver
keeps for itself. So the slice must never show less than the driver does for its processes. The card's total may exceed the
slice only by SLACK, which the node agent's audit grants, too."""
import os
import re
import sys
import time

from slices import MIB, PATIENCE, Failure, Skip

SLACK = 64 * MIB  # of the card's total above the slices
NOISE = 16 * MIB  # of the card's total without a process of the suite
HERE = os.path.dirname(os.path.abspath(__file__))


def need(condition, format, *values):
    if not condition:
        raise Failure(format % values)


def settle(card, bytes_):
    """The card's total comes back when the driver has cleaned up after the last process; it is waited for, and then judged."""
    deadline = time.monotonic() + PATIENCE / 12
    while card.host.used() > bytes_ + NOISE and time.monotonic() < deadline:
        time.sleep(0.05)
    left = card.host.used() - bytes_
    need(left <= NOISE, "%d MiB of the card are left", left // MIB)
    return left // MIB


measured = {}


def context_bytes(card):
    """What a context takes of the card, by the card's total, without a gate."""
    if "context" not in measured:
        with card.case("contexts", 1) as p:  # the first process also makes the driver's files and warms it up
            p.finish()
        before = card.host.used()
        with card.case("contexts", 1) as p:
            p.until("1")
            measured["context"] = card.host.used() - before
            p.finish()
        settle(card, before)
    return measured["context"]


def room(card, extra=2048):
    """MiB of a slice for one context and so much more."""
    return context_bytes(card) // MIB + extra


def some(card):
    """MiB of an allocation that a test holds. What a simulated card holds, this machine writes."""
    return 64 if card.env.get("ALIQUOT_SIM_DIR") else 256


# ---- what programs are told ----


def agree(card):
    mib = room(card)
    with card.case_in(mib, "agree") as p:
        told = p.until("told")
        page = card.slice(p)
        for key in ("cuda-total", "device-total", "nvml-total"):
            need(told[key] == mib * MIB, "%s says %d of %d", key, told[key], mib * MIB)
        need(page["limit"] == mib * MIB, "the slice says %d", page["limit"])
        left = page["limit"] - page["used"]
        need(abs(told["nvml-used"] - page["used"]) < MIB, "used is %d by NVML, %d by the slice", told["nvml-used"], page["used"])
        need(abs(told["nvml-free"] - left) < MIB, "free is %d by NVML, the slice has %d", told["nvml-free"], left)
        need(abs(told["cuda-free"] - left) < 2 * MIB, "free is %d by CUDA, the slice has %d", told["cuda-free"], left)
        p.finish()
    return {"limit": mib, "context": page["used"] // MIB, "nvml-free-gap-KiB": (told["nvml-free"] - left) // 1024,
            "cuda-free-gap-KiB": (told["cuda-free"] - left) // 1024}


def smi(card):
    mib = room(card)
    with card.case_in(mib, "hold", some(card)) as p:
        p.until("held")
        page = card.slice(p)
        for command in (["nvidia-smi", "--query-gpu=memory.total,memory.used", "--format=csv,noheader,nounits"], ["nvidia-smi"]):
            try:
                with card.beside(p, command) as q:
                    text = q.process.stdout.read()
                    need(q.end() == 0, "%s ended badly: %s", command, "".join(q.errors))
            except FileNotFoundError:
                raise Skip("there is no nvidia-smi")
            table = re.search(r"(\d+)MiB */ *(\d+)MiB", text)
            total, used = (int(table[2]), int(table[1])) if table else map(int, text.splitlines()[0].split(","))
            need(total == mib, "nvidia-smi shows %d of %d MiB as the total", total, mib)
            need(abs(used - page["used"] / MIB) <= 1, "nvidia-smi shows %d used, the slice has %.1f", used, page["used"] / MIB)
        p.finish()
    return {"total": total, "used": used}


# ---- every way to memory ----


class View:
    """Figures of one time: of the slice, of the process by the driver, and the card's total."""

    def __init__(self, card, p, before):
        self.slice = card.slice(p)["used"]
        self.process = card.host.processes().get(p.figures["pid"])  # None: not told, as in other pid namespaces
        self.card = card.host.used() - before

    def check(self, place, twice=0):
        """twice: bytes of objects that share one memory: the driver counts each of them."""
        if self.process is not None:
            need(self.slice >= self.process - twice, "%s: the slice says %d, the driver %d", place, self.slice, self.process)
        need(self.card <= self.slice + SLACK, "%s: the card has lost %d MiB, the slice says %d", place, self.card // MIB,
             self.slice // MIB)


def family(name, counted=True):
    def test(card):
        mib = some(card)
        twice = mib * MIB if name == "external" else 0
        before = context_bytes(card) and card.host.used()
        with card.case_in(room(card), "family", name, mib) as p:
            views = []
            for place in ("context", "held", "freed", "ended"):
                p.until(place)
                views.append(View(card, p, before))
                views[-1].check(place, twice)
                p.go()
            p.until(None)
        context, held, freed, ended = views
        grown = held.slice - context.slice
        need(not counted or grown >= mib * MIB * 99 // 100, "%d MiB are counted as %d", mib, grown // MIB)
        need(counted or grown < 4 * MIB, "memory of the host is counted: %d MiB", grown // MIB)
        seen = p.figures["free-context"] - p.figures["free-held"]
        need(abs(seen - grown) < 2 * MIB, "the program sees %d less free, the slice %d more used", seen, grown)
        need(freed.slice - context.slice <= 4 * MIB, "%d MiB stay counted after they are freed", (freed.slice - context.slice) // MIB)
        figures = {"counted": grown // MIB, "card": (held.card - context.card) // MIB, "kept": (freed.slice - context.slice) // MIB}
        if held.process is not None:
            figures["driver"] = (held.process - context.process) // MIB
        figures["left"] = settle(card, before)
        return figures
    return test


def over(name):
    """Managed memory may be refused late, and with another error than 2: that is recorded, and no failure."""
    recorded = name == "managed"

    def test(card):
        before = context_bytes(card) and card.host.used()
        mib = room(card)
        with card.case_in(mib, "over", name, (mib // 16 + 1) * 16) as p:
            p.until("context")
            context = card.host.used()
            p.go()
            told = p.until("refused")
            need(told["error"] == 2 or (recorded and told["error"] != 0), "an allocation over the limit answers %d", told["error"])
            taken = card.host.used() - context
            need(taken <= 4 * MIB, "%d MiB are taken on the card all the same", taken // MIB)
            told = p.finish()
            need(told["small"] == 0 or recorded, "what fits answers %d afterwards", told["small"])
        return {"error": told["error"], "small": told["small"], "taken": taken // MIB, "left": settle(card, before)}
    return test


def fill(card):
    before = context_bytes(card) and card.host.used()
    mib = room(card, 1024)
    with card.case_in(mib, "fill", 64) as p:
        told = p.until("full")
        view = View(card, p, before)
        view.check("full")
        need(told["error"] == 2, "at the limit the answer is %d", told["error"])
        need(view.slice <= mib * MIB, "%d are used of %d", view.slice, mib * MIB)
        need(mib * MIB - view.slice < 4 * MIB, "%d MiB were refused that are there", (mib * MIB - view.slice) // MIB)
        p.finish()
    return {"taken": told["bytes"] // MIB, "used": view.slice // MIB, "limit": mib, "card": view.card // MIB, "left": settle(card, before)}


# ---- processes, threads, contexts ----


def crowd(case, n, piece, mib):
    def test(card):
        before = context_bytes(card) and card.host.used()
        slice_mib = mib(card)
        processes = n(card, slice_mib)
        with card.case_in(slice_mib, case, processes, piece) as p:
            told = p.until("full")
            full, total = card.slice(p)["used"], card.host.used() - before
            need(told["error"] in (2, 0x51), "the refusal is %d", told["error"])
            need(full <= slice_mib * MIB, "%d of %d are used", full, slice_mib * MIB)
            need(full >= told["bytes"], "%d were given, %d are counted", told["bytes"], full)
            need(slice_mib * MIB - full < 2 * piece * MIB, "%d were refused that are there", slice_mib * MIB - full)
            need(total <= slice_mib * MIB + SLACK + processes * 32 * MIB, "the card has lost %d MiB", total // MIB)
            p.go()
            p.until("half")
            half = card.slice(p)["used"]
            need(half < full, "nothing came back of those that were killed")
            p.go()
            p.until("none")
            none = card.slice(p)["used"]
            need(none <= 4 * MIB, "%d MiB are left when all have ended", none // MIB)
            p.finish()
        return {"processes": processes, "pieces": told["pieces"], "full": full // MIB, "limit": slice_mib, "card": total // MIB,
                "after-kill": half // MIB, "left": settle(card, before)}
    return test


def as_many(card, mib):
    return max(2, min(64, (mib - 512) // max(1, context_bytes(card) // MIB + 8)))


def most(card):
    """A slice for 64 contexts, or as many as the card has room for."""
    free = (card.host.memory().total - card.host.used()) // MIB
    return min(free * 8 // 10, 64 * (context_bytes(card) // MIB + 8) + 2048)


def killed(card):
    """Kills in the middle of allocating and freeing, repeatedly; then another process can have all of it."""
    before = context_bytes(card) and card.host.used()
    mib = room(card, 2048) + context_bytes(card) // MIB
    with card.case_in(mib, "hold", some(card)) as p:
        p.until("held")
        alone = card.slice(p)["used"]
        for delay in range(12):
            with card.beside(p, [card.path("gpu-case"), "threads", "128", "1000000"]) as q:
                q.until("context")
                q.go()
                time.sleep(0.01 * delay)  # where it hits is of no matter
        with card.beside(p, [card.path("gpu-case"), "fill", "64"]) as q:
            told = q.until("full")
            used = card.slice(p)["used"]
            need(mib * MIB - used < 4 * MIB and used <= mib * MIB, "%d of %d MiB can be had after the kills", used // MIB, mib)
            q.finish()
        with card.beside(p, [card.path("gpu-case"), "hold", "1"]) as q:
            q.until("held")  # it finds what the dead still hold
            q.finish()
        after = card.slice(p)["used"]
        need(abs(after - alone) <= 4 * MIB, "%d MiB are used after the kills, %d before", after // MIB, alone // MIB)
        p.finish()
    return {"kills": 12, "had": told["bytes"] // MIB, "left": settle(card, before)}


def threads(card):
    before = context_bytes(card) and card.host.used()
    with card.case_in(room(card), "threads", 512, 50) as p:
        told = p.until("ended")
        need(told["taken"] + told["refused"] == 400, "%d of 400 answers", told["taken"] + told["refused"])
        need(told["free-context"] - told["free-ended"] <= 4 * MIB, "%d bytes stay counted", told["free-context"] - told["free-ended"])
        View(card, p, before).check("ended")
        p.finish()
    return {"taken": told["taken"], "refused": told["refused"], "left": settle(card, before)}


def contexts(card):
    """What a context takes, and how much of that is the driver's own, which no object shows."""
    n = 4
    before = context_bytes(card) and card.host.used()
    with card.case_in(room(card) + n * context_bytes(card) // MIB, "contexts", n) as p:
        views = []
        for place in map(str, range(n + 1)):
            p.until(place)
            views.append(View(card, p, before))
            p.go()
        p.until("ended")
        ended = View(card, p, before)
        need(ended.slice <= views[1].slice, "%d MiB stay counted without a context", ended.slice // MIB)
        p.finish()
    figures = {"first-counted": views[1].slice // MIB, "next-counted": (views[n].slice - views[1].slice) // (n - 1) // MIB,
               "first-card": views[1].card // MIB, "next-card": (views[n].card - views[1].card) // (n - 1) // MIB}
    if views[n].process is not None:
        own = [(v.card - v.process) for v in (views[1], views[n])]
        figures["next-driver-own-KiB"] = (own[1] - own[0]) // (n - 1) // 1024
    views[n].check("four contexts")
    figures["left"] = settle(card, before)
    return figures


def forked(card):
    before = context_bytes(card) and card.host.used()
    held = some(card)
    with card.case_in(room(card) + context_bytes(card) // MIB, "forked", held) as p:
        told = p.until("held")
        both = card.slice(p)["used"]
        need(both >= 2 * held * MIB, "two processes hold %d MiB, %d are counted", 2 * held, both // MIB)
        need(card.host.used() - before <= both + SLACK, "the card has lost %d MiB", (card.host.used() - before) // MIB)
        p.go()
        told = p.until("one")
        one = card.slice(p)["used"]
        need(one < both - held * MIB + 4 * MIB, "%d MiB are counted when one has ended, %d before", one // MIB, both // MIB)
        need(told["init-after-fork"] == 3, "cuInit after a fork answers %d", told["init-after-fork"])
        p.finish()
    return {"both": both // MIB, "one": one // MIB, "left": settle(card, before)}


def travels(case):
    """Memory that another process opens is counted there, too, as long as both have it."""
    def test(card):
        before = context_bytes(card) and card.host.used()
        with card.case_in(room(card) + context_bytes(card) // MIB, case, some(card)) as p:
            used = []
            for place in ("held", "opened", "closed"):
                p.until(place)
                used.append(card.slice(p)["used"])
                total = card.host.used() - before
                need(total <= used[-1] + SLACK, "%s: the card has lost %d MiB, %d are counted", place, total // MIB, used[-1] // MIB)
                p.go()
            p.until(None)
        need(used[1] >= used[0], "opening gives %d back", used[0] - used[1])
        need(abs(used[2] - used[0]) <= 4 * MIB, "%d MiB stay counted after it is closed", (used[2] - used[0]) // MIB)
        return {"held": used[0] // MIB, "opened": used[1] // MIB, "closed": used[2] // MIB, "left": settle(card, before)}
    return test


# ---- programs of the runtime, PyTorch, NCCL ----


def runtime(kind):
    def test(card):
        program = card.path("runtime-" + kind)
        if not os.path.exists(program):
            raise Skip("it was not built: no nvcc")
        if os.environ.get("ALIQUOT_SIM_DIR"):
            raise Skip("the CUDA runtime does not start on a simulated driver: docs/internals/simulator-cuda.md")
        before = context_bytes(card) and card.host.used()
        mib = room(card)
        with card.run(mib, [program, "512"]) as p:
            told = p.until("held")
            used = card.slice(p)["used"]
            for key in ("properties-total", "total-held"):
                need(told[key] == mib * MIB, "%s says %d of %d", key, told[key], mib * MIB)
            need(abs(told["free-held"] - (mib * MIB - used)) < 2 * MIB, "free is %d, the slice has %d", told["free-held"],
                 mib * MIB - used)
            need(told["word"] == 7, "the kernel has computed %d", told["word"])
            p.go()
            told = p.until("freed")
            need(told["error"] == 2, "cudaMalloc over the limit answers %d", told["error"])
            need(told["managed"] == 2, "managed memory holds %d", told["managed"])
            p.finish()
        return {"used": used // MIB, "left": settle(card, before)}
    return test


def torch(**environment):
    def test(card):
        before = context_bytes(card) and card.host.used()
        mib = room(card, 4096)
        with card.run(mib, [sys.executable, os.path.join(HERE, "torch_case.py")], **environment) as p:
            told = p.until(None)
        for key in ("total", "properties-total"):
            need(told[key] == mib * MIB, "%s says %d of %d", key, told[key], mib * MIB)
        for key in ("graph", "caught", "works-on"):
            need(told[key] == 1, "%s: no", key)
        need(told["reserved"] <= mib * MIB, "%d MiB are reserved of %d", told["reserved"] // MIB, mib)
        return {"tensors": told["tensors"], "reserved": told["reserved"] // MIB, "limit": mib, "left": settle(card, before)}
    return test


def nccl(card):
    if card.host.cards < 2:
        raise Skip("there is one card")
    if not os.path.exists(card.path("allreduce")):
        raise Skip("it was not built: no NCCL")
    with card.run(room(card, 4096), [card.path("allreduce"), "256"], cards=2) as p:
        told = p.until(None)
    return {"sum": told["sum"]}


# ---- time: medians, with the gate and without it ----


def times(card):
    """In turns, and the best of each, because machines have other things to do."""
    n, rounds = 200, 3
    plain, gated = {}, {}
    context_bytes(card)
    for _ in range(rounds):
        with card.case("time", n) as p:
            best(plain, p.until(None))
        with card.case_in(room(card), "time", n) as p:
            best(gated, p.until(None))
    figures = {}
    for key in sorted(plain):
        figures[key] = "%d/%d" % (gated[key], plain[key])
        figures[key.replace("-ns", "-ratio")] = "%.2f" % (gated[key] / max(1, plain[key]))
    return figures


def best(of, told):
    for key, value in told.items():
        if key.endswith("-ns"):
            of[key] = min(value, of.get(key, value))
