"use strict";
const each = (query, act, root = document) => root.querySelectorAll(query).forEach(act);
const make = (tag, text, kind) => {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  if (kind) element.className = kind;
  return element;
};
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const dataOf = (element) => JSON.parse(element.querySelector('script[type="application/json"]').textContent);

// Rows without a value come last, whichever way the rest is sorted.
function rank(a, b, down) {
  if (a === b) return 0;
  if (a === null) return 1;
  if (b === null) return -1;
  return (a < b ? -1 : 1) * (down ? -1 : 1);
}
function sortTable(table, index, down) {
  const body = table.tBodies[0], number = table.tHead.rows[0].cells[index].classList.contains("n");
  const key = (row) => {
    const cell = row.cells[index], given = cell.dataset.v;
    if (given === undefined) return cell.textContent.toLowerCase();
    return given === "" ? null : number ? Number(given) : given;
  };
  const rows = [...body.rows].map((row) => [key(row), row]).sort((a, b) => rank(a[0], b[0], down));
  body.replaceChildren(...rows.map((pair) => pair[1]));
  each("th", (cell, place) => {
    if (place === index) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  }, table);
}
each("table.rows", (table) => {
  each("th button", (button) => {
    const cell = button.parentElement;
    button.onclick = () => {
      const now = cell.getAttribute("aria-sort");
      sortTable(table, cell.cellIndex, now ? now === "ascending" : cell.classList.contains("n"));
    };
  }, table);
});
function showRows(section, wanted, block) {
  let shown = 0;
  each("table.findable tbody tr", (row) => {
    const fits = (block === null || row.dataset.block === block) && row.textContent.toLowerCase().includes(wanted);
    row.hidden = !fits;
    shown += fits;
  }, section);
  each(".found", (place) => { place.textContent = wanted || block !== null ? `${shown} shown` : ""; }, section);
}
each("section", (section) => {
  const find = section.querySelector("input[type=search]"), all = section.querySelector(".all");
  if (!find) return;
  section.block = null;
  section.filter = () => {
    if (all) all.hidden = section.block === null;
    showRows(section, find.value.toLowerCase(), section.block);
  };
  find.oninput = section.filter;
  if (all) all.onclick = () => { section.block = null; section.filter(); };
});

// Two rows side by side, with what a number of the second is of that of the first. Two rows are two measurements, often
// of two times: this shows them and proves nothing.
function besideEachOther(section) {
  const place = section.querySelector(".beside"), picked = [...section.querySelectorAll(".pick:checked")].map((box) => box.closest("tr"));
  place.replaceChildren();
  if (picked.length === 1) place.append(make("span", `${picked[0].querySelector(".pick").value}: choose another row to put beside it`, "soft"));
  if (picked.length < 2) return;
  const table = make("table"), head = table.createTHead().insertRow(), body = table.createTBody();
  const titles = [...section.querySelectorAll("table.pickable th")].map((cell) => cell.textContent);
  head.append(make("td", ""));
  for (const row of picked) { const cell = make("th", row.querySelector(".pick").value); cell.scope = "col"; head.append(cell); }
  const compared = make("th", "second of first"); compared.scope = "col"; head.append(compared);
  titles.forEach((title, at) => {
    const cells = picked.map((row) => row.cells[at]), values = cells.map((cell) => cell.dataset.v);
    const line = body.insertRow(), name = make("th", title);
    name.scope = "row";
    line.append(name, ...cells.map((cell) => make("td", [...cell.childNodes].filter((node) => !(node.className === "anchor")).map((node) => node.textContent.trim().replace(/^: /, "")).filter(Boolean).join(" · "))));
    const both = values.every((value) => value !== undefined && value !== "") && Number(values[0]) !== 0;
    line.append(make("td", both ? (Number(values[1]) / Number(values[0])).toPrecision(4) + " ×" : ""));
  });
  const clear = make("button", "clear");
  clear.type = "button";
  clear.onclick = () => { each(".pick", (box) => { box.checked = false; }, section); besideEachOther(section); };
  place.append(table, make("span", "Measured one after the other: beside each other, not against each other.", "soft"), clear);
}
each("section", (section) => each(".pick", (box) => {
  box.onchange = () => {
    const checked = [...section.querySelectorAll(".pick:checked")];
    if (checked.length > 2) checked.find((one) => one !== box).checked = false;
    besideEachOther(section);
  };
}, section));
const chosenRow = () => {
  const row = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (row && row.closest("details")) row.closest("details").open = true;
  if (row) row.scrollIntoView({ block: "center" });
};
addEventListener("hashchange", chosenRow);
addEventListener("load", chosenRow);

