// Two processes of a server behind a real nginx, which gives each request to the next one. Debian: nginx-light.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Json } from '../../mcp.ts';
import { folder, later, pause } from './basics.ts';

const META = 'io.modelcontextprotocol/';
export const SINCE = '2026-07-28';

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

export async function startNginx(ports: number[]): Promise<string> {
  const place = folder().replaceAll(' ', '\\ ');
  const home = place.replaceAll('\\ ', ' ');
  mkdirSync(join(home, 'logs'));
  const port = await freePort();
  const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path temp_${name};`,
  );
  const lines = [
    'daemon off; worker_processes 1; pid nginx.pid; error_log logs/error.log;',
    'events { worker_connections 512; }',
    `http { access_log off; ${own.join(' ')}`,
    `  upstream shelves { ${ports.map((each) => `server 127.0.0.1:${each};`).join(' ')} }`,
    `  server { listen 127.0.0.1:${port}; location / {`,
    '    proxy_pass http://shelves; proxy_http_version 1.1;',
    '    proxy_set_header Host $http_host; proxy_set_header Connection "";',
    '    add_header x-upstream $upstream_addr always; } } }',
  ];
  writeFileSync(join(home, 'nginx.conf'), lines.join('\n'));
  const child = spawn('nginx', ['-p', `${home}/`, '-c', 'nginx.conf', '-e', 'logs/start.log'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  later(async () => {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (said += text));
  child.on('error', (error) => (said += error.message));
  const isUp = () =>
    fetch(`http://127.0.0.1:${port}/health`).then(
      ({ status }) => status === 200,
      () => false,
    );
  while (!(await isUp())) {
    assert.equal(child.exitCode, null, said);
    assert.doesNotMatch(said, /ENOENT/);
    await pause(20);
  }
  return `http://127.0.0.1:${port}/mcp`;
}

export function secretFile(): string {
  const file = join(folder(), 'secret');
  writeFileSync(file, randomBytes(32).toString('hex'), { mode: 0o600 });
  return file;
}

/** Sends requests of the later era, and says which process has answered. */
export function poster(url: string, token: string, capabilities: Json = { elicitation: {} }) {
  return async (method: string, params: Json) => {
    const name = params.name ?? params.taskId;
    const _meta = {
      [`${META}protocolVersion`]: SINCE,
      [`${META}clientCapabilities`]: capabilities,
    };
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
        'mcp-protocol-version': SINCE,
        'mcp-method': method,
        ...(name ? { 'mcp-name': `${name}` } : {}),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
    });
    return {
      at: response.headers.get('x-upstream'),
      status: response.status,
      body: (await response.json()) as any,
    };
  };
}
