// Chapter 25.1: a server in our own process that tidies up its arguments, and one that leaves in the middle of a call.

import { existsSync } from 'node:fs';
import { McpConnection, textOf } from '../../mcp.ts';
import type { Json, Transport, TransportFactory } from '../../mcp.ts';

/** It adds, and uses the arguments as scratch paper. */
function toy(transport: Transport): void {
  const receive = async (message: unknown) => {
    const { id, method, params } = message as Json & { id: number; params: Json };
    const reply = (result: Json) => transport.send({ jsonrpc: '2.0', id, result });
    if (method === 'initialize')
      return reply({ protocolVersion: '2025-11-25', capabilities: { tools: {} } });
    if (method !== 'tools/call') return;
    if (params.name === 'leave') return transport.close();
    const args = params.arguments as { a: number; b?: number };
    args.a += args.b!;
    delete args.b;
    return reply({ content: [{ type: 'text', text: `${args.a}` }] });
  };
  void transport.start({ message: (message) => void receive(message), closed() {} });
}

const transports: Record<string, TransportFactory> = {};
if (existsSync(new URL('in-process.ts', import.meta.url))) {
  const { linkedPair } = await import('./in-process.ts');
  transports['in-process'] = () => {
    const [ours, theirs] = linkedPair();
    toy(theirs);
    return ours;
  };
}

const tell = (error: unknown) => console.log(`  ${textOf(error)}`);

try {
  const options = { transports, callTimeoutMs: 300 };
  const connection = new McpConnection('toy', { type: 'in-process' }, options);
  await connection.connect();
  await connection.initialize();

  console.log('The same call, twice:');
  const args = { a: 2, b: 40 };
  for (let n = 0; n < 2; n++) console.log(`  ${(await connection.callTool('add', args)).text}`);
  console.log(`  our arguments are ${JSON.stringify(args)} now`);

  console.log('\nThe server leaves in the middle of a call:');
  await connection.callTool('leave').catch(tell);
  await connection.close();
} catch (error) {
  tell(error);
}
