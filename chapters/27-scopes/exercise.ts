// Judges exercise 27: which addresses does a pattern of a policy mean? Nothing is started and nothing is sent.

import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { addressMatcher } = await load('chapters/27-scopes/policy.ts');

  const tried = (pattern: string, address: string): string => {
    see('out', `${pattern} and ${address}`);
    const matches = addressMatcher(pattern);
    if (matches === undefined) return 'no pattern';
    return matches(new URL(address)) ? 'fits' : 'does not fit';
  };
  const fits = (what: string, pattern: string, ...addresses: string[]) =>
    all(what, 'fits', pattern, addresses);
  const differs = (what: string, pattern: string, ...addresses: string[]) =>
    all(what, 'does not fit', pattern, addresses);
  const all = async (what: string, wanted: string, pattern: string, addresses: string[]) => {
    for (const address of addresses)
      await expect(what, wanted, tried(pattern, address), (came) => came === wanted);
  };

  const every = 'https://mcp.good.example/*';
  await fits(
    'every path of a host',
    every,
    'https://mcp.good.example/',
    'https://mcp.good.example/a/b?c=d',
  );
  await differs('another host', every, 'https://mcp.evil.example/', 'https://xmcp.good.example/');
  await differs('a host that only begins so', every, 'https://mcp.good.example.evil.org/');
  await fits(
    'a pattern without a path means every path',
    'https://mcp.good.example',
    'https://mcp.good.example/a?b',
  );
  await fits(
    'any subdomain',
    'https://*.good.example/*',
    'https://a.good.example/',
    'https://a.b.good.example/x',
  );
  await differs(
    'the domain itself is no subdomain',
    'https://*.good.example/*',
    'https://good.example/',
  );
  await differs(
    'a star for the host does not reach into the path',
    'https://*.good.example/*',
    'https://evil.org/.good.example/x',
    'https://evil.org/?x.good.example/',
  );
  await differs(
    'a user name before the host is not the host',
    every,
    'https://mcp.good.example@evil.org/',
  );
  await differs('a dot is a dot', every, 'https://mcpxgood.example/');
  await fits(
    'capitals do not count in a host',
    'https://Mcp.Good.Example/*',
    'https://mcp.good.example/',
  );
  await fits(
    'nor does a dot at its end',
    'https://mcp.good.example./*',
    'https://mcp.good.example/',
  );
  await fits('in neither of the two', every, 'https://mcp.good.example./x');
  await differs(
    'but they count in a path',
    'https://mcp.good.example/Api/*',
    'https://mcp.good.example/api/x',
  );
  await fits(
    'a query is part of the path',
    'https://mcp.good.example/a?key=*',
    'https://mcp.good.example/a?key=1',
  );
  await differs(
    'a path is meant whole',
    'https://mcp.good.example/api',
    'https://mcp.good.example/api/x',
  );
  await fits(
    'any scheme',
    '*://mcp.good.example/*',
    'https://mcp.good.example/',
    'wss://mcp.good.example/',
  );
  await differs('another scheme', every, 'http://mcp.good.example/', 'wss://mcp.good.example/');
  await differs(
    'without a port, another port is another server',
    every,
    'https://mcp.good.example:8443/',
  );
  await fits(
    'any port',
    'http://localhost:*/*',
    'http://localhost:3000/mcp',
    'http://localhost/mcp',
  );
  await fits(
    'the usual port may be written out',
    'https://mcp.good.example:443/*',
    'https://mcp.good.example/',
  );
  await differs(
    'this port and no other',
    'https://mcp.good.example:8443/*',
    'https://mcp.good.example/',
  );
  for (const odd of ['mcp.good.example', 'https://', 'https://a@mcp.good.example/*', '*', ''])
    await expect(
      `what is no pattern is told: ${JSON.stringify(odd)}`,
      'no pattern',
      tried(odd, 'https://mcp.good.example/'),
      (came) => came === 'no pattern',
    );
};
