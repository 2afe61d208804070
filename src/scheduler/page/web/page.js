// SPDX-License-Identifier: Apache-2.0
// Shows what /events tells: the whole state once, then each difference. Texts of the cluster become text
// nodes and never markup. The JSON is described in page_rows.h, page_waiting.h and page_state.h.
"use strict";

const HEALTHY = 0, FENCED = 1, UNHEALTHY = 2, GONE = 3; // and 4: cordoned
const MISSING = 2; // limits of the driver on memory, which the node asks for
const STATES = ["", "fenced by a ConfigMap", "unhealthy, its agent says", "not on this node any more", "cordoned by an annotation of the node"];
const RETRY_MS = 5000, USE_MS = 5000, RATE_MS = 2500, AGES_MS = 30000, SILENT_MS = 40000, FEW = 6; // SILENT_MS: the stream tells something every 15 s; FEW: lines of a list above the nodes, until all are asked for

const $ = (selector) => document.querySelector(selector);
const nodes = new Map(); // name: {row, sums, view}
let cluster = {}, waiting = { total: 0, pods: [] };
let version = "", seq = 0, dirtyOrder = false, changed = null; // changed: when the last difference came
let stream = null, heard = Date.now(); // heard: when the stream last told anything

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

const collator = new Intl.Collator("en", { numeric: true });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 }), tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const count = (n) => whole.format(n);
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
const percent = (part, whole) => (whole > 0 ? Math.min(100, (100 * part) / whole) : 0);

// In the unit of the amount `by`, so that what stands side by side has one unit.
function size(mib, by = mib) {
  const [value, name] = by >= 10 * 1048576 ? [mib / 1048576, "TiB"] : by % 1024 && by < 1024 ? [mib, "MiB"] : [mib / 1024, "GiB"];
  return `${(value < 100 ? tenths : whole).format(value)} ${name}`;
}

// Units of this node, as people read them, beside the units `by`. Nodes that share whole cards have no unit.
function amount(row, units, by = units) {
  return row.unit ? size(units * row.unit, by * row.unit) : plural(units, "card");
}

// ---- sums ----

function sumsOf(row) {
  const s = { total: 0, used: row.pending || 0, cards: 0, busy: 0, core: 0, coreUsed: 0, pods: 0, out: 0, trouble: false };
  for (const [, pods] of row.namespaces || []) s.pods += pods;
  for (const [, units, used, core, pods, state = HEALTHY] of row.cards) {
    s.total += units;
    s.used += used;
    s.coreUsed += row.core ? core : 0;
    if (state !== HEALTHY) s.out++;
    if (state === GONE) continue;
    s.cards++;
    s.busy += pods > 0;
    s.core += row.core ? 100 : 0;
  }
  s.trouble = s.out > 0 || row.limits === MISSING || !!row.change || !!row.pending || !!row.resizes;
  return s;
}

// The card with the most free memory that takes a new slice: {mib, core, where}. core: percent that is free there.
function largestFit() {
  let best = null;
  for (const { row } of nodes.values()) {
    if (!row.unit || row.change) continue;
    for (const [index, units, used, core, , state = HEALTHY] of row.cards) {
      const mib = (units - used) * row.unit, free = row.core ? 100 - core : undefined;
      if (state !== HEALTHY || mib <= 0 || free <= 0) continue;
      if (!best || mib > best.mib || (mib === best.mib && free > best.core)) best = { mib, core: free, where: `${row.name} gpu${index}` };
    }
  }
  return best;
}

function tile(name, value, small, part, color) {
  const box = make("div"), dd = make("dd", "", value);
  if (small) dd.append(" ", make("small", "", small));
  box.append(make("dt", "", name), dd);
  if (part !== undefined) {
    const meter = make("div", "meter");
    meter.style.setProperty("--f", `${part.toFixed(1)}%`);
    meter.style.setProperty("--hue", `var(${color})`);
    box.append(meter);
  }
  return box;
}

