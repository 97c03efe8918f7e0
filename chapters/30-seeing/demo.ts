// Chapter 30: a conversation is written down, played back as a server, and judged.

import { existsSync } from 'node:fs';
import { McpConnection, textOf, type ConnectionOptions, type Json } from '../../mcp.ts';

if (!existsSync(new URL('more/read-trace.ts', import.meta.url))) {
  console.log('A conversation is over when it is over: what was said is gone.');
  process.exit();
}
const { readTrace } = await import('./more/read-trace.ts');
const { replayTransport } = await import('./replay-wires.ts');
const { checkTrace } = await import('./check.ts');

const lines: string[] = [];
const write = (record: Json) => lines.push(JSON.stringify(record));

async function converse(config: Json, options: ConnectionOptions, sums: number[][]): Promise<void> {
  const connection = new McpConnection('calculator', config, options);
  await connection.connect();
  await connection.initialize();
  await connection.listTools();
  const adding = sums.map(async ([a, b]) => {
    const answer = await connection.callTool('add', { a, b }).then(({ text }) => text, textOf);
    console.log(`  ${a} + ${b} = ${answer}`);
  });
  await Promise.all(adding);
  await connection.close();
}

console.log('A conversation, written down:');
write({ trace: 1, program: 'a demo' });
let at = 0;
const onWire = (dir: string, msg: unknown) => write({ at: at++, dir, server: 'calculator', msg });
const real = { command: 'node', args: ['fixtures/server.mjs'] };
await converse(real, { onWire }, [
  [2, 40],
  [1, 1],
]);
for (const line of lines.slice(-2)) console.log(line);

const recording = readTrace(lines.join('\n'));
const transports = { replay: () => replayTransport(recording, 'calculator') };

console.log('\nThe same client, with the recording in the place of the server:');
await converse({ type: 'replay' }, { transports }, [
  [1, 1],
  [2, 40],
]);

console.log('\nSomething that was not recorded:');
await converse({ type: 'replay' }, { transports }, [[2, 41]]);

console.log('\nThe recording, judged:');
console.log(`  ${checkTrace(recording).length} findings`);

console.log('\nThe last answer comes twice, and one argument is a text:');
const doctored = lines.map((line) => line.replace('"a":2', '"a":"2"'));
const judged = checkTrace(readTrace([...doctored, doctored.at(-1)].join('\n')));
for (const { line, who, text, rule } of judged) {
  console.log(`  line ${line}: the ${who}: ${text} [${rule}]`);
}
