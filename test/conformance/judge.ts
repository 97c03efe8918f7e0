// The client that the official suite judges: ours, and a little program on top that does what a scenario wants done.
// The suite starts it with the address of its server as last argument. It is not told which revision that server
// speaks, and has to find out from the wire; whatever goes wrong ends it with a code other than 0.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Gate, Roots, Trust } from '../../agent.ts';
import { LineByLine } from '../../chapters/17-the-gate/person.ts';
import type { OAuthConfig } from '../../chapters/21-authorization/clients.ts';
import { Logins } from '../../chapters/21-authorization/login.ts';
import { declareGrant } from '../../chapters/21-authorization/machines.ts';
import type { OpenUserAgent } from '../../chapters/21-authorization/oauth.ts';
import { TokenStore } from '../../chapters/21-authorization/tokens.ts';
import { inBothEras } from '../../chapters/22-no-handshake/era.ts';
import { doze, type Pause } from '../../chapters/20-streamable-http/pause.ts';
import { Skills } from '../../chapters/24-more-than-tools/skills.ts';
import {
  asObject,
  McpConnection,
  type Extension,
  type Handler,
  type Json,
  type Tool,
} from '../../mcp.ts';

const { MCP_CONFORMANCE_SCENARIO: scenario = '', MCP_CONFORMANCE_CONTEXT: context = '{}' } =
  process.env;

// It forgives a client that fails after some scenarios, and our own run does not.
const { JUDGE_REPORT: report } = process.env;
process.on('exit', (code) => report && writeFileSync(report, `${code}`));

// The suite waits long for a client that hangs. It is no reason to stay alive: if nothing else is left, we leave.
setTimeout(() => assert.fail('the judge ran out of time'), 25_000).unref();

// And it runs forty of us at once: what looks like silence then may be a login under way.
const pause: Pause = (ms, signal) => doze(ms >= 1000 ? 10 * ms : ms, signal);

let meanwhile: () => Promise<unknown> = async () => {}; // what is done while a question is open

/** A user who accepts what a form proposes. */
const elicit: Handler = async ({ requestedSchema }) => {
  await meanwhile();
  const fields = Object.entries(asObject(asObject(requestedSchema).properties));
  const proposed = fields.map(([name, field]) => [name, asObject(field).default]);
  return {
    action: 'accept',
    content: Object.fromEntries(proposed.filter(([, value]) => value !== undefined)),
  };
};

const elicitation: Extension = () => ({
  capabilities: { elicitation: {} },
  handlers: { 'elicitation/create': elicit },
});

/** A browser whose user agrees to everything: the suite's authorization server redirects at once. */
const openUserAgent: OpenUserAgent = async () => ({
  redirectUri: 'http://127.0.0.1:33418/callback',
  go: async (url) => {
    const { headers } = await fetch(url, { redirect: 'manual' });
    return new URL(headers.get('location') ?? assert.fail('no redirect'));
  },
  close: () => {},
});

/** What a user would have written into the configuration of the server. */
function oauthConfig(): OAuthConfig {
  const given = JSON.parse(context);
  const { client_id: clientId, client_secret: clientSecret, private_key_pem: privateKey } = given;
  const known = { ...(clientId && { clientId }), ...(clientSecret && { clientSecret }) };
  if (/client-credentials/.test(scenario))
    return { ...known, ...(privateKey && { privateKey }), grant: 'client_credentials' };
  if (/wif/.test(scenario)) return { ...known, grant: 'workload', assertion: given.valid_jwt };
  const {
    idp_issuer: issuer,
    idp_client_id,
    idp_id_token: idToken,
    idp_token_endpoint: tokenEndpoint,
  } = given;
  if (idToken)
    return {
      ...known,
      grant: 'id-jag',
      idp: { issuer, clientId: idp_client_id, idToken, tokenEndpoint },
    };
  return { ...known, clientMetadataUrl: 'https://conformance-test.local/client-metadata.json' };
}

// In a folder of its own, and not to be kept: nobody has a login before the suite begins.
const home = mkdtempSync(join(tmpdir(), 'judge-'));
process.on('exit', () => rmSync(home, { recursive: true, force: true }));
const logins = new Logins({
  store: new TokenStore({ home }),
  openUserAgent,
  trustsAnyIssuer: true,
});

