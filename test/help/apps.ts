// Apps as a chat has them, without the chat: a real gate, a real server, and whoever answers the questions.

import { join } from 'node:path';
import { Gate, Roots, Trust } from '../../agent.ts';
import { ScriptedPerson, type PersonAnswer } from '../../chapters/17-the-gate/person.ts';
import { gateRules } from '../../chapters/19-the-terminal/program.ts';
import { inBothEras } from '../../chapters/22-no-handshake/era.ts';
import { inOrder } from '../../chapters/28-a-thousand-tools/order.ts';
import { preparedArguments } from '../../chapters/28-a-thousand-tools/tool-arguments.ts';
import type { App } from '../../chapters/31-apps/app.ts';
import { Apps, type AnswerPage } from '../../chapters/31-apps/all-apps.ts';
import { McpConnection, type Json } from '../../mcp.ts';
import { folder, later, root, until } from './basics.ts';

type Given = {
  answers?: PersonAnswer[];
  deny?: string[];
  allow?: string[];
  config?: Json; // of the server, besides its command
  name?: string;
  answerPage?: AnswerPage;
  progressMs?: number;
};

export type AppsOfTest = Awaited<ReturnType<typeof appsWith>>;

/** A server that has apps, and the program around it. */
export async function appsWith(command: string[], given: Given = {}) {
  const {
    answers = [],
    deny = [],
    allow = [],
    config,
    name = 'server',
    answerPage,
    progressMs,
  } = given;
  const home = folder();
  const warnings: string[] = [];
  const warn = (text: string) => void warnings.push(text);
  const person = new ScriptedPerson(answers, () => true);
  const roots = new Roots(folder(), [], [join(home, 'results')]);
  const trust = new Trust({ home, cwd: home, warn, person });
  const rules = gateRules({ allow, deny }, { tools: [], warn }, []);
  const gate = new Gate({ roots, trust, person, rules });
  const trace: any[] = [];
  const prompts: [text: string, isDraft: boolean][] = [];
  const apps = new Apps({
    person,
    trust,
    warn,
    gate: gate.check,
    prepareArguments: preparedArguments,
    prompt: (...prompt) => void prompts.push(prompt),
    trace: (record) => void trace.push(structuredClone(record)),
    answerPage,
    progressMs,
  });
  const wire: any[] = [];
  const connection = new McpConnection(
    name,
    { command: process.execPath, args: command, ...config },
    {
      extensions: [apps.extension, ...inBothEras({ inside: [inOrder] })],
      onWire: (dir, message) => void wire.push([dir, structuredClone(message)]),
    },
  );
  later(() => connection.close());
  await connection.connect();
  await connection.initialize();
  const tools = await connection.listTools();
  /** As the model's calls are made: with the tool as it was seen. */
  const call = (tool: string, args: Json = {}) =>
    connection.callTool(tool, args, { tool: tools.find((each) => each.name === tool) });
  /** The app of the next call. */
  const open = async (tool: string, args?: Json): Promise<App> => {
    const before = apps.list.length;
    await call(tool, args);
    await until(() => apps.list.length > before || before === 10, 'an app');
    return apps.list.at(-1)!;
  };
  const messages = (dir: 'in' | 'out', method?: string) =>
    trace
      .filter((record) => record.dir === dir && (!method || record.msg.method === method))
      .map(({ msg }) => msg);
  return {
    apps,
    connection,
    tools,
    call,
    open,
    person,
    trust,
    gate,
    trace,
    messages,
    prompts,
    warnings,
    wire,
  };
}

export const fixture = (name: string) => join(root, 'fixtures', name);

/** The page of an app, played without a browser: it carries what is put in, and keeps what comes. */
export async function played(app: App, room: Json = { theme: 'dark', width: 800, height: 600 }) {
  const orders: any[] = [];
  app.carry = (order) => void orders.push(structuredClone(order));
  await app.begin(room);
  const heard = () => orders.filter((order) => 'app' in order).map((order) => order.app);
  const say = (message: Json) => app.hear({ jsonrpc: '2.0', ...message });
  let lastId = -1;
  const request = async (method: string, params?: Json): Promise<any> => {
    const id = ++lastId;
    say({ id, method, params });
    const answer = () => heard().find((message) => message.id === id && !message.method);
    await until(answer, `an answer to ${method}`);
    return answer();
  };
  const shakeHands = async (availableDisplayModes = ['inline', 'fullscreen']) => {
    const params = {
      appInfo: { name: 'played', version: '1' },
      appCapabilities: { availableDisplayModes },
      protocolVersion: '2026-01-26',
    };
    const { result } = await request('ui/initialize', params);
    say({ method: 'ui/notifications/initialized' });
    return result;
  };
  return { orders, heard, say, request, shakeHands };
}
