// flow.ts: a Mermaid flowchart or stateDiagram-v2 as SVG: of the languages as much as this book
// uses, and what is not known throws. Where nodes go, ranks.ts finds.

import { escapeHtml, headAt, LINE, round, svg, textAt, widest, wrapped } from './ink.ts';
import type { Point } from './ink.ts';
import { placed, type Graph, type Placed, type PlacedEdge, type Way } from './ranks.ts';

type Look = 'box' | 'choice' | 'start' | 'group';
type Node = { id: string; text: string; look: Look; inner?: Chart };
type Edge = { from: string; to: string; text: string; isDotted: boolean };
type Chart = { nodes: Map<string, Node>; edges: Edge[] };

const newChart = (): Chart => ({ nodes: new Map(), edges: [] });

// ─── Reading ────────────────────────────────────────────────────────────────────────────────────

const NODE = /([\w.-]*\w)(?:\["([^"]*)"\]|\[([^\]]*)\]|\{"([^"]*)"\}|\{([^}]*)\})?\s*/y;
const EDGES = [
  /(-->|-\.->)\|"?([^|"]*)"?\|\s*/y, // -->|text|
  /(-->|-\.->)\s*/y,
  /(--) "?([^">]*?)"? -->\s*/y, // -- text -->
  /(-\.) "?([^">]*?)"? \.->\s*/y, // -. text .->
];

export function drawFlow(head: string, lines: string[]): string {
  const way = /^flowchart (LR|TD|BT)$/.exec(head)?.[1] as Way | undefined;
  const chart = way ? readFlow(lines) : readStates(lines);
  const drawing = fitting(chart, way ?? 'TD');
  const { width, height, shapes } = drawing;
  return svg(width, height, spoken(chart), shapes);
}

function readFlow(lines: string[]): Chart {
  const chart = newChart();
  let inner: Chart | undefined;
  for (const line of lines) {
    const [, group] = /^subgraph (\w+)$/.exec(line) ?? [];
    if (group) {
      inner = newChart();
      chart.nodes.set(group, { id: group, text: group, look: 'group', inner });
    } else if (line === 'end' && inner) inner = undefined;
    else readChain(inner ?? chart, line);
  }
  if (inner) throw new Error('a subgraph of a flowchart has no end');
  return chart;
}

/** `A --> B -->|yes| C` */
function readChain({ nodes, edges }: Chart, line: string): void {
  let at = 0;
  const next = (pattern: RegExp) => {
    pattern.lastIndex = at;
    const found = pattern.exec(line);
    if (found) at = pattern.lastIndex;
    return found;
  };
  const unknown = () => new Error(`this line of a flowchart cannot be drawn: ${line}`);
  const node = () => {
    const found = next(NODE);
    if (!found) throw unknown();
    const [, id = '', quoted, plain, asked, choice] = found;
    const text = quoted ?? plain ?? asked ?? choice;
    const look = asked === undefined && choice === undefined ? 'box' : 'choice';
    if (text !== undefined || !nodes.has(id)) nodes.set(id, { id, text: text ?? id, look });
    return id;
  };
  for (let from = node(); at < line.length; ) {
    const found = EDGES.map(next).find((each) => each !== null);
    if (!found) throw unknown();
    const to = node();
    edges.push({ from, to, text: found[2] ?? '', isDotted: found[1]!.includes('.') });
    from = to;
  }
}

function readStates(lines: string[]): Chart {
  const chart = newChart();
  for (const line of lines) {
    const named = /^state "([^"]+)" as (\w+)$/.exec(line);
    if (named) chart.nodes.set(named[2]!, { id: named[2]!, text: named[1]!, look: 'box' });
    const moved = /^(\[\*\]|\w+) --> (\w+)(?:: (.*))?$/.exec(line);
    if (!named && !moved) throw new Error(`this line of a state diagram cannot be drawn: ${line}`);
    if (!moved) continue;
    const [, from = '', to = '', text = ''] = moved;
    for (const id of [from, to])
      if (!chart.nodes.has(id))
        chart.nodes.set(id, { id, text: id, look: id === '[*]' ? 'start' : 'box' });
    chart.edges.push({ from, to, text, isDotted: false });
  }
  return chart;
}

function spoken({ nodes, edges }: Chart): string {
  const nameOf = (id: string) => (id === '[*]' ? 'start' : nodes.get(id)!.text);
  const inside = [...nodes.values()].flatMap(({ inner }) => (inner ? [spoken(inner)] : []));
  const sentences = edges.map(
    ({ from, to, text }) => `${nameOf(from)} to ${nameOf(to)}${text && `: ${text}`}`,
  );
  return [...inside, ...sentences].join('. ');
}

// ─── Drawing ────────────────────────────────────────────────────────────────────────────────────

type Drawing = { width: number; height: number; shapes: string[] };
const COLUMN = 780; // pixels: what a page has for a picture

