"use strict";
// The dashboard: logs in, fetches a summary every few seconds, and updates the content of the page in place.

const { html, svg, moment } = Charts;
const $ = (id) => document.getElementById(id);
const EVERY = 5000; // milliseconds between refreshes
const SPANS = { hour: "Last hour", day: "Last day", week: "Last week", month: "Last 30 days" };
const store = { get: (name) => sessionStorage.getItem(name), put: (name, value) => (value === null ? sessionStorage.removeItem(name) : sessionStorage.setItem(name, value)) };
let span = store.get("o2pl.span") || "hour", timer = null, charts = null, latest = null, asking = 0;

// -- formatting

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const count = (n) => whole.format(n);
const share = (n) => `${(100 * n).toFixed(n !== 0 && Math.abs(n) < 0.0995 ? 1 : 0)}%`;
const reward = (v) => (Math.abs(v) >= 100 ? v.toFixed(1) : v.toFixed(Math.abs(v) >= 10 ? 2 : 3));
const signed = (v) => (v > 0 ? "+" : v < 0 ? "−" : "") + reward(Math.abs(v));
function lasting(seconds) {
  if (seconds < 0) return "0 s";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

// Replace only changed content, so that nothing flickers and a focused button keeps its focus.
function put(place, made) {
  const text = made.map((part) => (part.outerHTML === undefined ? String(part) : part.outerHTML)).join("");
  if (place.dataset.shown === text) return;
  const key = place.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const across = place.querySelector(".wide")?.scrollLeft;
  place.dataset.shown = text;
  place.replaceChildren(...made);
  if (key) place.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
  const wide = place.querySelector(".wide");
  if (wide && across) wide.scrollLeft = across;
  markWide(place);
}
const text = (place, said) => { if (place.textContent !== said) place.textContent = said; };

function markWide(place) {
  for (const wide of place.querySelectorAll(".wide")) {
    const more = wide.scrollWidth > wide.clientWidth + 1;
    wide.classList.toggle("more", more);
    if (more) wide.tabIndex = 0; else wide.removeAttribute("tabindex");
  }
}

function table(label, heads, rows, kind = "") {
  const head = heads.map((h) => html("th", { scope: "col", class: h.endsWith("#") ? "n" : null }, h.replace("#", "")));
  const body = rows.map((cells) => html("tr", {}, ...cells.map((cell, k) => cell instanceof HTMLTableCellElement ? cell : html("td", { class: heads[k].endsWith("#") ? "n" : null }, cell))));
  return [
    html("div", { class: "wide", role: "region", "aria-label": label }, html("table", { class: kind }, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...body))),
    html("p", { class: "hint", "aria-hidden": "true" }, "Scroll right to see more columns, or focus the table and press →."),
  ];
}

const button = (said, key, act, kind = null, label = null) => {
  const made = html("button", { type: "button", "data-key": key, class: kind, "aria-label": label }, said);
  made.dataset.act = act;
  return made;
};

// -- calls of the service

class Refused extends Error {}

async function ask(path, options = {}, key = store.get("o2pl.key")) {
  const headers = { "Ocp-Apim-Subscription-Key": key, ...(options.body ? { "Content-Type": "application/json" } : {}) };
  const answer = await fetch(path, { ...options, headers, cache: "no-store", referrerPolicy: "no-referrer" });
  if (answer.status === 401 || answer.status === 403) throw new Refused();
  if (!answer.ok) {
    const body = await answer.json().catch(() => ({}));
    throw new Error(body.error?.message || body.detail || `the service answered ${answer.status}`);
  }
  return answer.status === 204 ? null : answer.json();
}

async function refresh() {
  clearTimeout(timer);
  if (!store.get("o2pl.key")) return showLogin();
  const turn = ++asking;
  try {
    const [summary, events] = await Promise.all([ask(`page/summary/${span}`), ask("page/events")]);
    if (turn !== asking) return;
    latest = summary;
    show(summary, events);
  } catch (error) {
    if (turn !== asking) return;
    if (error instanceof Refused) return showLogin("Unknown key. Check it, or make a new read key.");
    health(latest ? `No answer from the service; data from ${Charts.when(latest.now)}` : `No answer from the service: ${error.message}`, true);
  }
  if (!document.hidden) timer = setTimeout(refresh, EVERY);
}

