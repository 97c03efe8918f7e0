// Calls a server with what is kept in a home folder: HOME URL NAME. It says "ready", and calls when its stdin says so.

import { once } from 'node:events';
import { Logins } from '../../chapters/21-authorization/login.ts';
import { TokenStore } from '../../chapters/21-authorization/tokens.ts';
import { McpConnection } from '../../mcp.ts';

const [home = '', url = '', name = ''] = process.argv.slice(2);
const logins = new Logins({ store: new TokenStore({ home }) });
const config = { type: 'http', url, headers: { 'x-program': name } };
const connection = new McpConnection('demo', config, { transports: logins.transports });
console.log('ready');
await once(process.stdin, 'data');
await connection.connect();
await connection.initialize();
console.log('answered', (await connection.callTool('echo', { by: name })).text);
await connection.close();
process.exit(0);