function showSums() {
  const all = { total: 0, used: 0, cards: 0, busy: 0, core: 0, coreUsed: 0, out: 0 };
  for (const { row, sums } of nodes.values()) {
    all.total += (row.unit || 0) * sums.total;
    all.used += (row.unit || 0) * sums.used;
    for (const key of ["cards", "busy", "core", "coreUsed", "out"]) all[key] += sums[key];
  }
  const memory = percent(all.used, all.total), compute = percent(all.coreUsed, all.core);
  const tiles = [tile("Memory given out", size(all.used, all.total), `of ${size(all.total)}`, memory, "--fill")];
  if (all.core) tiles.push(tile("Compute given out", `${Math.floor(compute)} %`, `of ${plural(all.core / 100, "card")}`, compute, "--core"));
  tiles.push(tile("Cards with a pod", count(all.busy), `of ${count(all.cards)}`, percent(all.busy, all.cards), "--fill"));
  const fit = largestFit();
  tiles.push(tile("Largest free slice", fit ? size(fit.mib) : "none", fit && fit.core !== undefined ? `with ${fit.core} %` : ""));
  if (fit) tiles[tiles.length - 1].title = fit.where;
  tiles.push(tile("GPU nodes", count(nodes.size), `of ${count(cluster.nodes || 0)}`));
  tiles.push(tile("Waiting pods", count(waiting.total)));
  const out = tile("Cards out of service", count(all.out));
  out.classList.toggle("bad", all.out > 0);
  tiles.push(out);
  $("#sums").replaceChildren(...tiles);
}

// ---- sums by namespace ----

function namespaceSums() {
  const sums = new Map();
  for (const { row } of nodes.values())
    for (const [name, pods, units, core] of row.namespaces || []) {
      const s = sums.get(name) || { name, pods: 0, mib: 0, cards: 0, core: 0 };
      s.pods += pods;
      if (row.unit) s.mib += units * row.unit;
      else s.cards += units;
      if (row.core) s.core += core;
      sums.set(name, s);
    }
  return [...sums.values()].sort((a, b) => b.mib - a.mib || b.cards - a.cards || collator.compare(a.name, b.name));
}

function namespaceRow(s, most, columns) {
  const row = make("tr"), name = make("th", "", s.name || "others");
  name.scope = "row";
  row.append(name, make("td", "number", plural(s.pods, "pod")), make("td", "number", size(s.mib, most)));
  if (columns.core) row.append(make("td", "number", s.core ? `${count(s.core)} %` : ""));
  if (columns.cards) row.append(make("td", "number", s.cards ? plural(s.cards, "whole card") : ""));
  return row;
}

function showNamespaces() {
  const sums = namespaceSums(), columns = { core: sums.some((s) => s.core), cards: sums.some((s) => s.cards) };
  $("#namespaces").hidden = sums.length === 0;
  $("#namespaces .count").textContent = count(sums.length);
  $("#namespaces tbody").replaceChildren(...sums.slice(0, limitOf("#namespaces", sums.length)).map((s) => namespaceRow(s, sums[0].mib, columns)));
}

// ---- what needs attention ----

// One line for all cards of a node in the same state.
function cardTroubles(row, found) {
  const cards = STATES.map(() => []);
  for (const [index, , , , , state = HEALTHY] of row.cards) cards[state].push(`gpu${index}`);
  STATES.forEach((text, state) => {
    if (state !== HEALTHY && cards[state].length) found.push({ name: row.name, text: `${cards[state].join(", ")}: ${text}`, out: true });
  });
}

function troubles() {
  const found = [];
  for (const { row } of nodes.values()) {
    cardTroubles(row, found);
    if (row.limits === MISSING) found.push({ name: row.name, text: "no isolated container starts: the driver is to limit memory, and cannot", out: true });
    if (row.change) found.push({ name: row.name, text: `a change waits: ${row.change}` });
    if (row.resizes) found.push({ name: row.name, text: `${plural(row.resizes, "resize")} refused, waiting, or not answered by its agent` });
    if (row.pending) found.push({ name: row.name, text: `${amount(row, row.pending)} of pods that have no card yet` });
  }
  return found.sort((a, b) => !!b.out - !!a.out || collator.compare(a.name, b.name));
}

function troubleLine(t) {
  const item = make("li", t.out ? "out" : ""), link = make("a", "", t.name);
  link.href = `#node/${encodeURIComponent(t.name)}`;
  item.append(link, make("span", "", t.text));
  return item;
}

function showTroubles() {
  const found = troubles();
  $("#trouble").hidden = found.length === 0;
  $("#trouble .count").textContent = count(found.length);
  $("#trouble ul").replaceChildren(...found.slice(0, limitOf("#trouble", found.length)).map(troubleLine));
}

// How many lines of a list are shown: few, so that the nodes are near, or all after a click.
const wholeLists = new Set();