// -- log in

function showLogin(problem = "") {
  store.put("o2pl.key", null);
  for (const id of ["board", "first", "leave", "health"]) $(id).hidden = true;
  $("login").hidden = false;
  text($("refused"), problem);
  text($("name"), "");
  document.title = "o2pl";
  $("key").focus();
}

$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  const key = $("key").value.trim();
  if (!key || /[^\x21-\x7e]/.test(key)) return text($("refused"), "A key contains only letters, digits, - and _.");
  store.put("o2pl.key", key);
  text($("refused"), "");
  $("key").value = "";
  refresh();
});
$("leave").addEventListener("click", () => { asking++; clearTimeout(timer); latest = null; showLogin(); });

// -- light and dark

const system = matchMedia("(prefers-color-scheme: dark)");
function theme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
  const dark = (chosen || (system.matches ? "dark" : "light")) === "dark";
  $("theme").setAttribute("aria-pressed", String(dark));
}
$("theme").addEventListener("click", () => {
  const next = $("theme").getAttribute("aria-pressed") === "true" ? "light" : "dark";
  localStorage.setItem("o2pl.theme", next);
  theme(next);
});
system.addEventListener("change", () => theme(localStorage.getItem("o2pl.theme")));
theme(localStorage.getItem("o2pl.theme"));

// -- the board

function health(said, bad) {
  $("health").hidden = false;
  $("health").classList.toggle("bad", bad);
  text($("health"), said);
}

function show(s, events) {
  const entered = !$("login").hidden;
  $("login").hidden = true;
  $("leave").hidden = false;
  text($("name"), s.application.name);
  document.title = `${s.application.name} – o2pl`;
  const empty = !events.length && !s.traffic.length;
  $("first").hidden = !empty;
  $("board").hidden = empty;
  showHealth(s);
  if (entered) $("main").focus();
  if (empty) return showFirst(s);
  charts = charts || { rewards: Charts.make($("rewards")), traffic: Charts.make($("traffic")), overlap: Charts.make($("overlap")) };
  showTiles(s);
  showRewards(s);
  Control.show(s);
  showTraffic(s);
  showOverlap(s);
  showActions(s);
  showModels(s);
  showEvents(s, events);
  text($("foot"), `Refreshed ${Charts.when(s.now)}, every ${EVERY / 1000} s. Intervals are anytime-valid with 95% confidence.`);
}

function showHealth(s) {
  if (!s.state.trainer) return health("Ready, but no trainer is running, so nothing is learned. Start one: o2pl train --follow", true);
  if (s.state.failed) return health(`Ready, but learning fails and is tried again every minute: ${s.state.failed}`, true);
  if (s.state.lag.seconds > 120) return health(`Ready, but learning is ${lasting(s.state.lag.seconds)} behind`, true);
  if (s.models.failed) return health(`Ready, with an earlier model: ${s.models.failed}`, true);
  if (s.models.pinned !== null) return health(`Ready; version ${s.models.pinned} is pinned`, false);
  const age = s.state.newestLearned;
  health(age === null ? "Ready; nothing learned yet" : `Ready; learned up to ${lasting(age)} ago`, false);
}

function tile(name, value, small, tone = null) {
  return html("div", {}, html("dt", {}, name), html("dd", {}, html("span", { class: tone }, value), html("small", {}, small)));
}

function gainTile(name, gain) {
  if (!gain) return null;
  const tone = { 1: "up", "-1": "down" }[gain.sign] ?? null;
  return tile(`Gain over ${name}`, signed(gain.value), `${signed(gain.low)} to ${signed(gain.high)}: ${gain.says}`, tone);
}

