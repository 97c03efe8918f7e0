// ranks.ts: where the nodes of a chart go: in ranks, so that arrows lead from one to a later one;
// within a rank near those that they belong to. An arrow's label has a place of its own, in a rank
// between.

import type { Point } from './ink.ts';

export type Way = 'LR' | 'TD' | 'BT';
type Size = { width: number; height: number };
export type Graph = {
  nodes: ({ id: string } & Size)[];
  edges: ({ from: string; to: string } & Size)[]; // the size of its label, or 0
};
export type Placed = { id: string } & Size & Point; // its middle
export type PlacedEdge = { points: Point[]; label: Point };

const BESIDE = 26; // pixels between neighbours of a rank
const BETWEEN = 16; // pixels between two ranks
const SWEEPS = 12;
const MARGIN = 8;

/** Something that takes up room in a rank. `before` and `after` are its neighbours in the ranks
 *  beside. */
type Item = {
  node?: string;
  along: number; // its size in the direction of the chart
  across: number;
  place: number; // the middle, across
  before: Item[];
  after: Item[];
};
type Route = { from: Item; to: Item; stops: Item[]; isReversed: boolean };

export function placed(graph: Graph, way: Way) {
  return new Ranks(graph, way).placed();
}

class Ranks {
  private graph: Graph;
  private way: Way;
  private ranks: Item[][] = [];
  private routes: (Route | undefined)[] = []; // of an edge to itself: none

  constructor(graph: Graph, way: Way) {
    this.graph = graph;
    this.way = way;
    this.fill();
    this.sort();
    this.align();
  }

  private sizeOf({ width, height }: Size) {
    return this.way === 'LR' ? { along: width, across: height } : { along: height, across: width };
  }

  // ─── Which rank ───

  /** Nodes are in even ranks, labels in odd ones. */
  private fill(): void {
    const { nodes, edges } = this.graph;
    const reversed = this.backward();
    const forward = edges.map(({ from, to }, n) => (reversed.has(n) ? [to, from] : [from, to]));
    const rankOf = ranksOf(nodes, forward as [string, string][]);
    const items = new Map<string, Item>();
    for (const node of nodes) {
      const item = this.newItem(rankOf.get(node.id)!, this.sizeOf(node));
      items.set(node.id, Object.assign(item, { node: node.id }));
    }
    this.routes = edges.map((edge, n) => {
      const [from, to] = forward[n]!.map((id) => items.get(id)!) as [Item, Item];
      if (from === to) return undefined;
      const [first, last] = forward[n]!.map((id) => rankOf.get(id)!) as [number, number];
      const stops: Item[] = [];
      for (let rank = first + 1; rank < last; rank++) {
        const isLabel = rank === first + 1;
        stops.push(this.newItem(rank, isLabel ? this.sizeOf(edge) : { along: 0, across: 0 }));
      }
      const chain = [from, ...stops, to];
      for (const [k, item] of chain.slice(1).entries()) {
        item.before.push(chain[k]!);
        chain[k]!.after.push(item);
      }
      return { from, to, stops, isReversed: reversed.has(n) };
    });
  }

  private newItem(rank: number, size: { along: number; across: number }): Item {
    while (this.ranks.length <= rank) this.ranks.push([]);
    const item: Item = { ...size, place: 0, before: [], after: [] };
    this.ranks[rank]!.push(item);
    return item;
  }

  /** The edges that lead back to where we came from. */
  private backward(): Set<number> {
    const { nodes, edges } = this.graph;
    const found = new Set<number>();
    const open = new Set<string>();
    const seen = new Set<string>();
    const visit = (id: string) => {
      seen.add(id);
      open.add(id);
      for (const [n, edge] of edges.entries()) {
        if (edge.from !== id || edge.to === id) continue;
        if (open.has(edge.to)) found.add(n);
        else if (!seen.has(edge.to)) visit(edge.to);
      }
      open.delete(id);
    };
    for (const { id } of nodes) if (!seen.has(id)) visit(id);
    return found;
  }

  // ─── Where in its rank ───

