// gantt.ts: a Mermaid gantt chart as SVG, for calls on lanes: who runs beside whom, from when until
// when.

import { escapeHtml, svg, widthOf } from './ink.ts';

type Task = { section: string; name: string; from: number; to: number; isWall: boolean };

const TASK = /^([^:]+?) ?:(crit, )?(\d+), (\d+)$/;
const ROW = 34; // pixels
const UNIT = 110; // pixels for one step of time

export function drawGantt(lines: string[]): string {
  const tasks = readGantt(lines);
  const sections = [...new Set(tasks.map(({ section }) => section))];
  const left = Math.max(...sections.map(widthOf)) + 24;
  const most = Math.max(...tasks.map(({ to }) => to));
  const height = sections.length * ROW + 12;
  const shapes = sections.flatMap((section, n) => {
    const y = 8 + n * ROW;
    return [
      `<text class="word" x="8" y="${y + 19}">${escapeHtml(section)}</text>`,
      `<path class="lane" d="M${left} ${y + ROW - 3}h${most * UNIT}"/>`,
      ...tasks.filter((task) => task.section === section).map((task) => bar(task, left, y)),
    ];
  });
  const words = tasks.map(({ section, name, from, to }) => `${section}: ${name}, ${from} to ${to}`);
  return svg(left + most * UNIT + 12, height, words.join('. '), shapes);
}

function bar({ name, from, to, isWall }: Task, left: number, y: number): string {
  const x = left + from * UNIT;
  const width = (to - from) * UNIT - 4;
  const look = isWall ? 'note' : 'box';
  const box = `<rect class="${look}" x="${x}" y="${y}" width="${width}" height="27" rx="5"/>`;
  const middle = `x="${x + width / 2}" y="${y + 18}" text-anchor="middle"`;
  return `${box}<text ${middle}>${escapeHtml(name)}</text>`;
}

function readGantt(lines: string[]): Task[] {
  let section = '';
  return lines.flatMap((line) => {
    const [, name] = /^section (.*)$/.exec(line) ?? [];
    if (name) section = name;
    if (name || line === 'dateFormat X' || line === 'axisFormat %s') return [];
    const task = TASK.exec(line);
    if (!task) throw new Error(`this line of a chart cannot be drawn: ${line}`);
    const [from, to] = [Number(task[3]), Number(task[4])];
    return [{ section, name: task[1]!, from, to, isWall: task[2] !== undefined }];
  });
}
