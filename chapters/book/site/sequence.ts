// sequence.ts: a Mermaid sequenceDiagram as SVG: of the language as much as this book uses. A line
// that is not known throws, so that none is left out of a picture.

import { escapeHtml, headAt, LINE, round, svg, textAt, widthOf } from './ink.ts';

type Arrow = { kind: 'arrow'; from: string; to: string; look: string; text: string };
type Note = { kind: 'note'; from: string; to: string; side: string; text: string };
type Open = { kind: 'open'; text: string };
type Part = { kind: 'part'; text: string };
type Step = Arrow | Note | Open | Part | { kind: 'close' };
type Diagram = { people: Map<string, string>; steps: Step[] };

const PERSON = /^(?:participant|actor) (\w+)(?: as (.*))?$/;
const ARROW = /^(\w+) ?(-->>|->>|--x|-x|--\)|-\)) ?(\w+): (.*)$/;
const NOTE = /^Note (over|right of|left of) (\w+)(?:, ?(\w+))?: (.*)$/;
const FRAME = /^(loop|par|alt|opt) (.*)$/;
const PART = /^(?:and|else)(?: (.*))?$/;

export function drawSequence(lines: string[]): string {
  const diagram = readSequence(lines);
  return new Sheet(diagram).draw(spoken(diagram));
}

function readSequence(lines: string[]): Diagram {
  const people = new Map<string, string>();
  const steps: Step[] = [];
  let depth = 0;
  const known = (id: string) => {
    if (!people.has(id)) people.set(id, id);
    return id;
  };
  for (const line of lines) {
    const person = PERSON.exec(line);
    const arrow = ARROW.exec(line);
    const note = NOTE.exec(line);
    const frame = FRAME.exec(line);
    const part = PART.exec(line);
    if (person) people.set(person[1]!, person[2] ?? person[1]!);
    else if (arrow) {
      const [, from, look, to, text] = arrow as unknown as [string, string, string, string, string];
      steps.push({ kind: 'arrow', from: known(from), to: known(to), look, text });
    } else if (note) {
      const [, side = '', from = '', to = from, text = ''] = note;
      steps.push({ kind: 'note', side, from: known(from), to: known(to), text });
    } else if (frame) {
      depth++;
      steps.push({ kind: 'open', text: `${frame[1]} ${frame[2]}` });
    } else if (part && depth > 0) steps.push({ kind: 'part', text: part[1] ?? '' });
    else if (line === 'end' && depth > 0) {
      depth--;
      steps.push({ kind: 'close' });
    } else throw new Error(`this line of a sequence diagram cannot be drawn: ${line}`);
  }
  if (depth > 0) throw new Error('a frame of a sequence diagram has no end');
  return { people, steps };
}

function spoken({ people, steps }: Diagram): string {
  const sentences = steps.flatMap((step) => {
    if (step.kind === 'arrow')
      return [`${people.get(step.from)} to ${people.get(step.to)}: ${step.text}`];
    if (step.kind === 'note') return [`${people.get(step.from)}: ${step.text}`];
    return [];
  });
  return sentences.join('. ');
}

const TOP = 34; // pixels: the boxes with the names
const GAP = 130; // pixels between two neighbours, at least
const MARGIN = 14;

class Sheet {
  private at = new Map<string, number>();
  private right = 0;
  private y = TOP + 30;
  private depth = 0;
  private shapes: string[] = [];
  private diagram: Diagram;

  constructor(diagram: Diagram) {
    this.diagram = diagram;
    this.place();
  }

  /** Neighbours are as far apart as the longest text between them needs. */
  private place(): void {
    const { people, steps } = this.diagram;
    const ids = [...people.keys()];
    const half = ids.map((id) => halfOf(people.get(id)!));
    const gaps = ids.map((_, n) => (n === 0 ? 0 : Math.max(GAP, half[n - 1]! + half[n]! + 24)));
    for (const step of steps) {
      if (step.kind !== 'arrow' && step.kind !== 'note') continue;
      const [a, b] = [ids.indexOf(step.from), ids.indexOf(step.to)].sort((x, y) => x - y) as [
        number,
        number,
      ];
      const needed = widthOf(step.text) + 36;
      if (a === b) {
        if (a + 1 < ids.length && step.kind === 'arrow')
          gaps[a + 1] = Math.max(gaps[a + 1]!, needed + 30);
        continue;
      }
      const have = gaps.slice(a + 1, b + 1).reduce((sum, gap) => sum + gap, 0);
      for (let n = a + 1; n <= b; n++) gaps[n]! += Math.max(0, needed - have) / (b - a);
    }
    // A note over the first lane may be wider than the name.
    const overFirst = steps.filter((step) => step.kind === 'note' && step.from === ids[0]);
    const notes = overFirst.map((step) => noteWidth(step as Note) / 2);
    let x = MARGIN + Math.max(half[0]!, ...notes) + this.deepest() * 8;
    for (const [n, id] of ids.entries()) {
      x += gaps[n]!;
      this.at.set(id, Math.round(x));
    }
    this.right = x + half.at(-1)!;
  }

