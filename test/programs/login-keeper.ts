// Keeps COUNT logins for servers named PREFIX0, PREFIX1, … in the store of HOME.

import { TokenStore } from '../../chapters/21-authorization/tokens.ts';

const [home = '', prefix = '', count = '0'] = process.argv.slice(2);
const store = new TokenStore({ home, warn: (text) => console.log(text) });
const issuer = 'https://as.example';
const rest = {
  url: 'https://mcp.example/',
  issuer,
  resource: 'https://mcp.example/',
  tokenEndpoint: `${issuer}/token`,
};
for (let n = 0; n < Number(count); n++) {
  const tokens = { access: `access-${prefix}${n}`, type: 'Bearer', scope: [] } as const;
  store.keep({
    ...rest,
    server: `${prefix}${n}`,
    client: { id: prefix, method: 'none' },
    tokens: { ...tokens, scope: [] },
  });
}
