"use strict";
// The control group: what the service earns above it, on rewards and on every metric, over time.

const Control = (() => {
  const drawn = new Map(); // chart by question

  function chartOf(name) {
    if (!drawn.has(name)) {
      const host = html("div", { class: "chart" });
      const says = html("p", { class: "note" }), part = html("div", {}, html("h3", {}, titleOf(name)), says, host);
      $("control-charts").append(part);
      drawn.set(name, { part, says, chart: Charts.make(host) });
    }
    return drawn.get(name);
  }

  const titleOf = (name) => (name === "reward" ? "Reward: service minus control" : `${name}: service minus control`);

  function show(s) {
    const c = s.control;
    $("control-card").hidden = c === null;
    if (c === null) return;
    text($("control-note"), noteOf(c));
    text($("control-alert"), c.withdrawn ? `Withdrawn by a guardrail: ${c.withdrawn}` : c.findings.filter((f) => f.alert).map((f) => `Guardrail: ${f.alert}`).join(". "));
    $("control-alert").hidden = !$("control-alert").textContent;
    const rows = c.findings.map((f) => [
      html("strong", {}, f.name),
      html("td", { class: "n" }, html("span", { class: { 1: "up", "-1": "down" }[f.sign] ?? null }, signed(f.gain))),
      `${signed(f.low)} to ${signed(f.high)}`,
      f.service === null ? "–" : reward(f.service), f.control === null ? "–" : reward(f.control),
      f.alert ? html("span", { class: "tag off" }, f.guardrail === "withdraw" ? "withdrawn" : "alert") : f.guardrail,
      f.verdict,
    ]);
    put($("control-table"), rows.length ? table("Service and control group", ["", "Difference#", "Interval#", "Service#", "Control#", "Guardrail", "Verdict"], rows, "findings") : []);
    const width = c.period ?? 60;
    for (const [name, { part }] of drawn) part.hidden = !c.findings.some((f) => f.name === name);
    for (const f of c.findings) {
      const { says, chart } = chartOf(f.name);
      text(says, `${f.says[0].toUpperCase()}${f.says.slice(1)}.`);
      chart.show({
        label: `${titleOf(f.name)}, now ${signed(f.gain)}, ${signed(f.low)} to ${signed(f.high)}`,
        height: 200, width, points: c.points.filter((p) => p.gains[f.name]).map((p) => ({ at: p.at - width, gain: p.gains[f.name] })),
        format: (v, exact) => (exact ? signed(v) : String(v)),
        lines: [
          { name: "Service minus control", ink: "main-ink", dash: "", value: (p) => p.gain[0], band: (p) => p.gain.slice(1) },
          { name: "No difference", ink: "even-ink", dash: "dash", value: () => 0 },
        ],
      });
    }
  }

  function noteOf(c) {
    const by = c.version === null ? "your own choice" : c.version ? `version ${c.version}` : "uniform decisions";
    const unit = c.key === null ? "each event for itself" : `by ${c.key}, which counts once every ${lasting(c.period)}`;
    const [service, control] = c.findings.length ? c.findings[0].units : [0, 0];
    const state = c.running ? `${share(c.share)} of the decisions are in the control group (${by}), assigned ${unit}.` : `This comparison has ended. ${share(c.share)} of the decisions were in the control group (${by}).`;
    const known = c.findings.length ? ` Since ${moment(c.since)}: ${count(service)} and ${count(control)} ${c.key === null ? "events" : "keys"}, up to ${moment(c.upto)}. The intervals hold at all times, jointly, with 95% confidence.` : " Nothing is known yet: decisions count when the rewards of their whole time are known.";
    return state + known;
  }

  return { show };
})();
