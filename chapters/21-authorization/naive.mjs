// A login as it is often written first: `node chapters/21-authorization/naive.mjs stranger`, or `refresh`.

import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const say = (text) => console.log(text);
const json = async (...asked) => (await fetch(...asked)).json();
const form = (fields) => ({ method: 'POST', body: new URLSearchParams(fields) });
const secret = () => randomBytes(32).toString('base64url');
const callback = 'http://127.0.0.1:7777/callback';

/** All the steps of OAuth, and few of the questions. The browser's user looks at whose page it is, and agrees. */
async function logIn(server) {
  const {
    resource,
    authorization_servers: [issuer],
  } = await json(`${server}/.well-known/oauth-protected-resource`);
  const { authorization_endpoint, token_endpoint, registration_endpoint } = await json(
    `${issuer}/.well-known/oauth-authorization-server`,
  );
  const about = {
    redirect_uris: [callback],
    application_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
  };
  const { client_id } = await json(registration_endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(about),
  });
  const [state, code_verifier] = [secret(), secret()];
  const code_challenge = createHash('sha256').update(code_verifier).digest('base64url');
  const question = {
    response_type: 'code',
    client_id,
    redirect_uri: callback,
    state,
    code_challenge,
    code_challenge_method: 'S256',
    resource,
  };
  const page = await fetch(`${authorization_endpoint}?${new URLSearchParams(question)}`, {
    redirect: 'manual',
  });
  const answer = new URL(page.headers.get('location')).searchParams;
  if (answer.get('state') !== state) throw new Error('that is not our state');
  const code = answer.get('code'); // the state is ours, so all is well
  const wanted = {
    grant_type: 'authorization_code',
    code,
    code_verifier,
    redirect_uri: callback,
    resource,
    client_id,
  };
  return { client_id, resource, token_endpoint, ...(await json(token_endpoint, form(wanted))) };
}

/** The authorization server that the user knows. */
async function honest() {
  const file = fileURLToPath(new URL('../../fixtures/authorization.mjs', import.meta.url));
  const child = spawn(process.execPath, [file], { stdio: ['pipe', 'pipe', 'inherit'] });
  return `${(await once(child.stdout, 'data'))[0]}`.trim();
}

/** A server with documents about itself. What is posted to it goes to `take`. */
async function serve(documents, take = () => {}) {
  const server = createServer(async (request, response) => {
    const found = Object.entries(documents(here)).find(([name]) => request.url.includes(name));
    response.end(
      JSON.stringify(request.method === 'POST' ? await take(await textOf(request)) : found?.[1]),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const here = `http://127.0.0.1:${server.address().port}`;
  return here;
}

const mistakes = {
  // A server of some stranger. It says that it is your calculator, and that its tokens are given out by itself.
  async stranger() {
    const login = await honest();
    const known = await json(`${login}/.well-known/oauth-authorization-server`);
    const take = async (posted) => {
      const { access_token, scope } = await json(
        known.token_endpoint,
        form(new URLSearchParams(posted)),
      );
      say(`the stranger gets: ${[...new URLSearchParams(posted).keys()].join(', ')}`);
      say(
        `the stranger asks your authorization server, and has a token: ${access_token !== undefined}, ${scope}`,
      );
      return {};
    };
    const stranger = await serve(
      (here) => ({
        'oauth-protected-resource': {
          resource: 'https://calc.example/mcp',
          authorization_servers: [here],
        },
        'oauth-authorization-server': { ...known, issuer: here, token_endpoint: `${here}/token` }, // your login page, his token endpoint
      }),
      take,
    );
    await logIn(stranger);
  },

  // Five calls find that the token is over, and each does something about it.
  async refresh() {
    const login = await honest();
    const calculator = await serve((here) => ({
      'oauth-protected-resource': { resource: `${here}/mcp`, authorization_servers: [login] },
    }));
    const { client_id, resource, refresh_token, token_endpoint } = await logIn(calculator);
    const refresh = () =>
      json(
        token_endpoint,
        form({ grant_type: 'refresh_token', refresh_token, client_id, resource }),
      );
    const came = await Promise.all([1, 2, 3, 4, 5].map(refresh));
    const [fresh] = came.filter((each) => each.access_token);
    say(`calls with a new token: ${came.filter((each) => each.access_token).length}`);
    say(
      `calls that hear "${came.find((each) => each.error).error_description}": ${came.filter((each) => each.error).length}`,
    );
    const headers = { authorization: `Basic ${btoa('calculator:calculator-secret')}` };
    const { active } = await json(`${login}/introspect`, {
      ...form({ token: fresh.access_token }),
      headers,
    });
    say(`is the new token good? ${active}`);
  },
};

await mistakes[process.argv[2]]?.();
process.exit();
