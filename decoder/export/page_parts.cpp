#include "decoder/export/page_parts.h"

namespace tailtrace {

const std::string_view kPageHead = R"page(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>tailtrace: calls</title>
<script type="application/json" id="data">)page";

const std::string_view kPageStyleAndBody = R"page(</script>
<style>
:root { color-scheme: light dark; --back: #fff; --text: #1b1b1f; --soft: #6b6b75; --line: #d5d5dc;
  --found: #d81b60; --loop: #8884; }
@media (prefers-color-scheme: dark) {
  :root { --back: #16161a; --text: #ececf1; --soft: #9a9aa6; --line: #36363f; --found: #ff5c93; }
}
body { margin: 0; background: var(--back); color: var(--text); font: 14px/1.4 sans-serif;
  display: flex; flex-direction: column; height: 100vh; }
header, footer { padding: 8px 12px; display: flex; gap: 8px; flex-wrap: wrap; align-items: center; }
header { border-bottom: 1px solid var(--line); }
footer { border-top: 1px solid var(--line); min-height: 3em; }
h1 { font-size: 16px; margin: 0 8px 0 0; }
input, select, button { font: inherit; }
output { color: var(--soft); }
#scroll { flex: 1; overflow-y: auto; }
canvas { display: block; width: 100%; cursor: grab; }
canvas:focus { outline: none; }
#chosen { font: 13px/1.5 monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; }
#help { color: var(--soft); margin-left: auto; }
</style>
<header>
  <h1>tailtrace</h1>
  <label>thread <select id="thread"></select></label>
  <input id="find" type="search" placeholder="find a function" aria-label="find a function">
  <button id="previous" title="the match before">&lsaquo;</button>
  <button id="next" title="the next match">&rsaquo;</button>
  <button id="whole">whole</button>
  <output id="status"></output>
</header>
<div id="scroll"><canvas id="chart" tabindex="0"
  aria-label="calls over executed instructions"></canvas></div>
<footer>
  <p id="chosen"></p>
  <span id="help">wheel: zoom &middot; drag: move &middot; double click: zoom to a call &middot;
    shift and wheel: scroll &middot; / find &middot; n N matches &middot; + - arrows 0</span>
</footer>)page";

const std::string_view kPageProgram = R"page(<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const chart = byId("chart"), pen = chart.getContext("2d");
const kRow = 18, kAxis = 22, kFields = 5, kLoopFields = 5;
let thread, view, found = [], match = -1, chosen = -1;

// A call or a loop by its number.
const call = (i) => ({ first: thread.calls[i * kFields], last: thread.calls[i * kFields + 1],
  level: thread.calls[i * kFields + 2], name: data.names[thread.calls[i * kFields + 3]],
  isGap: thread.calls[i * kFields + 4] === 1 });
const loop = (i) => ({ first: thread.loops[i * kLoopFields],
  last: thread.loops[i * kLoopFields + 1], rounds: thread.loops[i * kLoopFields + 2],
  name: data.names[thread.loops[i * kLoopFields + 3]],
  exit: data.names[thread.loops[i * kLoopFields + 4]] });
const callCount = () => thread.calls.length / kFields;
const loopCount = () => thread.loops.length / kLoopFields;
const number = (n) => n.toLocaleString("en");
const fromNewest = (n) => n - thread.newest - 1;

function extent() {
  let from = Infinity, to = 0;
  for (let i = 0; i < callCount(); ++i) {
    from = Math.min(from, thread.calls[i * kFields]);
    to = Math.max(to, thread.calls[i * kFields + 1] + 1);
  }
  return from < to ? { from, to } : { from: 0, to: 1 };
}

function show(from, to) {
  const all = extent(), width = Math.min(Math.max(to - from, 4), all.to - all.from);
  const begin = Math.min(Math.max(from, all.from), all.to - width);
  view = { from: begin, to: begin + width };
  draw();
}

function hue(name) {
  let sum = 7;
  for (let i = 0; i < name.length; ++i) sum = (sum * 31 + name.charCodeAt(i)) % 360;
  return sum;
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return { text: of("--text"), soft: of("--soft"), line: of("--line"), found: of("--found"),
    loop: of("--loop"),
    bar: (name) => `hsl(${hue(name)} ${dark ? "35% 34%" : "60% 82%"})` };
}

function fitted(text, width) {
  const letters = Math.floor((width - 6) / 6.7);
  if (letters < 2) return "";
  return text.length <= letters ? text : text.slice(0, letters - 1) + "\u2026";
}

function drawAxis(colour, x, width) {
  const step = Math.pow(10, Math.ceil(Math.log10((view.to - view.from) / (width / 110))));
  const end = thread.newest + 1;  // round numbers count back from here
  pen.fillStyle = colour.soft;
  for (let n = end + Math.ceil((view.from - end) / step) * step; n < view.to; n += step) {
    pen.fillRect(x(n), 0, 1, kAxis - 4);
    pen.fillText(number(fromNewest(n)), x(n) + 3, kAxis - 9);
  }
}

function drawLoops(colour, x, height) {
  for (let i = 0; i < loopCount(); ++i) {
    const one = loop(i);
    if (one.last < view.from || one.first > view.to) continue;
    const left = Math.max(x(one.first), 0), wide = Math.max(x(one.last + 1) - left, 1);
    pen.fillStyle = colour.loop;
    pen.fillRect(left, kAxis, wide, height - kAxis);
    pen.fillStyle = colour.text;
    pen.fillText(fitted(`\u00d7${number(one.rounds)} ${one.name}`, wide), left + 3, kAxis + 13);
  }
}

function drawCalls(colour, x, width) {
  const drawn = [];  // by level: up to where something is
  const hits = new Set(found);
  for (let i = 0; i < callCount(); ++i) {
    const at = i * kFields, last = thread.calls[at + 1];
    if (last < view.from || thread.calls[at] > view.to) continue;
    const level = thread.calls[at + 2];
    const left = Math.max(x(thread.calls[at]), 0);
    const right = Math.min(Math.max(x(last + 1), left + 1), width);
    if (right <= (drawn[level] ?? -1) && !hits.has(i)) continue;
    drawn[level] = right;
    const one = call(i), top = kAxis + kRow * (level + 1);
    pen.fillStyle = one.isGap ? colour.found : colour.bar(one.name);
    pen.fillRect(left, top, Math.max(right - left - 0.5, 0.7), kRow - 2);
    if (hits.has(i) || i === chosen) {
      pen.strokeStyle = i === chosen ? colour.text : colour.found;
      pen.lineWidth = 2;
      pen.strokeRect(left + 1, top + 1, Math.max(right - left - 2.5, 1), kRow - 4);
    }
    pen.fillStyle = colour.text;
    pen.fillText(fitted(one.name, right - left), left + 3, top + 12);
  }
}

function draw() {
  let deepest = 0;
  for (let i = 0; i < callCount(); ++i) deepest = Math.max(deepest, thread.calls[i * kFields + 2]);
  const width = chart.clientWidth, height = kAxis + kRow * (deepest + 3);
  const scale = devicePixelRatio || 1;
  chart.style.height = height + "px";
  chart.width = width * scale;
  chart.height = height * scale;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.font = "11px sans-serif";
  const colour = colours();
  const x = (n) => (n - view.from) / (view.to - view.from) * width;
  drawAxis(colour, x, width);
  drawLoops(colour, x, height);
  drawCalls(colour, x, width);
}

function say() {
  const older = thread.older_calls ? `, ${number(thread.older_calls)} older ones left out` : "";
  const hits = byId("find").value ? `; ${number(found.length)} found` : "";
  byId("status").textContent =
    `${number(callCount())} calls${older}, ${number(loopCount())} loops; 1 is ` +
    `1 executed instruction, -1 the newest${hits}`;
}

function tell(text) { byId("chosen").textContent = text; }

function choose(i) {
  chosen = i;
  const one = call(i);
  tell(`${one.name}  [${fromNewest(one.first)},${fromNewest(one.last)}]  ` +
    `${number(one.last - one.first + 1)} instructions with all it called, level ${one.level}`);
}

function search() {
  const wanted = byId("find").value.toLowerCase();
  const names = data.names.map((name) => wanted !== "" && name.toLowerCase().includes(wanted));
  found = [];
  for (let i = 0; i < callCount(); ++i) if (names[thread.calls[i * kFields + 3]]) found.push(i);
  match = -1;
  say();
  draw();
}

function goTo(step) {
  if (found.length === 0) return;
  match = match < 0 ? (step > 0 ? 0 : found.length - 1)
                    : (match + step + found.length) % found.length;
  choose(found[match]);
  const one = call(found[match]), half = (view.to - view.from) / 2;
  const middle = (one.first + one.last) / 2;
  byId("scroll").scrollTop = Math.max(0, kRow * one.level - byId("scroll").clientHeight / 2);
  show(middle - half, middle + half);
}

function pick(number) {
  thread = data.threads[number];
  chosen = -1;
  tell("");
  view = extent();
  search();
}

function zoom(factor, at) {
  const middle = at ?? (view.from + view.to) / 2;
  show(middle - (middle - view.from) * factor, middle + (view.to - middle) * factor);
}

const itemAt = (event) => view.from +
  (event.clientX - chart.getBoundingClientRect().left) / chart.clientWidth * (view.to - view.from);

function callAt(event) {
  const row = event.clientY - chart.getBoundingClientRect().top - kAxis;
  const level = Math.floor(row / kRow) - 1, item = itemAt(event);
  for (let i = callCount() - 1; i >= 0; --i) {
    const one = call(i);
    if (one.level === level && one.first <= item && item < one.last + 1) return i;
  }
  return -1;
}

function loopAt(event) {
  const item = itemAt(event);
  for (let i = 0; i < loopCount(); ++i)
    if (loop(i).first <= item && item < loop(i).last + 1) return loop(i);
  return null;
}

let drag = null;
chart.addEventListener("wheel", (event) => {
  if (event.shiftKey) return;
  event.preventDefault();
  zoom(Math.exp(Math.sign(event.deltaY) * 0.25), itemAt(event));
}, { passive: false });
chart.addEventListener("pointerdown", (event) => {
  drag = { x: event.clientX, from: view.from, moved: false };
  chart.setPointerCapture(event.pointerId);
});
chart.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const by = (event.clientX - drag.x) / chart.clientWidth * (view.to - view.from);
  if (Math.abs(event.clientX - drag.x) > 3) drag.moved = true;
  if (drag.moved) show(drag.from - by, drag.from - by + view.to - view.from);
});
chart.addEventListener("pointerup", (event) => {
  const moved = drag?.moved;
  drag = null;
  if (moved) return;
  const i = callAt(event), one = loopAt(event);
  if (i >= 0) choose(i);
  else if (one) tell(`loop, ${number(one.rounds)} rounds: ${one.name}  ` +
    `[${fromNewest(one.first)},${fromNewest(one.last)}]` +
    (one.exit ? `  last exit at ${one.exit}` : ""));
  draw();
});
chart.addEventListener("dblclick", (event) => {
  const i = callAt(event);
  if (i < 0) return;
  const one = call(i), edge = (one.last - one.first + 1) * 0.05;
  show(one.first - edge, one.last + 1 + edge);
});
addEventListener("keydown", (event) => {
  if (event.target === byId("find")) {
    if (event.key === "Enter") goTo(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") chart.focus();
    return;
  }
  const step = (view.to - view.from) / 8;
  const keys = { "+": () => zoom(0.7), "-": () => zoom(1.4), "0": () => pick(byId("thread").value),
    "n": () => goTo(1), "N": () => goTo(-1),
    "ArrowLeft": () => show(view.from - step, view.to - step),
    "ArrowRight": () => show(view.from + step, view.to + step),
    "/": () => { byId("find").focus(); event.preventDefault(); } };
  if (!event.ctrlKey && !event.metaKey && !event.altKey) keys[event.key]?.();
});
byId("find").addEventListener("input", search);
byId("next").addEventListener("click", () => goTo(1));
byId("previous").addEventListener("click", () => goTo(-1));
byId("whole").addEventListener("click", () => { const all = extent(); show(all.from, all.to); });
byId("thread").addEventListener("change", () => pick(Number(byId("thread").value)));
addEventListener("resize", draw);

document.title = "tailtrace: " + data.source;
data.threads.forEach((one, i) =>
  byId("thread").append(new Option(`${one.pid}.${one.tid} (${one.engine})`, i)));
if (data.threads.length === 0) byId("status").textContent = "there are no calls";
else {
  // #find=NAME in the address is looked for at once.
  byId("find").value = new URLSearchParams(location.hash.slice(1)).get("find") ?? "";
  pick(0);
  goTo(1);
}
</script>
</html>)page";

}  // namespace tailtrace