function limitOf(section, n) {
  const button = $(`${section} .all`), all = wholeLists.has(section);
  button.hidden = n <= FEW + 1;
  button.textContent = all ? "show fewer" : `show all ${count(n)}`;
  button.setAttribute("aria-expanded", all);
  return all || button.hidden ? n : FEW;
}

function onAll(section, show) {
  $(`${section} .all`).addEventListener("click", () => {
    if (!wholeLists.delete(section)) wholeLists.add(section);
    show();
  });
}

// ---- waiting pods ----

function asks(pod) {
  if (pod.whole) return plural(pod.cards, "whole card");
  const units = new Set([...nodes.values()].map(({ row }) => row.unit).filter(Boolean));
  const memory = units.size === 1 ? size(pod.mem * [...units][0]) : plural(pod.mem, "unit");
  return `${memory}${pod.core ? `, ${pod.core} %` : ""}${pod.cards > 1 ? ` on each of ${pod.cards} cards` : ""}`;
}

// One text for each line. A reason may begin with the word that stands before it here.
function reasons(pod) {
  if (pod.gang) return [pod.gang];
  if (pod.of === undefined) return ["not judged yet"];
  if (pod.fit > 0) return [`${count(pod.fit)} of ${plural(pod.of, "node")} ${pod.fit === 1 ? "has" : "have"} the cards for it; what else it waits for is in its Events`];
  if (!pod.why.length) return ["there is no GPU node"];
  return pod.why.map(([text, n]) => ofNodes(text, n));
}

// "node(s) have no card" of 2 and 1: "2 nodes have no card", "1 node has no card". Other reasons are of the cards of these nodes.
const ONE = { are: "is", have: "has", run: "runs", take: "takes" };

function ofNodes(text, n) {
  const match = /^node\(s\) (\w+)( .*)$/s.exec(text);
  if (!match) return `${plural(n, "node")}: ${text}`;
  return `${plural(n, "node")} ${n === 1 ? ONE[match[1]] || match[1] : match[1]}${n === 1 ? match[2].replace(", and take ", ", and takes ") : match[2]}`;
}

function age(since) {
  const seconds = Math.max(0, (Date.now() - Date.parse(since)) / 1000);
  if (!(seconds >= 60)) return "";
  const [value, unit] = seconds < 3600 ? [seconds / 60, "minute"] : seconds < 172800 ? [seconds / 3600, "hour"] : [seconds / 86400, "day"];
  return `for ${plural(Math.floor(value), unit)}`;
}

async function fetchInto(path, show, refused) {
  try {
    const answer = await fetch(path);
    const text = await answer.text();
    if (answer.ok) show(text);
    else refused(text.trim());
  } catch {
    refused("the scheduler does not answer");
  }
}

const waitingViews = new Map(); // uid: {box, ...}

function waitingView(pod) {
  const box = make("details"), summary = make("summary"), pre = make("pre", "", "");
  const view = { box, name: make("span", "name"), asks: make("span", "asks"), age: make("span", "dim"), why: make("span", "why dim") };
  summary.append(view.name, view.asks, view.age, view.why);
  box.append(summary, pre);
  const load = () => fetchInto(`/why/${encodeURIComponent(pod.uid)}`, (text) => { pre.textContent = text; }, (text) => { pre.textContent = text; });
  box.addEventListener("toggle", () => box.open && load());
  view.load = load;
  return view;
}

// Pods of one namespace that ask for the same and wait for the same, as replicas do: one block, of which the first pod stands for all.
function waitingBlocks() {
  const blocks = new Map();
  for (const pod of waiting.pods) {
    const why = reasons(pod).join("\n"), asked = asks(pod), key = JSON.stringify([pod.namespace, asked, why]);
    const block = blocks.get(key);
    if (block) block.pods.push(pod);
    else blocks.set(key, { pods: [pod], asked, why });
  }
  return [...blocks.values()];
}

