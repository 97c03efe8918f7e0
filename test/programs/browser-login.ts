// Logs in at each URL, one after the other, as from a terminal whose user only looks at the browser. Tells how each
// ended. OAUTH is the field of that name in the configuration.

import { ScriptedPerson } from '../../chapters/17-the-gate/person.ts';
import { openBrowser } from '../../chapters/19-the-terminal/person-at-terminal.ts';
import { throughBrowserOf } from '../../chapters/21-authorization/browser.ts';
import { Logins } from '../../chapters/21-authorization/login.ts';
import { TokenStore } from '../../chapters/21-authorization/tokens.ts';
import { McpConnection, type McpError } from '../../mcp.ts';

const [home = '', ...urls] = process.argv.slice(2);
const oauth = JSON.parse(process.env.OAUTH ?? '{}');
const silence = () => new Promise<undefined>(() => {});
const user = new ScriptedPerson(
  urls.map(() => silence),
  openBrowser,
);
const openUserAgent = throughBrowserOf(user, new AbortController().signal);
const { transports } = new Logins({ store: new TokenStore({ home }), openUserAgent });
for (const url of urls) {
  const connection = new McpConnection('demo', { type: 'http', url, oauth }, { transports });
  try {
    await connection.connect();
    await connection.initialize();
    console.log(JSON.stringify({ kind: 'done' }));
  } catch (error) {
    console.log(
      JSON.stringify({ kind: (error as McpError).kind, message: (error as Error).message }),
    );
  }
  await connection.close();
}