const WHOLE = [1, 2, 5].flatMap((step) => [0, 1, 2, 3, 4, 5, 6].map((power) => step * 10 ** power)).sort((a, b) => a - b);
function drawChart(figure) {
  const data = dataOf(figure), says = figure.querySelector(".says");
  const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") } };
  const shown = (value, unit) => value === null || value === undefined ? "–" : +value.toPrecision(4) + (unit ? " " + unit : "");
  const bands = (plot) => {
    for (const band of data.bands) {
      const { left, width, top, height } = plot.bbox, limit = (value) => Math.min(top + height, Math.max(top, value));
      const from = band.low === null ? top + height : limit(plot.valToPos(band.low, "y", true));
      const to = band.high === null ? top : limit(plot.valToPos(band.high, "y", true));
      plot.ctx.fillStyle = colour(band.tone + "-soft");
      plot.ctx.fillRect(left, to, width, from - to);
    }
  };
  const tell = (plot) => {
    const at = plot.cursor.idx;
    if (says) says.textContent = at === null || at === undefined ? "" : data.names[at] ?? "";
  };
  const series = data.series.map((one) => ({
    label: one.name, stroke: colour(one.tone), width: one.points ? 0 : 1.5, spanGaps: true, value: (_, value) => shown(value, data.unit),
    paths: one.points ? () => null : undefined,
    points: one.points ? { show: true, size: one.size, fill: one.hollow ? "transparent" : colour(one.tone), stroke: colour(one.tone), width: one.hollow ? 2 : 0 } : { show: data.x.length < 150, size: 4, fill: colour(one.tone) },
  }));
  const range = (_, low, high) => {
    const bottom = Math.min(low ?? 0, data.low ?? Infinity), top = Math.max(high ?? 1, data.high ?? -Infinity), pad = (top - bottom) * .05 || 1;
    return [data.low === bottom ? bottom : bottom - pad, top + pad];
  };
  const place = figure.querySelector(".plot");
  place.replaceChildren();
  figure.plot = new uPlot({
    width: Math.max(200, place.clientWidth), height: data.height, scales: { x: { time: false }, y: { range } }, cursor: { y: false, drag: { x: true } },
    legend: { live: true, markers: { width: 2, stroke: (_, at) => colour(data.series[at - 1].tone), fill: (_, at) => data.series[at - 1].hollow ? "transparent" : colour(data.series[at - 1].tone) } }, axes: [{ ...axis, size: 34, ...(data.x.every(Number.isInteger) ? { incrs: WHOLE } : {}) }, { ...axis, size: 62, values: (_, ticks) => ticks.map((tick) => tick === null ? "" : shown(tick, data.unit)) }],
    series: [{ label: data.x_title, value: (_, value) => shown(value, "") }, ...series], hooks: { drawClear: [bands], setCursor: [tell] },
  }, [data.x, ...data.series.map((one) => one.values)], place);
}
each(".chart", drawChart);
window.addEventListener("resize", () => each(".chart", (figure) => {
  figure.plot.setSize({ width: Math.max(200, figure.querySelector(".plot").clientWidth), height: figure.plot.height });
}));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => each(".chart", drawChart));

function drawGraph(figure) {
  const data = dataOf(figure), svg = figure.querySelector("svg"), space = svg.namespaceURI, boxHeight = 38;
  const draw = (tag, attributes, parent, text) => {
    const element = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };
  const graph = new dagre.graphlib.Graph().setGraph({ rankdir: "TB", nodesep: 14, ranksep: 22, marginx: 10, marginy: 10 });
  graph.setDefaultEdgeLabel(() => ({}));
  const width = (node) => Math.max(90, 18 + 7 * Math.max(node.title.length, .9 * node.sub.length));
  data.nodes.forEach((node, index) => graph.setNode(index, { width: width(node), height: boxHeight }));
  for (const [from, to] of data.edges) graph.setEdge(from, to);
  dagre.layout(graph);
  const size = graph.graph();
  svg.setAttribute("width", Math.ceil(size.width));
  svg.setAttribute("height", Math.ceil(size.height));
  for (const edge of graph.edges()) {
    const points = graph.edge(edge).points;
    draw("path", { d: points.map((point, at) => `${at ? "L" : "M"}${point.x.toFixed(1)},${point.y.toFixed(1)}`).join("") }, svg);
  }
  const section = figure.closest("section");
  data.nodes.forEach((node, index) => {
    const box = graph.node(index), left = box.x - box.width / 2, top = box.y - box.height / 2;
    const group = draw("g", { class: node.left ? "node left" : "node" }, svg), colours = `var(--${node.tone})`;
    draw("title", {}, group, node.hint);
    draw("rect", { x: left, y: top, width: box.width, height: box.height, rx: 6, style: `stroke: ${colours}` }, group);
    draw("rect", { class: "fill", x: left, y: top, width: box.width, height: box.height, rx: 6, style: `fill: ${colours}` }, group);
    draw("text", { x: box.x, y: top + 16, "text-anchor": "middle" }, group, node.title);
    draw("text", { x: box.x, y: top + 30, "text-anchor": "middle", class: "sub" }, group, node.sub);
    group.addEventListener("click", () => {
      section.block = String(index);
      section.filter();
      section.querySelector(".tools").scrollIntoView({ block: "start", behavior: "smooth" });
    });
  });
  figure.scrollLeft = (figure.scrollWidth - figure.clientWidth) / 2;
}
each(".graph", drawGraph);

each(".lane", (lane) => {
  const section = lane.closest("section"), inner = lane.firstElementChild, says = section.querySelector(".says");
  section.querySelector("input[type=range]").oninput = (event) => { inner.style.width = 100 * 2 ** event.target.value + "%"; };
  inner.addEventListener("mouseover", (event) => { if (event.target.title) says.textContent = event.target.title; });
});