function showWaiting() {
  const list = $("#waiting .list"), seen = new Set(), blocks = waitingBlocks(), shown = limitOf("#waiting", blocks.length);
  $("#waiting").hidden = waiting.total === 0;
  $("#waiting .count").textContent = count(waiting.total);
  for (const { pods, asked, why } of blocks.slice(0, shown)) {
    const [pod] = pods;
    let view = waitingViews.get(pod.uid);
    if (!view) {
      view = waitingView(pod);
      waitingViews.set(pod.uid, view);
      list.append(view.box);
    }
    seen.add(pod.uid);
    if (view.box.open && view.why.textContent !== why) view.load();
    view.name.textContent = `${pod.namespace}/${pod.name}`;
    if (pods.length > 1) view.name.append(" ", make("span", "dim", `and ${plural(pods.length - 1, "pod")} like it`));
    view.name.title = pods.map((p) => p.name).join("\n");
    view.asks.textContent = asked;
    view.age.textContent = age(pod.since);
    view.why.textContent = why;
  }
  for (const [uid, view] of waitingViews)
    if (!seen.has(uid)) {
      view.box.remove();
      waitingViews.delete(uid);
    }
  const rest = waiting.total - waiting.pods.length;
  $("#waiting .more").textContent = rest > 0 && shown === blocks.length ? `and ${plural(rest, "pod")} more` : "";
}

// ---- a node ----

function cardTitle(row, [index, units, used, core, pods]) {
  const compute = row.core ? `, ${core} % of compute` : "";
  return `gpu${index}: ${amount(row, used, units)} of ${amount(row, units)}${compute}, ${plural(pods, "pod")}`;
}

function showCards(view, row) {
  while (view.cards.childElementCount > row.cards.length) view.cards.lastChild.remove();
  row.cards.forEach((card, i) => {
    const [, units, used, core, , state = HEALTHY] = card;
    const bar = view.cards.children[i] || view.cards.appendChild(make("i"));
    bar.className = state !== HEALTHY ? "card out" : used > units ? "card over" : "card";
    bar.style.setProperty("--f", `${percent(used, units)}%`);
    bar.style.setProperty("--c", `${percent(core, 100)}%`);
  });
  view.cards.classList.toggle("has-core", !!row.core);
}

// The first label tells nodes apart; the domain behind it is often the same for all. A number behind a dot is no domain.
function nodeName(name) {
  const box = make("span", "name"), dot = /^[^.]*[^.\d][^.]*\.[a-z]/i.test(name) ? name.indexOf(".") : -1;
  box.append(dot > 0 ? name.slice(0, dot) : name);
  if (dot > 0) box.append(make("span", "domain", name.slice(dot)));
  return box;
}

function nodeView(name) {
  const view = {
    box: make("details"), mode: make("span", "tag"), cards: make("span", "cards"), memory: make("span", "number memory"), pods: make("span", "number dim pods"),
    inside: make("div", "inside"),
  };
  const summary = make("summary");
  view.box.id = `node/${name}`;
  view.cards.setAttribute("role", "img");
  summary.append(nodeName(name), view.mode, view.cards, view.memory, view.pods);
  view.box.append(summary, view.inside);
  view.box.addEventListener("toggle", () => {
    if (view.box.open) {
      openNode(name);
      askUse(name);
    } else {
      view.inside.replaceChildren();
      Object.assign(nodes.get(name) || {}, { hues: null, use: null, silent: "", details: null });
    }
  });
  return view;
}

function showNode(node) {
  const { row, sums, view } = node;
  view.mode.textContent = row.change ? "change waits" : row.mode;
  view.mode.className = row.change ? "tag warn" : "tag";
  view.memory.textContent = `${row.unit ? amount(row, sums.used, sums.total) : sums.used} of ${amount(row, sums.total)}`;
  view.pods.textContent = plural(sums.pods, "pod");
  view.cards.setAttribute("aria-label", plural(row.cards.length, "card") + (sums.out ? `, ${sums.out} out of service` : ""));
  showCards(view, row);
  if (view.box.open) openNode(row.name);
}

// Pods of one node get colours that differ, and keep them while the node is open. The first seven are those of Okabe and
// Ito, without the red one, which would look like an alarm: they stay apart for readers with a colour vision deficiency.
const HUES = ["202 100% 38%", "41 100% 45%", "164 100% 33%", "327 45% 64%", "202 77% 66%", "56 80% 52%", "220 12% 52%", "275 40% 45%"];

function hueOf(node, name) {
  if (!node.hues) node.hues = new Map();
  if (!node.hues.has(name)) node.hues.set(name, node.hues.size);
  return HUES[node.hues.get(name) % HUES.length];
}

const podOf = (slice) => `${slice.namespace}/${slice.name}`;
// A deleted pod with processes that still run, and the next pod of its name, are two.
const keyOf = (slice) => podOf(slice) + (slice.gone ? " deleted" : "");

