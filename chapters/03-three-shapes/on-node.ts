// on-node.ts: what a program on Node brings to a connection. A web page brings its own.

import { setMaxListeners } from 'node:events';
import { positive } from '../01-a-pipe/messages.ts';
import { StdioTransport } from '../01-a-pipe/stdio.ts';
import type { TransportFactory } from '../01-a-pipe/transport.ts';
import { STDIO_WORDS } from '../12-three-files/entry.ts';
import type { ConnectionOptions } from '../../mcp.ts';

const stdio: TransportFactory = (...given) => new StdioTransport(...given);
stdio.words = STDIO_WORDS;

export function onNode<Options extends ConnectionOptions>(options: Options): Options {
  return {
    ...options,
    transports: { stdio, ...options.transports },
    onWarning: options.onWarning ?? warnOnStderr,
    handshakeTimeoutMs: options.handshakeTimeoutMs ?? limitIn('MCP_TIMEOUT'),
    callTimeoutMs: options.callTimeoutMs ?? limitIn('MCP_TOOL_TIMEOUT'),
    expectListeners: (signal) => setMaxListeners(0, signal),
  };
}

/** The default for warnings. A server may have chosen the words, so no control character reaches
 *  the terminal. */
function warnOnStderr(warning: string): void {
  process.stderr.write(`${warning.replace(/[^\P{C}\n]/gu, '\ufffd')}\n`);
}

const limitIn = (name: string) => positive(Number(process.env[name]));