function showTiles(s) {
  const { total, state } = s, mean = total.reward;
  put($("tiles"), [
    tile("Reward per decision", mean ? reward(mean[0]) : "–", mean ? `${reward(mean[1])} to ${reward(mean[2])}` : "no rewards yet"),
    state.agreement ? tile("Agreement with your choice", share(state.agreement.share), `apprentice, last ${count(state.agreement.rows)} decisions`) : gainTile("the baseline", total.gains.baseline),
    gainTile("uniform", total.gains.uniform),
    tile("Decisions", count(state.decisions), state.waiting ? `${count(state.waiting)} waiting for a reward` : "all have an outcome"),
    tile("Learned from", count(state.learned), state.lag.events || state.behind ? `${count(Math.max(state.lag.events, state.behind))}${Math.max(state.lag.events, state.behind) >= 10000 ? " or more" : ""} not learned yet` : "up to date"),
    tile("Model version", state.version ? String(state.version) : "none yet", state.published === null ? "decisions are uniform" : `published ${lasting(state.published)} ago`),
  ].filter(Boolean));
}

const HAND = { service: ["The service", "main-ink", ""], baseline: ["Baseline", "base-ink", "dash"], uniform: ["Uniform policy", "even-ink", "dot-dash"] };

function showRewards(s) {
  const there = Object.keys(HAND).filter((name) => s.rewards.some((p) => p[name]));
  const last = s.rewards[s.rewards.length - 1], wait = s.application.rewardWait;
  text($("rewards-note"), last
    ? `Averages since ${moment(s.rewards[0].at)}, with anytime-valid 95% intervals. The values of the baseline and of the uniform policy are estimated from the log.`
    : `A minute is shown once all its decisions have an outcome, at most ${lasting(wait)} later.`);
  charts.rewards.show({
    label: "Reward per decision over time" + (last ? `: now ${there.map((name) => `${HAND[name][0].toLowerCase()} ${reward(last[name][0])}`).join(", ")}` : ", no values yet"),
    height: 280, width: s.width * 60, points: s.rewards, format: (v, exact) => (exact ? reward(v) : String(v)), floor: s.application.rewardRange[0], ceiling: s.application.rewardRange[1],
    lines: there.map((name) => ({ name: HAND[name][0], ink: HAND[name][1], dash: HAND[name][2], value: (p) => p[name]?.[0], band: (p) => p[name]?.slice(1) })),
    marks: [{ name: s.width === 1 ? "The service, each minute" : `The service, each ${lasting(s.width * 60)}`, ink: "main-ink", value: (p) => p.mean }],
  });
}

function showTraffic(s) {
  const last = s.traffic[s.traffic.length - 1];
  charts.traffic.show({
    label: `Decisions and rewards per minute${last ? `: last ${last.decisions.toFixed(0)} decisions, ${last.rewarded.toFixed(0)} rewarded` : ""}`,
    height: 262, width: s.width * 60, points: s.traffic, format: (v, exact) => (exact && v % 1 ? v.toFixed(1) : count(v)),
    bars: [
      { name: "Rewarded", ink: "main-ink", value: (p) => p.rewarded },
      { name: "Reward by default", ink: "pale-ink", value: (p) => p.defaults },
      { name: "Open", ink: "soft-ink", value: (p) => Math.max(p.decisions - p.rewarded - p.defaults, 0) },
    ],
  });
}

function showOverlap(s) {
  const names = Object.keys(s.overlap), at = new Map();
  for (const name of names) for (const p of s.overlap[name].points) at.set(p.at, { ...(at.get(p.at) || { at: p.at }), [name]: p.share });
  text($("overlap-note"), names.length
    ? "Effective sample size: how many rows of its own another policy would need for an equally precise estimate. If it is low, increase explorationPercentage."
    : "No other policy can be evaluated with this log yet.");
  charts.overlap.show({
    label: "Effective sample size over time, as a fraction of the rows", height: 170, width: s.width * 60, points: [...at.values()].sort((a, b) => a.at - b.at), format: (v) => share(v), floor: 0, ceiling: 1,
    lines: names.map((name) => ({ name: HAND[name][0], ink: HAND[name][1], dash: HAND[name][2], value: (p) => p[name] })),
  });
  put($("overlap-table"), names.length ? table("Overlap", ["Policy", "Effective sample size#", "Of#", "Share#", "Mean weight#"], names.map((name) => {
    const o = s.overlap[name];
    return [HAND[name][0], count(o.effective), count(o.rows), share(o.effective / o.rows), o.weight.toFixed(2)];
  })) : []);
}

function bar(value, most, ink = "main-ink") {
  return html("td", {}, svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true", class: ink },
    svg("rect", { class: "track", x: 0, y: 0, width: 100, height: 10 }), svg("rect", { x: 0, y: 0, width: (100 * value) / (most || 1), height: 10, class: "bar" })));
}