// Texts of what a slice used of its card's time, and for how long it had the card, since the answer before.
function timeTexts(rate) {
  return rate ? [`${rate.used.toFixed(0)} % used`, `${rate.held.toFixed(0)} % held`] : [];
}

// Of the init containers of a pod, which have their slices before the others: the largest stands for all.
function initNote(row, inits, units) {
  const most = inits.reduce((a, b) => (b.mem > a.mem ? b : a)), size = amount(row, most.mem, units);
  return inits.length > 1 ? `before: ${inits.length} init containers, up to ${size}` : `before: init container ${most.container}, ${size}`;
}

// The slices that have a row, with those of init containers that stand in it. One of a pod with init containers alone has a row, too.
function rowsOf(slices) {
  const pods = new Map(), rows = [];
  for (const s of slices) pods.set(keyOf(s), [...(pods.get(keyOf(s)) || []), s]);
  for (const all of pods.values()) {
    const inits = all.filter((s) => s.kind === "init"), others = all.filter((s) => s.kind !== "init");
    if (others.length) others.forEach((s, i) => rows.push([s, i ? [] : inits]));
    else rows.push([inits[0], inits.slice(1)]);
  }
  return rows;
}

function sliceRow(node, slice, inits, used, rate) {
  const { row } = node, line = make("tr"), pod = make("td"), dot = make("i"), notes = [];
  dot.style.setProperty("--h", hueOf(node, podOf(slice)));
  if (slice.kind !== "main" || slice.container > 0) notes.push(`${slice.kind === "main" ? "container" : slice.kind} ${slice.container}`);
  if (slice.gone) notes.push("deleted, its processes still run");
  pod.append(dot, podOf(slice));
  if (notes.length) pod.append(" ", make("span", "dim", notes.join(", ")));
  if (slice.resize) pod.append(make("div", "dim", `resize: ${slice.resize}`));
  const units = (row.cards.find(([index]) => index === slice.card) || [0, slice.mem])[1];
  if (inits.length) pod.append(make("div", "dim", initNote(row, inits, units)));
  const memory = make("td", "number", amount(row, slice.mem, units));
  if (used !== undefined) memory.append(make("div", "dim", `${size(used, units * row.unit)} used`));
  line.append(pod, memory);
  if (!showsCompute(node)) return line;
  const compute = make("td", "number", row.core ? (slice.core ? `${slice.core} %` : "") : rate ? `${rate.share.toFixed(0)} %` : "");
  compute.append(...timeTexts(rate).map((text) => make("div", "dim", text)));
  line.append(compute);
  return line;
}

function table(node, slices) {
  const t = make("table"), head = make("tr");
  for (const text of ["Pod", "Memory", "Compute"].slice(0, showsCompute(node) ? 3 : 2)) {
    const cell = make("th", text === "Pod" ? "" : "number", text);
    cell.scope = "col";
    head.append(cell);
  }
  const told = new Set(); // the use is of a pod on this card: it stands at the pod's first slice
  t.append(head, ...rowsOf(slices).map(([s, inits]) => {
    const first = !told.has(keyOf(s));
    told.add(keyOf(s));
    return sliceRow(node, s, inits, first ? useOf(node, s) : undefined, first ? rateOf(node, s) : undefined);
  }));
  return t;
}

// Init containers run before the others, so that their slices are not added up with theirs.
function stack(node, card, slices) {
  const [, units, used] = card, bar = make("div", "stack"), length = Math.max(units, used, 1);
  let rest = used;
  const counts = new Set();
  const part = (mem, className, name, use) => {
    const piece = make("i", className);
    piece.style.width = `${(100 * mem) / length}%`;
    if (!className) piece.style.setProperty("--h", hueOf(node, name));
    piece.title = name;
    if (use !== undefined && node.row.unit) piece.style.setProperty("--u", `${percent(use, mem * node.row.unit)}%`);
    bar.append(piece);
  };
  for (const s of slices) {
    if (s.kind === "init" || s.mem === 0) continue;
    rest -= s.mem;
    part(s.mem, "", podOf(s), counts.has(keyOf(s)) ? undefined : useOf(node, s));
    counts.add(keyOf(s));
  }
  if (rest > 0) part(rest, "rest", "held by init containers, or kept for a pod");
  return bar;
}