  private sort(): void {
    const middle = (items: Item[], rank: Item[]) =>
      items.reduce((sum, item) => sum + rank.indexOf(item), 0) / items.length;
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
      const isDown = sweep % 2 === 0;
      const order = isDown ? this.ranks.keys() : [...this.ranks.keys()].reverse();
      for (const n of order) {
        const beside = this.ranks[isDown ? n - 1 : n + 1];
        const rank = this.ranks[n]!;
        if (!beside) continue;
        const keys = new Map(
          rank.map((item, k) => {
            const those = isDown ? item.before : item.after;
            return [item, those.length > 0 ? middle(those, beside) : k];
          }),
        );
        rank.sort((a, b) => keys.get(a)! - keys.get(b)!);
      }
    }
  }

  /** Each wants to be in the middle of its neighbours, and none is over another. */
  private align(): void {
    for (const rank of this.ranks) spread(rank);
    for (let sweep = 0; sweep < SWEEPS * 10; sweep++)
      for (const rank of sweep % 2 === 0 ? this.ranks : this.ranks.toReversed()) {
        for (const item of rank) {
          const near = [...item.before, ...item.after];
          if (near.length === 0) continue;
          item.place = near.reduce((sum, { place }) => sum + place, 0) / near.length;
        }
        spread(rank);
      }
    const starts = this.ranks.flat().map(({ place, across }) => place - across / 2);
    const least = Math.min(...starts);
    for (const item of this.ranks.flat()) item.place += MARGIN - least;
  }

  // ─── As points ───

  placed() {
    const { nodes, edges } = this.graph;
    const middles = new Map<Item, number>(); // along
    let along = MARGIN;
    for (const rank of this.ranks) {
      const size = Math.max(0, ...rank.map((item) => item.along));
      for (const item of rank) middles.set(item, along + size / 2);
      along += size + BETWEEN;
    }
    along += MARGIN - BETWEEN;
    const all = this.ranks.flat();
    const across = MARGIN + Math.max(...all.map((item) => item.place + item.across / 2));
    const at = (main: number, cross: number): Point => {
      if (this.way === 'LR') return { x: main, y: cross };
      return { x: cross, y: this.way === 'BT' ? along - main : main };
    };
    const middleOf = (item: Item) => at(middles.get(item)!, item.place);
    const boxes = nodes.map((node): Placed => {
      const item = all.find((each) => each.node === node.id)!;
      return { ...node, ...middleOf(item) };
    });
    let widest = across;
    const lines = this.routes.map((route, n): PlacedEdge => {
      if (route) {
        const points = this.pointsOf(route, middles, at);
        const label = route.stops[0]!;
        return { points, label: middleOf(label) };
      }
      const { across: room } = this.sizeOf(edges[n]!);
      const self = all.find((each) => each.node === edges[n]!.from)!;
      const side = self.place + self.across / 2;
      widest = Math.max(widest, side + 40 + room + MARGIN);
      return selfLoop(middles.get(self)!, side, room, at);
    });
    const [width, height] = this.way === 'LR' ? [along, widest] : [widest, along];
    return { width, height, nodes: boxes, edges: lines };
  }

  private pointsOf(
    { from, to, stops, isReversed }: Route,
    middles: Map<Item, number>,
    at: (main: number, cross: number) => Point,
  ): Point[] {
    const port = (item: Item, others: Item[], other: Item) => {
      const sorted = others.toSorted((a, b) => a.place - b.place);
      const share = (sorted.indexOf(other) + 1) / (others.length + 1);
      return item.place + (share - 0.5) * item.across;
    };
    const start = at(middles.get(from)! + from.along / 2, port(from, from.after, stops[0]!));
    const end = at(middles.get(to)! - to.along / 2, port(to, to.before, stops.at(-1)!));
    const isDirect = stops.length === 1 && stops[0]!.across === 0; // no label to lead it through
    const through = stops.map((stop) => at(middles.get(stop)!, stop.place));
    if (isDirect) through.pop();
    const points = [start, ...through, end];
    return isReversed ? points.reverse() : points;
  }
}

function selfLoop(
  main: number,
  side: number,
  room: number,
  at: (main: number, cross: number) => Point,
): PlacedEdge {
  const points = [at(main - 8, side), at(main - 8, side + 30), at(main + 8, side + 30)];
  return { points: [...points, at(main + 8, side)], label: at(main, side + 38 + room / 2) };
}

/** The length of the longest way to each, in steps of two. What has no way to it is just before
 *  what follows. */
function ranksOf(nodes: Graph['nodes'], edges: [string, string][]): Map<string, number> {
  const ranks = new Map(nodes.map(({ id }) => [id, 0]));
  const others = edges.filter(([from, to]) => from !== to);
  for (let k = 0; k < nodes.length; k++)
    for (const [from, to] of others) ranks.set(to, Math.max(ranks.get(to)!, ranks.get(from)! + 2));
  for (const { id } of nodes) {
    const next = others.filter(([from]) => from === id).map(([, to]) => ranks.get(to)!);
    const isFirst = !others.some(([, to]) => to === id);
    if (isFirst && next.length > 0) ranks.set(id, Math.min(...next) - 2);
  }
  return ranks;
}

/** Pushes apart what overlaps; together they stay where they wanted to be, on the whole. */
function spread(rank: Item[]): void {
  const wanted = rank.reduce((sum, { place }) => sum + place, 0);
  let end = Number.NEGATIVE_INFINITY;
  for (const item of rank) {
    item.place = Math.max(item.place, end + item.across / 2);
    end = item.place + item.across / 2 + BESIDE;
  }
  const shift = (wanted - rank.reduce((sum, { place }) => sum + place, 0)) / rank.length;
  for (const item of rank) item.place += shift;
}
