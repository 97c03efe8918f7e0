// context-command.ts: /context: what the model's context is full of, as a table with a bar for each row.

import type { Agent } from '../../../agent.ts';
import {
  contextTable,
  NO_SERVER,
  partsIn,
  seenRequest,
  type ContextRow,
  type SeenRequest,
} from '../../18-minds/seen.ts';
import type { Command } from '../../19-the-terminal/host.ts';
import { cutToWidth } from '../../19-the-terminal/screen.ts';
import { bar } from '../../19-the-terminal/show.ts';
import { shownName } from '../../19-the-terminal/status.ts';

const MAX_NAME = 32; // columns
const MAX_BAR = 30;

export const contextCommand: Command = {
  help: "/context                  what the model's context is full of, and what was left out",
  run: async (_, { agent, screen }, signal) => {
    await agent.startUp.wait(signal);
    screen.print(contextLines(agent, screen.width - 1).join('\n'));
  },
};

/** Of the last request, as the model has counted it, and its answer. If none was counted, or the
 *  conversation is another one since, of the next request. */
function contextLines(agent: Agent, columns: number): string[] {
  const { model, request, counted, window } = agent;
  const isCounted = agent.context > 0 && request && counted;
  if (!isCounted) agent.tools.refresh();
  if (!isCounted) agent.tools.arrange();
  const seen = seenRequest(model, isCounted ? request : agent.nextRequest());
  const { rows, left, cached } = contextTable(seen, isCounted ? counted : undefined);
  const answer = { list: 'messages', of: 'last answer', count: 1, cached: 0 };
  if (isCounted) rows.push({ ...answer, tokens: counted.output });
  const used = rows.reduce((sum, { tokens }) => sum + tokens, 0);
  const how = isCounted
    ? `counted by ${model.name}, ${inFull(cached)} from its cache (▒); the parts are estimated shares`
    : 'an estimate: nothing was counted yet';
  return [
    `context: ${inFull(used)} tokens${window ? ` of ${inFull(window)}` : ''}`,
    ...(window ? [bar({ progress: used, total: window })] : []),
    how,
    ...rows.map((row) => rowLine(row, used, columns)),
    ...left.map(leftLine),
    ...(isCounted && agent.before ? [differenceLine(seen, seenRequest(model, agent.before))] : []),
  ];
}

/** What is there now and was not in the request before, and the other way round. */
function differenceLine(now: SeenRequest, before: SeenRequest): string {
  const added = partsMissingIn(before, now);
  const gone = partsMissingIn(now, before);
  const words = [added && `new: ${added}`, gone && `gone: ${gone}`].filter(Boolean);
  return `since the request before: ${words.join('; ') || 'the same'}`;
}

function partsMissingIn(there: SeenRequest, here: SeenRequest): string {
  const known = new Set(partsIn(there).map(({ json }) => JSON.stringify(json)));
  const missing = partsIn(here).filter(({ json }) => !known.has(JSON.stringify(json)));
  const tokens = missing.reduce((sum, { size }) => sum + size, 0);
  if (missing.length === 0) return '';
  const many = missing.length === 1 ? 'a part' : `${inFull(missing.length)} parts`;
  return `${many} of about ${inFull(tokens)} tokens`;
}

const inFull = (count: number) => count.toLocaleString('en');

function rowLine(row: ContextRow, used: number, columns: number): string {
  const { list, of, count, tokens, cached } = row;
  const size = inFull(tokens).padStart(9);
  const room = Math.min(MAX_NAME, columns - size.length);
  const width = Math.min(MAX_BAR, columns - room - size.length - 2);
  const whose = of === NO_SERVER ? 'ours' : shownName(of);
  const many = count > 1 ? `, ${count}` : '';
  const name = cutToWidth(list === 'tools' ? `tools of ${whose}` : of, room - many.length) + many;
  const upTo = (share: number) => Math.ceil((share * Math.max(0, width)) / used);
  const signs = '▒'.repeat(upTo(cached)).padEnd(upTo(tokens), '█');
  return `${name.padEnd(room)}${size}  ${signs}`.trimEnd();
}

function leftLine({ list, of, count, tokens }: ContextRow): string {
  const many = inFull(count);
  if (list === 'compaction') return `left out: ${many} turns; a summary is in their place`;
  if (list === 'budget') return `left out: ${many} characters of results of ${shownName(of)}`;
  const size = `about ${inFull(tokens)} tokens`;
  return `left out: ${many} tools of ${shownName(of)}, ${size}; find_tools loads them`;
}