// The card's time: a part for each pod's share, and how much of it the pod uses. Nothing where it is not limited.
function timeStack(node, index, slices) {
  const bar = make("div", "stack time"), told = new Set();
  let used = 0, held = 0;
  for (const s of slices) {
    const rate = told.has(keyOf(s)) ? undefined : rateOf(node, s);
    told.add(keyOf(s));
    if (!rate) continue;
    used += rate.used;
    held += rate.held;
    const piece = make("i");
    piece.style.width = `${Math.min(100, rate.share)}%`;
    piece.style.setProperty("--h", hueOf(node, podOf(s)));
    piece.style.setProperty("--u", `${percent(rate.used, rate.share)}%`);
    piece.title = `${podOf(s)}: ${timeTexts(rate).join(", ")}`;
    bar.append(piece);
  }
  return bar.childElementCount ? { bar, text: `; ${used.toFixed(0)} % of its time used, ${held.toFixed(0)} % held` } : null;
}

function cardDetails(node, card, details) {
  const { row } = node, [index, units, , , , state = HEALTHY] = card, slices = details.slices.filter((s) => s.card === index);
  const box = make("div", state === HEALTHY ? "one" : "one out"), title = make("h3", "", `gpu${index} `), model = details.models[index];
  const measured = node.use && node.use.cards.get(index), used = measured && measured.used !== undefined ? `; ${size(measured.used, units * (row.unit || 1024))} used, by the driver` : "";
  const time = timeStack(node, index, slices);
  title.append(make("span", "dim", `${model ? `${model}: ` : ""}${cardTitle(row, card).replace(/^gpu\d+: /, "")}${used}${time ? time.text : ""}`));
  const by = details.fences[index];
  if (measured && measured.xid) title.append(" ", make("span", "state", `XID ${measured.xid}`));
  if (state !== HEALTHY) title.append(" ", make("span", "state", state === FENCED && by ? `fenced by the ConfigMap kube-system/${by}` : STATES[state]));
  box.append(title, stack(node, card, slices));
  if (time) box.append(time.bar);
  if (slices.length) box.append(table(node, slices));
  return box;
}

