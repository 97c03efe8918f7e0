// Chapter 21.1: the simplest login. The browser is one fetch of a user who agrees to everything.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { McpConnection } from '../../mcp.ts';
import { Logins } from './login.ts';

async function start(...args: string[]): Promise<string> {
  const child = spawn('node', args, { stdio: ['pipe', 'pipe', 'inherit'] });
  return `${(await once(child.stdout, 'data'))[0]}`.trim();
}
const issuer = await start('fixtures/authorization.mjs');
const url = await start('fixtures/remote.mjs', 'http', '--login', issuer);

const go = async (page: URL) => {
  console.log(`→ the browser: GET http://login${page.pathname}`);
  for (const name of page.searchParams.keys()) console.log(`    ${name}`);
  const { status, headers } = await fetch(page, { redirect: 'manual' });
  const answer = new URL(headers.get('location')!);
  console.log(`← ${status} to ${answer.origin}${answer.pathname}`);
  for (const name of answer.searchParams.keys()) console.log(`    ${name}`);
  return answer;
};
const redirectUri = 'http://127.0.0.1:7777/callback';
const openUserAgent = async () => ({ redirectUri, go, close: () => {} });

const { transports } = new Logins({ openUserAgent });
const connection = new McpConnection('calculator', { type: 'http', url }, { transports });
await connection.connect();
const { text } = await connection.callTool('add', { a: 2, b: 40 });
console.log('  =', text);