function showActions(s) {
  const { listed, different, others } = s.actions, most = Math.max(...listed.map((a) => a.share), 0);
  text($("actions-note"), listed.length ? `${count(different)} different. “Lately” is the last fifth of the time range.` : "Actions are real numbers, or none was played.");
  const rows = listed.map((a) => [a.id, bar(a.share, most), share(a.share), share(a.late)]);
  if (others) rows.push(["others", bar(others / s.state.decisions, most, "soft-ink"), share(others / s.state.decisions), ""]);
  put($("actions"), listed.length ? table("Actions", ["Action", "", "Share#", "Lately#"], rows, "bars") : []);
}

// -- models

function showModels(s) {
  const { served, pinned, listed } = s.models;
  text($("models-note"), pinned !== null ? `Version ${pinned} is pinned: newer versions are not served until you unpin it.` : "The newest version is served. Listed: the last versions, and those of 10 minutes, an hour, 6 hours, a day and a week ago. Serving another one needs the write key.");
  const rows = listed.map((m) => [
    String(m.version), moment(m.at), count(m.rows),
    m.version === served ? html("span", { class: "tag on" }, pinned === served ? "served, pinned" : "served") : button("Serve it", `v${m.version}`, `serve:${m.version}`, null, `Serve version ${m.version}`),
    m.withdrawn ? html("td", { class: "wrap" }, html("span", { class: "tag off" }, "withdrawn"), ` ${m.withdrawn}`) : "",
  ]);
  const back = pinned !== null ? [button("Serve the newest again", "newest", "serve:newest")] : [];
  if (!listed.some((m) => m.withdrawn)) rows.forEach((cells) => cells.pop());
  put($("models"), listed.length ? [...back, ...table("Model versions", ["Version", "Published", "Rows#", "State", ""].slice(0, listed.some((m) => m.withdrawn) ? 5 : 4), rows)] : [html("p", {}, "No model has been published yet: decisions are uniform.")]);
}

let wanted = null;
$("models").addEventListener("click", (event) => {
  const act = event.target.closest("[data-act]")?.dataset.act;
  if (!act) return;
  wanted = act.slice(6) === "newest" ? null : Number(act.slice(6));
  text($("ask-title"), wanted === null ? "Serve the newest version again" : `Serve version ${wanted}`);
  text($("ask-text"), wanted === null ? "The newest published version is then served." : `Version ${wanted} is then served until you unpin it. Learning continues.`);
  text($("ask-refused"), "");
  $("ask-key").value = "";
  $("ask").showModal();
});
$("ask-no").addEventListener("click", () => $("ask").close());
$("ask").querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const key = $("ask-key").value.trim();
  if (!key || /[^\x21-\x7e]/.test(key)) return text($("ask-refused"), "Enter the write key.");
  $("ask-yes").disabled = true;
  try {
    await ask("page/serve", { method: "POST", body: JSON.stringify({ version: wanted }) }, key);
    $("ask").close();
    text($("said"), wanted === null ? "The newest version is served again." : `Version ${wanted} is served.`);
    await refresh();
  } catch (error) {
    text($("ask-refused"), error instanceof Refused ? "This is not a write key of this application." : error.message);
  } finally {
    $("ask-yes").disabled = false;
  }
});
$("ask").addEventListener("close", () => { $("ask-key").value = ""; });

// -- events

function rewardCell(e) {
  if (e.reward !== null) return e.byDefault ? `${reward(e.reward)} (default)` : reward(e.reward);
  return e.deferred ? "open, deferred" : "open";
}

function showEvents(s, events) {
  const slots = events.some((e) => e.slot);
  const rows = events.map((e) => [
    html("td", {}, html("time", { datetime: new Date(e.at * 1000).toISOString() }, new Date(e.at * 1000).toLocaleTimeString([], { hourCycle: "h23" }))),
    html("td", {}, button(e.id, `e${e.id} ${e.slot}`, `why:${e.id}`, "link", `Explain ${e.id}`)),
    ...(slots ? [e.slot] : []),
    typeof e.action === "number" ? reward(e.action) : `${e.action}`, rewardCell(e), e.of ? `${share(e.propensity)} of ${e.of}` : e.propensity.toPrecision(3), String(e.version),
  ]);
  put($("events"), table("Recent decisions", ["Time", "Event", ...(slots ? ["Slot"] : []), "Answer", "Reward#", s.application.kind === "continuous" ? "Density#" : "Probability#", "Model#"], rows));
}

