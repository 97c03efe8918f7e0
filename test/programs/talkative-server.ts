// A server on stdio whose tool logs with console.log and console.dir, as a careless dependency would.

import { serveStdio } from '../../chapters/29-a-server/pipe.ts';
import { McpServer } from '../../chapters/29-a-server/server.ts';

const echo = {
  name: 'echo',
  description: 'Says it again.',
  run: ({ text }: { text?: unknown }) => {
    console.log('echo was called');
    console.dir({ with: text }); // not by way of console.log
    return `${text}`;
  },
};
await serveStdio(new McpServer({ name: 'talkative', version: '1.0.0', tools: [echo] }));
process.exit();
