// Ours against ours, in one process, interleaved: what extensions cost, and how the manager grows.
// It prints one line of JSON.   node ours.mjs '{ "modules": { "mcp": "file:///…", … }, "server": ["…"] }'

const order = JSON.parse(process.argv[2]);
const { McpConnection, McpManager } = await import(order.modules.mcp);
const { compose } = await import(order.modules.composition);
const { plainHost } = await import(order.modules.host);
const { inProcess } = await import(order.modules.inProcess);

const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

// ─── 200 calls in flight over stdio, with all extensions of the program and without any ──────────

const { extensions } = compose(plainHost());
const config = { command: process.execPath, args: order.server };
const connections = [];
for (const options of [{ extensions }, {}]) {
  const connection = new McpConnection('heavy', config, options);
  await connection.connect();
  await connection.initialize();
  connections.push(connection);
}
const burst = async (connection) => {
  const startedAt = performance.now();
  for (let n = 0; n < 20; n++) {
    const calls = Array.from({ length: 200 }, () => connection.callTool('echo', { text: 'x' }));
    await Promise.all(calls);
  }
  return performance.now() - startedAt;
};
const times = [[], []];
for (let round = 0; round < 20; round++) {
  for (const [n, connection] of connections.entries()) times[n].push(await burst(connection));
}
const [withAll, without] = times.map((each) => (median(each.slice(3)) / 4000) * 1000); // µs a call
await Promise.all(connections.map((connection) => connection.close()));

// ─── The manager: 100 servers of 50 tools, and 1,000 of them ─────────────────────────────────────

const tools = Array.from({ length: 50 }, (_, n) => ({
  name: `tool-${n}`,
  inputSchema: { type: 'object' },
}));
const results = {
  initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} } },
  'tools/list': { tools },
};
const serve = (transport) => {
  const message = ({ id, method }) =>
    id !== undefined && transport.send({ jsonrpc: '2.0', id, result: results[method] });
  void transport.start({ message, closed() {} });
};
const manage = async (count) => {
  const entries = Array.from({ length: count }, (_, n) => {
    const name = `server-${n}`;
    const entry = {
      name,
      config: { type: 'in-process', name: 'fifty' },
      file: '',
      scope: 'test',
      authority: 'user',
    };
    return [name, entry];
  });
  const transports = { 'in-process': inProcess({ fifty: serve }) };
  const manager = new McpManager({ load: () => new Map(entries), transports });
  const startedAt = performance.now();
  await manager.loadAndConnect();
  const found = manager.getToolDefinitions().length;
  const ms = performance.now() - startedAt;
  await manager.disconnectAll();
  if (found !== count * 50) throw new Error(`${found} tools of ${count} servers`);
  return (ms / count) * 1000; // µs a server
};
const few = [];
const many = [];
for (let round = 0; round < 5; round++) {
  few.push(await manage(100));
  many.push(await manage(1000));
}
console.log(
  JSON.stringify({ withAll, without, few: median(few.slice(1)), many: median(many.slice(1)) }),
);