// At most one request of a node at a time; a change that comes meanwhile asks once more.
async function openNode(name) {
  const node = nodes.get(name);
  if (!node || node.asking) {
    if (node) node.again = true;
    return;
  }
  node.asking = true;
  node.again = false;
  await fetchInto(`/node/${encodeURIComponent(name)}`, (text) => {
    node.details = JSON.parse(text);
    showDetails(node);
  }, (text) => node.view.inside.replaceChildren(make("p", "dim", text)));
  node.asking = false;
  if (node.again && node.view.box.open) openNode(name);
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

function showDetails(node) {
  const { row, view, details } = node, parts = [];
  if (node.silent) parts.push(make("p", "dim", `What processes use is not known: ${node.silent}.`));
  if (row.change) parts.push(make("p", "", `A change waits: ${row.change}. Until then the node takes no new pod.`));
  if (details.isolation) parts.push(make("p", row.limits === MISSING ? "state" : "dim", sentence(details.isolation)));
  if (details.fences_wrong) parts.push(make("p", "state", details.fences_wrong));
  parts.push(...row.cards.map((card) => cardDetails(node, card, details)));
  if (details.pending.length) parts.push(make("p", "", `Without a card yet: ${details.pending.map((p) => `${p.namespace}/${p.name} (${amount(row, p.mem)})`).join(", ")}`));
  if (!parts.length) parts.push(make("p", "dim", "The node has not reported its cards yet."));
  view.inside.replaceChildren(...parts);
}

// ---- what an open node's agent measures ----

// MiB that the processes of the slice's pod hold on its card; undefined: not known.
function useOf(node, slice) {
  return node.use ? node.use.pods.get(`${keyOf(slice)} ${slice.card}`) : undefined;
}

// Percent of a card: {share, used, held} of the slice's pod on it; undefined: not known, or not limited.
function rateOf(node, slice) {
  return node.use ? node.use.rates.get(`${keyOf(slice)} ${slice.card}`) : undefined;
}

const showsCompute = (node) => !!node.row.core || !!(node.use && node.use.rates.size);

// Counters become rates between two answers. `# at` says when each came; the same answer keeps its rates.
function setRates(use, before) {
  const seconds = before ? use.at - before.at : NaN;
  if (seconds === 0) use.rates = before.rates;
  if (!(seconds > 0)) return; // the first one, or of another scheduler
  for (const [key, { share, used, held }] of use.times) {
    const was = before.times.get(key);
    if (was && used >= was.used && held >= was.held) // else its containers began anew
      use.rates.set(key, { share: 100 * share, used: (100 * (used - was.used)) / seconds, held: (100 * (held - was.held)) / seconds });
  }
}

const TIMES = { compute_share_ratio: "share", compute_used_seconds_total: "used", compute_held_seconds_total: "held" };

function readUse(text, before) {
  const at = /^# at ([0-9.]+)$/m.exec(text);
  const use = { cards: new Map(), pods: new Map(), times: new Map(), rates: new Map(), at: at ? Number(at[1]) : NaN };
  for (const line of text.split("\n")) {
    const match = /^aliquot_node_(card|container)_(memory_used_bytes|fence_xid|healthy|compute_\w+)\{(.*)\} ([0-9.e+-]+)$/.exec(line);
    if (!match) continue;
    const labels = {}, value = Number(match[4]);
    for (const [, key, quoted] of match[3].matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[key] = quoted;
    const card = Number(labels.gpu);
    if (match[1] === "container") {
      const pod = { namespace: labels.NamespaceName, name: labels.PodName, gone: labels.DeletedPodUID };
      const key = `${keyOf(pod)} ${card}`, name = TIMES[match[2]];
      if (name) {
        const times = use.times.get(key) || { share: 0 };
        times[name] = (times[name] || 0) + value;
        use.times.set(key, times);
      } else use.pods.set(key, (use.pods.get(key) || 0) + value / 1048576);
      continue;
    }
    const of = use.cards.get(card) || {};
    use.cards.set(card, of);
    if (match[2] === "memory_used_bytes") of.used = value / 1048576;
    else if (match[2] === "fence_xid") of.xid = value;
  }
  setRates(use, before);
  return use;
}

// Asks again while the node is open and the page is seen; one question of a node at a time.
async function askUse(name) {
  const node = nodes.get(name);
  if (!node || node.askingUse) return;
  node.askingUse = true;
  while (node.view.box.open && nodes.get(name) === node) {
    if (!document.hidden) {
      await fetchInto(`/use/${encodeURIComponent(name)}`, (text) => {
        node.silent = text.startsWith("unknown: ") ? text.slice("unknown: ".length).trim() : "";
        node.use = node.silent ? null : readUse(text, node.use);
      }, (text) => { node.use = null; node.silent = text; });
      if (node.view.box.open && node.details) showDetails(node);
    }
    // The second answer gives the first rates.
    await new Promise((done) => setTimeout(done, node.use && node.use.times.size && !node.use.rates.size ? RATE_MS : USE_MS));
  }
  node.askingUse = false;
}

// ---- the list of nodes ----

const ORDERS = {
  name: (a, b) => collator.compare(a.row.name, b.row.name),
  full: (a, b) => percent(b.sums.used, b.sums.total) - percent(a.sums.used, a.sums.total) || ORDERS.name(a, b),
  free: (a, b) => (b.row.unit || 0) * (b.sums.total - b.sums.used) - (a.row.unit || 0) * (a.sums.total - a.sums.used) || ORDERS.name(a, b),
};

function showList() {
  const find = $("#find").value.trim().toLowerCase(), only = $("#only").checked;
  let shown = 0;
  for (const { row, sums, view } of nodes.values()) {
    view.box.hidden = (find && !row.name.toLowerCase().includes(find)) || (only && !sums.trouble);
    shown += !view.box.hidden;
  }
  $("#nodes .count").textContent = shown === nodes.size ? count(shown) : `${count(shown)} of ${count(nodes.size)}`;
  $("#nodes .more").textContent = nodes.size === 0 ? (cluster.synced === false ? "The scheduler still reads the cluster." : "No node shares a GPU.") : shown === 0 ? "No node matches." : "";
}

// Moves only what stands at the wrong place, so that focus and scroll position stay.
function orderList() {
  const list = $("#nodes .list"), sorted = [...nodes.values()].sort(ORDERS[$("#order").value]);
  let at = list.firstElementChild;
  for (const { view } of sorted) {
    if (view.box === at) at = at.nextElementSibling;
    else list.insertBefore(view.box, at);
  }
  dirtyOrder = false;
}

// ---- the stream ----

function take(row) {
  let node = nodes.get(row.name);
  if (!node) {
    node = { view: nodeView(row.name) };
    nodes.set(row.name, node);
    dirtyOrder = true;
  }
  node.row = row;
  node.sums = sumsOf(row);
  showNode(node);
  dirtyOrder = dirtyOrder || $("#order").value !== "name";
}

function forget(name) {
  const node = nodes.get(name);
  if (node) node.view.box.remove();
  nodes.delete(name);
}

function takeAll(told) {
  if (told.cluster) cluster = told.cluster;
  if (told.waiting) waiting = told.waiting;
  for (const row of told.nodes || []) take(row);
  for (const name of told.gone || []) forget(name);
  if (dirtyOrder) orderList();
  showSums();
  showTroubles();
  showNamespaces();
  showWaiting();
  showList();
  $("#cluster").textContent = cluster.name || "";
  document.title = cluster.name ? `${cluster.name} - Aliquot` : "Aliquot";
  $("#version").textContent = cluster.version ? `Aliquot ${cluster.version}.` : "";
  if (version && version !== cluster.version) location.reload(); // the scheduler was updated
  version = cluster.version;
  seq = told.seq;
}

function status(is, text) {
  const element = $("#status");
  if (element.dataset.is === is && element.textContent === text) return;
  element.dataset.is = is;
  element.textContent = text;
}

function showLive() {
  const text = cluster.synced === false ? "live; the scheduler still reads the cluster" : cluster.leading ? "live" : "live; another replica binds pods";
  status("live", changed ? `${text}; last change ${changed.toLocaleTimeString()}` : text);
}

function connect() {
  const source = new EventSource("/events");
  if (stream) stream.close();
  stream = source;
  source.addEventListener("alive", () => { heard = Date.now(); });
  source.addEventListener("state", (event) => {
    const told = JSON.parse(event.data), names = new Set(told.nodes.map((row) => row.name));
    heard = Date.now();
    for (const name of [...nodes.keys()]) if (!names.has(name)) forget(name);
    takeAll(told);
    showLive();
    openFromHash();
  });
  source.addEventListener("change", (event) => {
    const told = JSON.parse(event.data);
    if (told.seq !== seq + 1) { // one was missed: begin anew
      source.close();
      connect();
      return;
    }
    changed = new Date();
    heard = changed.getTime();
    takeAll(told);
    showLive();
  });
  source.addEventListener("error", () => {
    status("lost", source.readyState === EventSource.CLOSED ? "no stream: 16 viewers look already, or the scheduler is gone; trying again" : "the scheduler does not answer; trying again");
    if (source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    source.close();
    setTimeout(connect, RETRY_MS);
  });
}

// A connection that is cut on its way, as behind kubectl port-forward, tells no error.
function listen() {
  if (Date.now() - heard < SILENT_MS) return;
  heard = Date.now();
  status("lost", "nothing came for 40 seconds; trying again");
  connect();
}

function openFromHash() {
  const match = /^#node\/(.*)$/.exec(location.hash), node = match && nodes.get(decodeURIComponent(match[1]));
  if (!node || node.view.box.hidden) return;
  node.view.box.open = true;
  node.view.box.scrollIntoView({ block: "start" });
  node.view.box.querySelector("summary").focus({ preventScroll: true });
}

$("#find").addEventListener("input", showList);
$("#only").addEventListener("change", showList);
$("#order").addEventListener("change", orderList);
// A title for each card of each node would take longer than all the rest.
$("#nodes .list").addEventListener("pointerover", ({ target }) => {
  if (!target.classList.contains("card")) return;
  const node = nodes.get(target.closest("details").id.slice("node/".length));
  const card = node && node.row.cards[[...target.parentNode.children].indexOf(target)];
  if (card) target.title = cardTitle(node.row, card) + (card[5] ? `; ${STATES[card[5]]}` : "");
});
onAll("#trouble", showTroubles);
onAll("#waiting", showWaiting);
onAll("#namespaces", showNamespaces);
setInterval(showWaiting, AGES_MS);
setInterval(listen, USE_MS);
addEventListener("hashchange", openFromHash);
addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && event.target.tagName !== "INPUT") {
    event.preventDefault();
    $("#find").focus();
  } else if (event.key === "Escape" && event.target.id === "find") {
    event.target.value = "";
    showList();
  }
});
connect();
