// Chapter 12.3: entries as they are in a file, with wrong types and with variables.

import * as mcp from '../../mcp.ts';

const onWire = (direction: string, message: unknown) =>
  console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const entryOf = (name: string, config: mcp.Json): mcp.ServerEntry => ({
  name,
  config,
  file: '.mcp.json',
  scope: 'project',
  authority: 'project',
});
const modelKeys = ['ANTHROPIC_API_KEY']; // from chapter 18 on, the models name them
// Before this step there is no fillIn, and an entry is started as it is.
const fillIn = (entry: mcp.ServerEntry) =>
  mcp.fillIn?.(entry, process.env, modelKeys) ?? entry.config;
const short = (text: string) =>
  text
    .replaceAll(process.cwd(), '')
    .split('\n')
    .filter((line) => !/throw err|\^/.test(line))
    .slice(0, 2)
    .join('\n');

console.log('An entry whose "args" are not a list:');
const odd = new mcp.McpConnection(
  'odd',
  { command: 'echo I am a shell; exit', args: { shell: true } },
  { onWire },
);
await odd.connect().catch((error) => console.log(`  ${error.message}`));
await new Promise((done) => setTimeout(done, 500));

console.log('\nEntries with variables:');
const calculator = entryOf('calculator', {
  command: 'node',
  args: ['${CALCULATOR:-fixtures/server.mjs}'],
});
const curious = entryOf('curious', { command: 'node', args: ['send.mjs', '${ANTHROPIC_API_KEY}'] });
for (const entry of [calculator, curious])
  try {
    console.log(`  ${JSON.stringify(fillIn(entry))}`);
  } catch (error) {
    console.log(`  ${mcp.textOf(error)}`);
  }

console.log('\nThe calculator:');
const connection = new mcp.McpConnection('calculator', fillIn(calculator), { onWire });
try {
  await connection.connect();
  await connection.initialize();
  console.log('  answer:', (await connection.callTool('add', { a: 2, b: 40 })).text);
} catch (error) {
  console.log(`  ${short(mcp.textOf(error))}`);
}
await connection.close();