  private deepest(): number {
    return this.diagram.steps.filter(({ kind }) => kind === 'open').length;
  }

  draw(words: string): string {
    const frames: { top: number; text: string; parts: { y: number; text: string }[] }[] = [];
    const behind: string[] = [];
    const framed: { frame: (typeof frames)[number]; bottom: number; depth: number }[] = [];
    for (const step of this.diagram.steps) {
      if (step.kind === 'arrow') this.arrow(step);
      else if (step.kind === 'note') this.note(step);
      else if (step.kind === 'open') {
        frames.push({ top: this.y - 18, text: step.text, parts: [] });
        this.depth++;
        this.y += 22;
      } else if (step.kind === 'part') {
        frames.at(-1)!.parts.push({ y: this.y - 14, text: step.text });
        this.y += 22;
      } else {
        this.depth--;
        framed.push({ frame: frames.pop()!, bottom: this.y - 14, depth: this.depth });
        this.y += 8;
      }
    }
    const width = this.right + MARGIN + this.deepest() * 8;
    for (const { frame, bottom, depth } of framed) {
      const inset = 4 + depth * 8;
      const right = width - inset;
      const size = `width="${round(right - inset)}" height="${bottom - frame.top}"`;
      behind.push(`<rect class="frame" x="${inset}" y="${frame.top}" ${size} rx="4"/>`);
      behind.push(wordAt(inset + 8, frame.top + 15, frame.text));
      for (const { y, text } of frame.parts) {
        behind.push(`<path class="line dashed" d="M${inset} ${y}H${round(right)}"/>`);
        behind.push(wordAt(inset + 8, y + 15, text));
      }
    }
    const height = this.y - 6;
    return svg(width, height, words, [...this.lanes(height), ...behind, ...this.shapes]);
  }

  private lanes(height: number): string[] {
    return [...this.diagram.people].map(([id, name]) => {
      const x = this.at.get(id)!;
      const half = halfOf(name);
      const size = `width="${round(2 * half)}" height="28"`;
      const box = `<rect class="box" x="${round(x - half)}" y="4" ${size} rx="6"/>`;
      const lane = `<path class="lane" d="M${x} 32V${height}"/>`;
      return lane + box + textAt({ x, y: 18 }, [name], 'name');
    });
  }

  private arrow({ from, to, look, text }: Arrow): void {
    const [x1, x2] = [this.at.get(from)!, this.at.get(to)!];
    const dashed = look.startsWith('--') ? ' dashed' : '';
    if (x1 === x2) return this.loop(x1, dashed, text);
    const sign = Math.sign(x2 - x1);
    const y = this.y;
    const tip = { x: x2 - sign * 2, y };
    this.shapes.push(textAt({ x: (x1 + x2) / 2, y: y - 11 }, [text]));
    this.shapes.push(
      `<path class="line${dashed}" d="M${x1 + sign * 2} ${y}H${tip.x - sign * 4}"/>`,
    );
    if (look.endsWith('x'))
      this.shapes.push(`<path class="line" d="M${x2 - sign * 13} ${y - 5}l10 10m0-10l-10 10"/>`);
    else if (look.endsWith(')')) {
      const back = x2 - sign * 10;
      this.shapes.push(`<path class="line" d="M${back} ${y - 5}l${sign * 8} 5l${-sign * 8} 5"/>`);
    } else this.shapes.push(headAt(tip, { x: x1, y }));
    this.y += 36;
  }

  private loop(x: number, dashed: string, text: string): void {
    const y = this.y - 8;
    this.shapes.push(`<path class="line${dashed}" d="M${x + 2} ${y}h28v16h-22"/>`);
    this.shapes.push(headAt({ x: x + 2, y: y + 16 }, { x: x + 30, y: y + 16 }));
    this.shapes.push(`<text x="${x + 38}" y="${y + 12}">${escapeHtml(text)}</text>`);
    this.right = Math.max(this.right, x + 46 + widthOf(text));
    this.y += 40;
  }

  private note(note: Note): void {
    const [x1, x2] = [this.at.get(note.from)!, this.at.get(note.to)!];
    const width = Math.max(Math.abs(x2 - x1) + 40, noteWidth(note));
    const away = note.side === 'over' ? 0 : (width / 2 + 8) * (note.side === 'left of' ? -1 : 1);
    const x = Math.max(width / 2 + 4, (x1 + x2) / 2 + away);
    const top = this.y - 20;
    const size = `width="${round(width)}" height="${LINE + 9}"`;
    this.shapes.push(
      `<rect class="note" x="${round(x - width / 2)}" y="${top}" ${size} rx="3"/>`,
      textAt({ x, y: top + (LINE + 9) / 2 }, [note.text]),
    );
    this.right = Math.max(this.right, x + width / 2);
    this.y += 40;
  }
}

const noteWidth = ({ text }: Note) => widthOf(text) + 24;
const wordAt = (x: number, y: number, text: string) =>
  `<text class="word" x="${x}" y="${y}">${escapeHtml(text)}</text>`;
/** Of the box with a name, which is bold. */
const halfOf = (name: string) => widthOf(name) * 0.55 + 12;
