// own.ts: a program of your own. It is ours, and four rows more. Run it: npx tsx chapters/own.ts

import { compose } from './composition.ts';
import { main } from './19-the-terminal/main.ts';
import { UnixSocketTransport } from './25-other-pipes/unix-socket.ts';
import type { Compose } from './19-the-terminal/host.ts';

const own: Compose = (host) => {
  const { transports, extensions, tools, commands, ...rest } = compose(host);
  const clock = { name: 'clock', description: 'Tells the time.', inputSchema: { type: 'object' } };
  const time = () => new Date().toTimeString();
  return {
    ...rest,
    transports: { ...transports, unix: (...given) => new UnixSocketTransport(...given) },
    extensions: [
      function logs({ serverName }) {
        return {
          handlers: { 'notifications/message': ({ data }) => host.warn(`${serverName}: ${data}`) },
        };
      },
      ...extensions,
    ],
    tools: [
      ...tools,
      {
        definition: clock,
        readOnly: true,
        run: async () => ({ blocks: [{ type: 'text', text: time() }], isError: false }),
      },
    ],
    commands: {
      ...commands,
      time: { help: '/time', run: (_, { screen }) => screen.print(time()) },
    },
  };
};

await main(process.argv.slice(2), async () => own);
