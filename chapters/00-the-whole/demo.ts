// Chapter 0: a good day of the client in one file, and then its bad ones, each in a process of its own.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chat, McpConnection, McpManager, type Model } from './whole.ts';

const CALCULATOR = { command: 'node', args: [resolve('fixtures/server.mjs')] };

/** A stand-in for a model: it adds what the prompt wants, and reads out what comes. */
const model: Model = async (turns) => {
  const { role, text } = turns.at(-1)!;
  if (role === 'tool') return { role: 'model', text: `The sum is: ${text}` };
  const [, a = '', b = ''] = /add (\w+) and (\w+)/.exec(text) ?? [];
  const number = (word: string) => (/^\d+$/.test(word) ? Number(word) : word);
  return {
    role: 'model',
    text: '',
    call: { name: 'mcp__calc__add', args: { a: number(a), b: number(b) } },
  };
};

/** A conversation in a folder whose `.mcp.json` has this server. */
async function talk(server: object, prompt: string): Promise<void> {
  const cwd = mkdtempSync(join(tmpdir(), 'whole '));
  writeFileSync(join(cwd, '.mcp.json'), JSON.stringify({ mcpServers: { calc: server } }));
  const mcp = new McpManager({ home: cwd, cwd });
  rmSync(cwd, { recursive: true });
  await mcp.loadAndConnect();
  console.log(await chat(model, mcp, prompt));
  await mcp.disconnectAll();
}

const script = (code: string) => ({ command: 'node', args: ['-e', code] });
const START = `require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  const say = (result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
  if (method === 'initialize') say({ protocolVersion: '2025-11-25', capabilities: {} });
  if (method === 'tools/list') say({ tools: [{ name: 'add', inputSchema: {} }] });`;

/** What a day is called, and what is different about it. */
const days: Record<string, () => Promise<void>> = {
  'the command is misspelled': () => talk({ command: 'nodde' }, 'add 2 and 40'),
  'the server greets us on stdout': () =>
    talk(script(`console.log('Calculator ready.');${START} })`), 'add 2 and 40'),
  'the tool never answers': () => talk(script(`${START} })`), 'add 2 and 40'),
  'the server crashes in the call': async () => {
    const crash = `${START} if (method === 'tools/call') process.exit(1) })`;
    const connection = new McpConnection('calc', script(crash));
    await connection.connect();
    await connection.initialize();
    console.log('The sum is:', await connection.callTool('add', { a: 2, b: 40 }));
  },
  'the tool fails': () => talk(CALCULATOR, 'add two and 40'),
  'all is well, and the answer is there': async () => {
    await talk(CALCULATOR, 'add 2 and 40');
    const left = process.getActiveResourcesInfo().filter((each) => each === 'Timeout');
    console.log(`what keeps the program from ending: ${left.length} timer of 15 s`);
  },
  'the command is misspelled, and we hang up at once': async () => {
    const connection = new McpConnection('calc', { command: 'nodde' });
    await connection.connect();
    const { child } = connection as any;
    // Not for real: it could reach any process of yours. The page says which ones it reached of mine.
    child._handle.kill = (signal: number) => {
      console.log(`signal ${signal} leaves, for the pid ${child.pid}`);
      return 0;
    };
    await connection.close();
  },
};

const [, , day] = process.argv;
const isDay = day !== undefined && day in days;
if (isDay)
  void days[day]!().then(() => process.exit(0)); // or the timers would keep each for 15 s
else {
  console.log('> add 2 and 40');
  await talk(CALCULATOR, 'add 2 and 40');
  for (const report of await Promise.all(Object.keys(days).map(runDay))) console.log(report);
}

/** Runs a day, and tells the lines that matter and how the program ended. One that would wait without an end is ended. */
function runDay(name: string): Promise<string> {
  const program = fileURLToPath(import.meta.url);
  const child = spawn(process.execPath, [...process.execArgv, program, name], { detached: true });
  let output = '';
  const hear = (text: Buffer) => (output += text);
  child.stdout.on('data', hear);
  child.stderr.on('data', hear);
  const isWaiting = /never answers/.test(name);
  const timer = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), isWaiting ? 2000 : 60_000);
  return new Promise((done) => {
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      const lines = output
        .split('\n')
        .filter((line) => /^(\w*Error:|The sum|what keeps|signal)/.test(line));
      const end = signal ? 'it still waits' : `the program ended with code ${code}`;
      done([`\n${name}:`, ...lines, end].join('\n  '));
    });
  });
}