/** A user who lets the model work by every skill, with a home and a project of their own. */
class Agreeable extends LineByLine {
  readonly isThere = true;
  say(): void {}
  protected async readLine(): Promise<string> {
    return 'y';
  }
  protected launch(): boolean {
    return false;
  }
}
const agreeable = new Agreeable();
const trust = new Trust({ home, cwd: home, person: agreeable });
const roots = new Roots(home);
const skills = new Skills({
  person: agreeable,
  trust,
  roots,
  home,
  resultsFolder: home,
  warn: console.error,
});
const gate = new Gate({ roots, trust, person: agreeable });

const connection = new McpConnection(
  'suite',
  { type: 'http', url: process.argv.at(-1), oauth: oauthConfig() },
  {
    extensions: [declareGrant, elicitation, skills.extension, ...inBothEras({ pause })],
    transports: logins.transports,
    onWarning: console.error,
  },
);

async function call(name: string, args: Json): Promise<string> {
  const { text, isError } = await connection.callTool(name, args);
  assert.ok(!isError, `${name} failed: ${text}`);
  return text;
}

/** Arguments of the right types. */
function sample({ inputSchema }: Tool): Json {
  const values = new Map<unknown, unknown>([
    ['number', 2],
    ['integer', 2],
    ['boolean', true],
  ]);
  const fields = Object.entries(asObject(inputSchema.properties));
  return Object.fromEntries(
    fields.map(([name, field]) => [name, values.get(asObject(field).type) ?? 'text']),
  );
}

/** Whatever the server offers us is used: so a tool that must not be called must not have come through to here. */
async function useAll(tools: Tool[]): Promise<void> {
  for (const tool of tools) await call(tool.name, sample(tool));
}

/** As a model does it: the gate first, and then the row. */
async function useSkill(args: Json): Promise<unknown> {
  const row = skills.row();
  const { signal } = new AbortController();
  const verdict = await gate.check(row, args, signal);
  assert.ok(verdict.allowed, 'the user agrees');
  return row.run(args, { signal, onProgress: () => {} });
}

/** Its text is not what its entry says. So it is not loaded, and its other file cannot be read. */
async function refuseSkill(why: RegExp): Promise<void> {
  await skills.ready();
  const [{ label } = assert.fail('no skill is listed')] = skills.all();
  await assert.rejects(useSkill({ name: label }), why);
  await assert.rejects(useSkill({ name: label, file: 'references/FORMS.md' }), /is not loaded/);
}

const scenarios: Record<string, (tools: Tool[]) => Promise<unknown>> = {
  'http-custom-headers': async () => {
    for (const { name, arguments: args } of JSON.parse(context).toolCalls) await call(name, args);
  },
  'http-invalid-tool-headers': async (tools) => {
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['valid_tool'],
    );
    await useAll(tools);
  },
  'http-standard-headers': async (tools) => {
    await useAll(tools);
    const { resources } = (await connection.request('resources/list')) as { resources: Json[] };
    for (const { uri } of resources) await connection.request('resources/read', { uri });
    const { prompts } = (await connection.request('prompts/list')) as { prompts: Json[] };
    for (const { name } of prompts) await connection.request('prompts/get', { name });
  },
  'json-schema-2020-12-preservation': async (tools) => {
    const tool = tools.find(({ name }) => name === 'json_schema_2020_12_tool');
    await call('json_schema_echo', { schema: tool?.inputSchema });
  },
  'json-schema-ref-no-deref': async (tools) => assert.equal(tools.length, 1), // it can be listed, but not called
  'request-metadata': () => connection.request('tools/list'), // the server says it has no tools, but this asks it
  'sep-2640-client-no-prefetch': async () => {
    await skills.ready();
    assert.equal(skills.all().length, 1); // it is listed; no model wants it
  },
  'sep-2640-client-verify-digest': () => refuseSkill(/its digest is sha256:/),
  'sep-2640-client-verify-size': () => refuseSkill(/bytes, not/),
  'sep-2640-client-verify-frontmatter': () => refuseSkill(/SKILL.md says of "description"/),
  'sep-2322-client-request-state': async () => {
    meanwhile = () => call('test_mrtr_unrelated', {});
    assert.equal(await call('test_mrtr_echo_state', {}), 'echo-state-ok');
    assert.equal(await call('test_mrtr_no_state', {}), 'no-state-ok');
    assert.equal(await call('test_mrtr_no_result_type', {}), 'no-result-type-test-ok');
  },
};

await connection.connect();
await connection.initialize();
await (scenarios[scenario] ?? useAll)(await connection.listTools());
await connection.close();