$("events").addEventListener("click", async (event) => {
  const act = event.target.closest("[data-act]")?.dataset.act;
  if (!act) return;
  const id = act.slice(4);
  text($("why-title"), `Event ${id}`);
  $("why-body").replaceChildren(html("p", { class: "note" }, "Asking…"));
  $("why").showModal();
  try {
    const slots = await ask(`page/events/${encodeURIComponent(id)}/told`);
    $("why-body").replaceChildren(...slots.flatMap(explained));
  } catch (error) {
    $("why-body").replaceChildren(html("p", { class: "problem", role: "alert" }, error instanceof Refused ? "The key was refused." : error.message));
  }
  markWide($("why-body"));
});
$("why-close").addEventListener("click", () => $("why").close());

function explained(d) {
  const made = [];
  if (d.slot) made.push(html("h3", {}, `Slot ${d.slot}`));
  made.push(html("p", {}, d.said));
  if (d.actions) {
    const most = Math.max(...d.actions.map((a) => a.probability));
    made.push(html("h3", {}, "Probabilities"), ...table("Probabilities", ["Action", "", "Probability#"], d.actions.map((a) => [a.played ? html("strong", {}, `${a.id} (played)`) : a.id, bar(a.probability, most, a.played ? "main-ink" : "even-ink"), share(a.probability)]), "bars"));
  }
  if (d.features?.length) made.push(html("h3", {}, d.featuresTitle), ...table("Features", ["Feature", "Adds#"], d.features.map((f) => [f.name, signed(f.adds)])));
  if (d.note) made.push(html("p", { class: "note" }, d.note));
  made.push(html("details", {}, html("summary", {}, "Stored context"), html("pre", { tabindex: "0" }, d.context)));
  return made;
}

// -- the first run

function showFirst(s) {
  const here = location.origin + location.pathname.replace(/\/$/, ""), head = `-H "Ocp-Apim-Subscription-Key: $KEY" \\\n  -H "Content-Type: application/json"`;
  const call = (path, body) => `curl ${here}${path} ${head} \\\n  -d '${body}'`;
  const [first, second] = {
    ranked: [["/personalizer/v1.0/rank", '{"eventId": "first", "contextFeatures": [{"user": {"device": "phone"}}],\n       "actions": [{"id": "news", "features": [{"topic": "politics"}]}, {"id": "sport", "features": [{"topic": "football"}]}]}'], ["/personalizer/v1.0/events/first/reward", '{"value": 1}']],
    fixed: [["/decide", '{"eventId": "first", "context": {"user": {"device": "phone"}}}'], ["/reward", '{"eventId": "first", "value": 1}']],
    continuous: [["/decide", '{"eventId": "first", "context": [0.5, 1.2]}'], ["/reward", '{"eventId": "first", "value": 1}']],
  }[s.application.kind];
  text($("first-text"), "Request a decision and send its reward with the write key. Or run the last command: simulated readers show how the service learns within a minute.");
  text($("first-code"), `KEY=…   # the write key\n\n${call(...first)}\n\n${call(...second)}\n\no2pl simulate ${here} --key $KEY`);
}
$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText($("first-code").textContent);
    text($("said"), "Copied.");
    text($("copy"), "Copied");
  } catch {
    getSelection().selectAllChildren($("first-code"));
    text($("copy"), "Selected: press Ctrl-C");
  }
});

// -- start

for (const [name, said] of Object.entries(SPANS)) {
  const input = html("input", { type: "radio", name: "span", value: name });
  input.checked = name === span;
  input.addEventListener("change", () => { span = name; store.put("o2pl.span", name); refresh(); });
  $("spans").append(html("label", {}, input, html("span", {}, said)));
}
addEventListener("resize", () => markWide(document));
document.addEventListener("visibilitychange", () => !document.hidden && refresh());
refresh();
