// A server in this process that answers a call when the test says so: what is under way at the same time can be seen
// without a clock.

import { builtIn } from '../../chapters/25-other-pipes/in-process.ts';
import type { Json, Message, TransportFactory } from '../../mcp.ts';

export type Heard = {
  name: string;
  args: Json;
  meta: unknown; // its _meta
  answer: (text?: string, more?: Json) => void;
  isCancelled: boolean;
};

export type HeldServer = {
  factory: TransportFactory;
  heard: Heard[]; // every call, in the order of their coming
  open: () => Heard[]; // those that are not answered yet
  most: () => number; // so many were open at the same time
  starts: () => number; // how often it was started
  hangUp: () => Promise<void>;
};

const described = (name: string) => ({
  name,
  description: `The tool ${name}.`,
  inputSchema: { type: 'object' },
});

/** `isQuick`: it answers at once, with the arguments. */
export function heldServer(
  tools: (string | Json)[] = ['write'],
  { isQuick = false, instructions = '' } = {},
): HeldServer {
  const heard: (Heard & { id: unknown; isOpen: boolean })[] = [];
  let most = 0;
  let starts = 0;
  let hangUp = async () => {};
  const isOpen = (each: { isOpen: boolean }) => each.isOpen;
  const factory = builtIn((transport) => {
    starts++;
    hangUp = () => transport.close();
    const send = (message: Json) =>
      void transport.send({ jsonrpc: '2.0', ...message } as Message).catch(() => {});
    const methods: Record<string, (params: Json) => Json> = {
      initialize: ({ protocolVersion }) => ({
        protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'held', version: '1' },
        ...(instructions && { instructions }),
      }),
      'tools/list': () => ({
        tools: tools.map((tool) =>
          typeof tool === 'string' ? described(tool) : { ...described(`${tool.name}`), ...tool },
        ),
      }),
    };
    const called = (id: unknown, { name, arguments: args, _meta: meta }: Json) => {
      const answer = (text = 'ok', more: Json = {}) => {
        call.isOpen = false;
        send({ id, result: { content: [{ type: 'text', text }], ...more } });
      };
      const call = {
        id,
        name: `${name}`,
        args: args as Json,
        meta,
        answer,
        isOpen: true,
        isCancelled: false,
      };
      heard.push(call);
      most = Math.max(most, heard.filter(isOpen).length);
      if (isQuick) answer(JSON.stringify(args));
    };
    void transport.start({
      message: (message) => {
        const { id, method, params = {} } = message as Message;
        const cancelled = heard.find(
          (call) => method === 'notifications/cancelled' && call.id === params.requestId,
        );
        if (cancelled) Object.assign(cancelled, { isCancelled: true, isOpen: false });
        if (id === undefined) return;
        if (method === 'tools/call') return called(id, params);
        const result = methods[method!]?.(params);
        send(result ? { id, result } : { id, error: { code: -32601, message: 'no such method' } });
      },
      closed: () => {},
    });
  });
  return {
    factory,
    heard,
    open: () => heard.filter(isOpen),
    most: () => most,
    starts: () => starts,
    hangUp: () => hangUp(),
  };
}
