"use strict";
// Small SVG charts: lines with bands, and stacked bars. A chart is created once and redrawn with new values. Pointer and
// arrow keys move a cursor; its values are shown in a box and announced to screen readers.

const Charts = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const MINUTE = 60, HOUR = 3600, DAY = 86400;
  const STEPS = [MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY];

  function svg(name, attributes = {}, ...children) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function html(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === true) made.setAttribute(key, "");
      else if (value !== false && value !== null) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  // -- scales

  function niceTicks(low, high, wanted) {
    const rough = (high - low) / Math.max(wanted, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((s) => s >= rough * 0.999);
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(Number((k * step).toPrecision(12)));
    return ticks;
  }

  function timeTicks(from, to, wanted) {
    const step = STEPS.find((s) => (to - from) / s <= wanted) || 30 * DAY;
    const offset = new Date(from * 1000).getTimezoneOffset() * 60; // days start at local midnight
    const ticks = [];
    for (let t = Math.ceil((from - offset) / step) * step + offset; t <= to; t += step) ticks.push(t);
    return { ticks, days: step >= DAY };
  }

  const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const day = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });
  const when = (t, days = false) => (days ? day : clock).format(new Date(t * 1000));
  const moment = (t) => `${day.format(new Date(t * 1000))}, ${clock.format(new Date(t * 1000))}`;

  // -- one chart

  /* spec: { label, height, points: [{ at, ... }], width (seconds of a point), format, floor, ceiling,
             lines: [{ name, ink, dash, value: p => y, band: p => [low, high] }], marks: [{ name, ink, value }],
             bars: [{ name, ink, value }] } */
  function make(host) {
    const tip = html("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    const picture = svg("svg", { tabindex: "0", role: "img" });
    const legend = html("ul", { class: "legend" });
    const table = html("details", {}, html("summary", {}, "As a table"), html("div", { class: "wide" }));
    host.append(picture, tip, legend, table);
    let spec = null, place = null, at = null, layout = null;

    function show(next) {
      spec = next;
      draw();
    }

    function draw() {
      if (!spec || !host.clientWidth) return;
      const W = Math.round(host.clientWidth), H = spec.height, left = 46, right = 10, top = 10, bottom = 24;
      picture.setAttribute("viewBox", `0 0 ${W} ${H}`);
      picture.setAttribute("aria-label", `${spec.label}. Use the arrow keys to move in time.`);
      const points = spec.points, half = spec.width / 2;
      const early = points.length > 4 ? points.length / 4 : 0; // early intervals are wide: they may be cut off
      const values = points.flatMap((p, k) => [
        ...(spec.lines || []).flatMap((s) => [s.value(p), ...(k < early || !s.band ? [] : s.band(p) || [])]),
        ...(spec.marks || []).map((s) => s.value(p)),
        ...(spec.bars ? [spec.bars.reduce((sum, s) => sum + s.value(p), 0)] : []),
      ]).filter((v) => Number.isFinite(v));
      let low = Math.min(...values, spec.bars ? 0 : Infinity), high = Math.max(...values);
      if (!values.length) [low, high] = [0, 1];
      const room = (high - low || Math.abs(high) || 1) * 0.08;
      low = spec.bars ? 0 : Math.max(low - room, spec.floor ?? -Infinity);
      high = Math.min(high + room, spec.ceiling ?? Infinity);
      if (high <= low) high = low + 1;
      const from = points.length ? points[0].at : 0;
      const to = points.length ? Math.max(points[points.length - 1].at + spec.width, from + 5 * spec.width) : 1;
      const x = (t) => left + ((t - from) / (to - from)) * (W - left - right);
      const y = (v) => top + ((high - Math.min(Math.max(v, low), high)) / (high - low)) * (H - top - bottom);
      layout = { x, y, W, H, top, bottom, half };

      const parts = [];
      for (const tick of niceTicks(low, high, Math.max(2, Math.floor(H / 55)))) {
        parts.push(svg("line", { class: "grid", x1: left, x2: W - right, y1: y(tick), y2: y(tick) }));
        parts.push(svg("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, spec.format(tick)));
      }
      const { ticks, days } = timeTicks(from, to, Math.max(2, Math.floor((W - left) / 80)));
      for (const tick of ticks) {
        const edge = x(tick) > W - 24 ? "end" : "middle";
        parts.push(svg("text", { x: edge === "end" ? W - right : x(tick), y: H - 6, "text-anchor": edge }, when(tick, days)));
        parts.push(svg("line", { class: "axis", x1: x(tick), x2: x(tick), y1: H - bottom, y2: H - bottom + 4 }));
      }
      parts.push(svg("line", { class: "axis", x1: left, x2: W - right, y1: H - bottom, y2: H - bottom }));
      const slot = Math.max(x(from + spec.width) - x(from), 1);
      const across = (drawn) => (drawn.length === 1 ? [-0.3, 0.3].map((side) => [drawn[0][0] + side * slot, ...drawn[0].slice(1)]) : drawn); // the first minute alone
      for (const s of spec.lines || []) {
        const band = across(points.filter((p) => s.band && s.band(p)).map((p) => [x(p.at + half), ...s.band(p).map(y)]));
        if (band.length) {
          const upper = band.map(([px, , hi]) => `${px.toFixed(1)},${hi.toFixed(1)}`);
          const lower = band.map(([px, lo]) => `${px.toFixed(1)},${lo.toFixed(1)}`).reverse();
          parts.push(svg("path", { class: `band ${s.ink}`, d: `M${upper.join("L")}L${lower.join("L")}Z` }));
        }
      }
      for (const p of points) {
        let sum = 0;
        for (const s of spec.bars || []) {
          const value = s.value(p);
          if (value > 0) parts.push(svg("rect", { class: `bar ${s.ink}`, x: x(p.at) + slot * 0.08, width: slot * 0.84, y: y(sum + value), height: Math.max(y(sum) - y(sum + value), 0.5) }));
          sum += value;
        }
        for (const s of spec.marks || []) {
          if (Number.isFinite(s.value(p))) parts.push(svg("circle", { class: `mark ${s.ink}`, cx: x(p.at + half), cy: y(s.value(p)), r: 2 }));
        }
      }
      for (const s of spec.lines || []) {
        const line = across(points.filter((p) => Number.isFinite(s.value(p))).map((p) => [x(p.at + half), y(s.value(p))]));
        if (line.length) parts.push(svg("path", { class: `line ${s.ink} ${s.dash || ""}`, d: `M${line.map((each) => each.map((v) => v.toFixed(1))).join("L")}` }));
      }
      picture.replaceChildren(...parts);
      drawLegend();
      drawTable();
      if (at !== null) { // keep the cursor at its time while values are refreshed
        place = points.findIndex((p) => p.at === at);
        if (place < 0) hide(); else point();
      }
    }

    const keyOf = (s, kind) => svg("svg", { viewBox: "0 0 28 12", "aria-hidden": "true" },
      kind === "line" ? svg("path", { class: `line ${s.ink} ${s.dash || ""}`, d: "M1,6H27" })
        : kind === "mark" ? svg("circle", { class: `mark ${s.ink}`, cx: 14, cy: 6, r: 3 })
          : svg("rect", { class: `bar ${s.ink}`, x: 4, y: 0, width: 20, height: 12 }));

    function drawLegend() {
      const entries = [["line", spec.lines], ["mark", spec.marks], ["bar", spec.bars]];
      legend.replaceChildren(...entries.flatMap(([kind, list]) => (list || []).map((s) => html("li", {}, keyOf(s, kind), s.name))));
    }

    const columns = () => [...(spec.lines || []), ...(spec.marks || []), ...(spec.bars || [])];

    function drawTable() {
      if (!table.open) return;
      const head = html("tr", {}, html("th", { scope: "col" }, "Time"), ...columns().map((s) => html("th", { scope: "col", class: "n" }, s.name)));
      const body = spec.points.map((p) => html("tr", {}, html("td", {}, moment(p.at)), ...columns().map((s) => html("td", { class: "n" }, text(s, p)))));
      table.lastElementChild.replaceChildren(html("table", {}, html("thead", {}, head), html("tbody", {}, ...body)));
    }

    function text(s, p) {
      const value = s.value(p), band = s.band && s.band(p);
      if (!Number.isFinite(value)) return "–";
      return spec.format(value, true) + (band ? ` (${spec.format(band[0], true)} to ${spec.format(band[1], true)})` : "");
    }

    // -- the cursor

    function point() {
      const p = spec.points[place], { x, W, H, top, bottom, half } = layout;
      at = p.at;
      picture.querySelectorAll(".cursor").forEach((old) => old.remove());
      const px = x(p.at + half);
      picture.append(svg("line", { class: "cursor", x1: px, x2: px, y1: top, y2: H - bottom }));
      const rows = columns().map((s) => html("tr", {}, html("th", { scope: "row" }, s.name), html("td", {}, text(s, p))));
      tip.replaceChildren(html("b", {}, moment(p.at)), html("table", {}, html("tbody", {}, ...rows)));
      tip.hidden = false;
      const across = px < W / 2 ? Math.min(px + 12, W - tip.offsetWidth) : Math.max(px - tip.offsetWidth - 12, 0);
      tip.style.left = `${Math.max(across, 0)}px`;
      tip.style.top = `${top}px`;
    }

    function hide() {
      place = at = null;
      tip.hidden = true;
      picture.querySelectorAll(".cursor").forEach((old) => old.remove());
    }

    function say() {
      const p = spec.points[place];
      document.getElementById("said").textContent = `${moment(p.at)}: ${columns().map((s) => `${s.name} ${text(s, p)}`).join(", ")}`;
    }

    picture.addEventListener("pointermove", (event) => {
      if (!spec || !spec.points.length) return;
      const box = picture.getBoundingClientRect(), px = ((event.clientX - box.left) / box.width) * layout.W;
      const distances = spec.points.map((p) => Math.abs(layout.x(p.at + layout.half) - px));
      place = distances.indexOf(Math.min(...distances));
      point();
    });
    picture.addEventListener("pointerleave", () => document.activeElement !== picture && hide());
    picture.addEventListener("blur", hide);
    picture.addEventListener("keydown", (event) => {
      const last = spec ? spec.points.length - 1 : -1, now = place === null ? last : place;
      const next = { ArrowLeft: place === null ? last : now - 1, ArrowRight: place === null ? 0 : now + 1, Home: 0, End: last }[event.key];
      if (event.key === "Escape") hide();
      if (next === undefined || last < 0) return;
      event.preventDefault();
      place = Math.min(Math.max(next, 0), last);
      point();
      say();
    });
    table.addEventListener("toggle", () => spec && drawTable());
    new ResizeObserver(draw).observe(host);
    return { show };
  }

  return { make, svg, html, moment, when };
})();
