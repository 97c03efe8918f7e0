// One call of a tool, its result on stdout, and nothing else there.

import { asObject, now, type CallOptions, type Json, type McpConnection } from '../../mcp.ts';
import type { WantedCall } from './command-line/call-words.ts';
import { callArguments, findTool } from './calling.ts';
import { EXIT, Stop } from './exit.ts';
import type { Composition } from './host.ts';
import type { PlainScreen } from './more/plain-screen.ts';
import { talkTo, type Way } from './command-line/one-server.ts';

export function call(
  wanted: WantedCall,
  way: Way,
  screen: PlainScreen,
  prepare?: Composition['prepareArguments'],
): Promise<number> {
  return talkTo(wanted, way, screen, (connection, options) =>
    callTool(connection, wanted, screen, { ...options, prepare, keep: way.keep }),
  );
}

type Options = CallOptions & Pick<Way, 'keep'> & { prepare?: Composition['prepareArguments'] };

async function callTool(
  connection: McpConnection,
  wanted: WantedCall,
  screen: PlainScreen,
  { signal, prepare, keep }: Options,
): Promise<number> {
  const { server, tool: name, isJson, isData } = wanted;
  let latest: Json = {};
  if (process.stderr.isTTY) {
    const { inSeconds, progressLine } = await import('./show.ts');
    const startedAt = now();
    const time = () => inSeconds(now() - startedAt);
    screen.spin(() => [progressLine(name, time(), latest, process.stderr.columns)]);
  }
  const options: CallOptions = { signal, onProgress: (progress) => (latest = progress) };
  await connection.connect();
  await connection.initialize();
  const tools = await connection.listTools();
  keep?.({ server: connection.server!, tools });
  const tool = findTool(name, tools, server);
  const args = await callArguments(wanted, tool, wanted.isChecked ? prepare : undefined);
  if (isJson) {
    const result = await connection.request('tools/call', { name, arguments: args }, options);
    screen.printJson(JSON.stringify(result));
    return result.isError === true ? EXIT.failed : EXIT.done;
  }
  const result = await connection.callTool(name, args, options);
  if (wanted.save !== undefined) await saveAll(result.content, wanted.save, screen);
  const { text, isError, structuredContent } = result;
  if (isData && !isError) return printData(structuredContent, name, screen);
  const line = text.replace(/\r?\n$/, ''); // print() ends it
  if (isError) screen.say(line, 'red');
  else if (text !== '') screen.print(line);
  const data = structuredContent === undefined ? '' : JSON.stringify(structuredContent, null, 2);
  if (process.stdout.isTTY && data && !isSameData(text, data)) screen.say(data, 'dim');
  return isError ? EXIT.failed : EXIT.done;
}

function printData(data: unknown, tool: string, screen: PlainScreen): number {
  if (data === undefined)
    throw new Stop(EXIT.failed, `${tool} has answered without structured content`, 'empty');
  screen.printJson(JSON.stringify(data));
  return EXIT.done;
}

/** Many servers answer twice: with data, and with its JSON as text. */
function isSameData(text: string, data: string): boolean {
  const bare = (json: string) => json.replace(/\s+/g, '');
  return bare(text) === bare(data);
}

/** Pictures, sounds and files, under names of ours. */
async function saveAll(content: unknown[], folder: string, screen: PlainScreen): Promise<void> {
  const { saveBlob } = await import('../16-hands/results.ts');
  for (const block of content.map(asObject)) {
    const data = block.data ?? asObject(block.resource).blob;
    if (typeof data === 'string') screen.say(saveBlob(`${block.type}`, data, block, folder));
  }
}