/** As it is meant, unless that is too wide and the other way is not. */
function fitting(chart: Chart, way: Way): Drawing {
  const meant = drawn(chart, way);
  if (way === 'BT' || meant.width <= COLUMN) return meant;
  const other = drawn(chart, way === 'LR' ? 'TD' : 'LR');
  return other.width < meant.width ? other : meant;
}

function drawn(chart: Chart, way: Way): Drawing {
  const most = way === 'LR' ? 150 : 200;
  const linesOf = new Map<string, string[]>();
  const inner = new Map<string, Drawing>();
  const graph: Graph = { nodes: [], edges: [] };
  for (const node of chart.nodes.values()) {
    const { id, text, look } = node;
    const lines = look === 'start' ? [] : wrapped(text, most);
    linesOf.set(id, lines);
    if (node.inner) inner.set(id, drawn(node.inner, way === 'LR' ? 'TD' : 'LR'));
    graph.nodes.push({ id, ...sizeOf(look, lines, inner.get(id)) });
  }
  for (const { from, to, text } of chart.edges) {
    const lines = text === '' ? [] : wrapped(text, way === 'LR' ? 110 : 190);
    const size = { width: widest(lines) + 10, height: lines.length * LINE + 4 };
    graph.edges.push({ from, to, ...(text === '' ? { width: 0, height: 0 } : size) });
  }
  const { width, height, nodes, edges } = placed(graph, way);
  const lines = edges.map((edge, n) => line(edge, chart.edges[n]!, way));
  const boxes = nodes.map((each) => {
    const { look, text } = chart.nodes.get(each.id)!;
    const drawing = inner.get(each.id);
    return drawing ? group(each, text, drawing) : box(each, look, linesOf.get(each.id)!);
  });
  const labels = edges.map((edge, n) => label(edge, chart.edges[n]!, way));
  return { width, height, shapes: [...lines, ...boxes, ...labels] };
}

function sizeOf(look: Look, lines: string[], inner?: Drawing) {
  if (inner) return { width: inner.width + 16, height: inner.height + 34 };
  if (look === 'start') return { width: 16, height: 16 };
  const padding = look === 'choice' ? 40 : 26;
  return { width: widest(lines) + padding, height: lines.length * LINE + 15 };
}

function box({ x, y, width, height }: Placed, look: Look, lines: string[]): string {
  if (look === 'start') return `<circle class="head" cx="${round(x)}" cy="${round(y)}" r="7"/>`;
  const radius = look === 'choice' ? Math.min(20, height / 2) : 5;
  return rect({ x, y, width, height }, look, radius) + textAt({ x, y }, lines);
}

function group(at: Placed, name: string, { shapes }: Drawing): string {
  const [left, top] = [at.x - at.width / 2, at.y - at.height / 2];
  const [x, y] = [round(left + 10), round(top + 18)];
  const title = `<text class="word" x="${x}" y="${y}">${escapeHtml(name)}</text>`;
  const move = `translate(${round(left + 8)} ${round(top + 26)})`;
  const inside = `<g transform="${move}">${shapes.join('')}</g>`;
  return rect(at, 'frame', 6) + title + inside;
}

type Area = Point & { width: number; height: number };

function rect({ x, y, width, height }: Area, look: string, radius: number): string {
  const corner = `x="${round(x - width / 2)}" y="${round(y - height / 2)}"`;
  const size = `width="${round(width)}" height="${round(height)}"`;
  return `<rect class="${look}" ${corner} ${size} rx="${radius}"/>`;
}

/** Smooth: it leaves and arrives in the direction of the chart. */
function line({ points }: PlacedEdge, { isDotted }: Edge, way: Way): string {
  const [first, ...rest] = points as [Point, ...Point[]];
  let path = `M${round(first.x)} ${round(first.y)}`;
  let before = first;
  for (const point of rest) {
    const [a, b] = [bend(before, point, way), bend(point, before, way)];
    path += `C${a} ${b} ${round(point.x)} ${round(point.y)}`;
    before = point;
  }
  const tip = points.at(-1)!;
  const last = points.at(-2)!;
  const from = way === 'LR' ? { x: last.x, y: tip.y } : { x: tip.x, y: last.y };
  const isStraight = points.length < 2 || (from.x === tip.x && from.y === tip.y);
  const head = headAt(tip, isStraight ? last : from);
  return `<path class="line${isDotted ? ' dashed' : ''}" d="${path}"/>${head}`;
}

function bend(from: Point, to: Point, way: Way): string {
  if (way === 'LR') return `${round((from.x + to.x) / 2)} ${round(from.y)}`;
  return `${round(from.x)} ${round((from.y + to.y) / 2)}`;
}

function label({ label: at }: PlacedEdge, { text }: Edge, way: Way): string {
  if (text === '') return '';
  const lines = wrapped(text, way === 'LR' ? 110 : 190);
  const size = { ...at, width: widest(lines) + 6, height: lines.length * LINE };
  return rect(size, 'under', 3) + textAt(at, lines, 'word');
}
