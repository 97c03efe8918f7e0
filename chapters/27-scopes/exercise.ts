// Judges exercise 27: which addresses does a pattern of a policy mean? Nothing is started and
// nothing is sent. Hosts are drawn by lot, and in the end patterns and addresses are put together
// at random.

import { randomInt, randomUUID } from 'node:crypto';
import type { Judge } from '../book.ts';

const word = () => `m${randomUUID().slice(0, 6)}`;
const one = <T>(list: T[]): T => list[randomInt(list.length)]!;

type Matcher = ((url: URL) => boolean) | undefined;

export const judge: Judge = async ({ load, see, expect }) => {
  const { addressMatcher } = await load('chapters/27-scopes/policy.ts');

  /** Twice: an answer must not depend on what was asked before. */
  const tried = (pattern: string, address: string): string => {
    see('out', `${pattern} and ${address}`);
    const matches = addressMatcher(pattern) as Matcher;
    if (matches === undefined) return 'no pattern';
    const [first, second] = [matches(new URL(address)), matches(new URL(address))];
    if (first !== second) return `first ${first}, then ${second}`;
    return first ? 'fits' : 'does not fit';
  };
  const all = async (what: string, wanted: string, pattern: string, addresses: string[]) => {
    const came = addresses.map((address) => tried(pattern, address));
    const odd = came.find((each) => each !== wanted) ?? wanted;
    await expect(what, wanted, odd, (text) => text === wanted);
  };
  const fits = (what: string, pattern: string, ...addresses: string[]) =>
    all(what, 'fits', pattern, addresses);
  const differs = (what: string, pattern: string, ...addresses: string[]) =>
    all(what, 'does not fit', pattern, addresses);
  const isNone = async (what: string, ...texts: string[]) => {
    for (const text of texts)
      await expect(
        `${what}: ${JSON.stringify(text)}`,
        'no pattern',
        tried(text, 'https://mcp.good.example/a'),
        (came) => came === 'no pattern',
      );
  };

  const good = `${word()}.example`;
  const host = `mcp.${good}`;
  const every = `https://${host}/*`;

  // What a pattern is.
  await fits('every path of a host', every, `https://${host}/`, `https://${host}/a/b?c=d`);
  await fits(
    'a pattern may have a port and a path',
    `https://${host}:8443/api/*`,
    `https://${host}:8443/api/x`,
  );
  await isNone('without a scheme it is no pattern', 'mcp.good.example', 'mcp.good.example/*');
  await isNone(
    'without a scheme it is no pattern',
    '//mcp.good.example/*',
    '://mcp.good.example/*',
  );
  await isNone('without a scheme it is no pattern', '*', '', '/*', 'https:/mcp.good.example/*');
  await isNone('without a host it is no pattern', 'https://', 'https:///*', 'https://:443/*');
  await isNone(
    'a user name makes it no pattern',
    'https://a@mcp.good.example/*',
    'https://a:b@mcp.good.example/*',
    '*://*@mcp.good.example/*',
  );
  await fits(
    'an @ in a path is no user name',
    `https://${host}/@team/*`,
    `https://${host}/@team/x`,
  );
  await isNone(
    'a fragment makes it no pattern',
    'https://mcp.good.example/*#top',
    'https://mcp.good.example#',
  );
  await isNone(
    'white space makes it no pattern',
    ' https://mcp.good.example/*',
    'https://mcp.good.example/*\n',
    'https://mcp.good.example/a b',
    'https://mcp .good.example/*',
    'https://mcp.good.example\t/*',
  );

  // Part by part.
  await differs('another host', every, `https://other.${good}/`, `https://x${host}/`);
  await differs('a host that only begins so', every, `https://${host}.evil.org/`);
  await differs('a dot is a dot', every, `https://${host.replace('.', 'x')}/`);
  const wild = `https://*.${good}/*`;
  await fits('a star is any text', wild, `https://a.${good}/`, `https://a.b.${good}/x`);
  await fits(
    'also in the middle',
    `https://m*p.${good}/*`,
    `https://${host}/`,
    `https://mp.${good}/`,
  );
  await differs('the domain itself is no subdomain', wild, `https://${good}/`);
  await differs(
    'a star for the host does not reach into the path',
    wild,
    `https://evil.org/.${good}/x`,
    `https://evil.org/?x.${good}/`,
  );
  await differs(
    'a star for the scheme does not reach into the host',
    `*://${host}/*`,
    `https://evil.org//${host}/`,
    `https://evil.org/://${host}/x`,
  );
  await differs('a user name before the host is not the host', every, `https://${host}@evil.org/`);
  await differs('another scheme', every, `http://${host}/`, `wss://${host}/`);
  await fits('any scheme', `*://${host}/*`, `https://${host}/`, `wss://${host}/`);
  await fits('a star within a scheme', `http*://${host}/*`, `https://${host}/`, `http://${host}/`);
  await differs('and no scheme that it does not fit', `http*://${host}/*`, `wss://${host}/`);
  const api = `https://${host}/api`;
  await differs('a path is meant whole', api, `${api}/x`, `https://${host}/x/api`, `${api}2`);
  await fits('a star within a path', `https://${host}/*/x`, `https://${host}/a/b/x`);
  await fits('any port', 'http://localhost:*/*', 'http://localhost:3000/', 'http://localhost/mcp');
  await fits('a star within a port', `https://${host}:84*/*`, `https://${host}:8443/`);
  await differs('this port and no other', `https://${host}:8443/*`, `https://${host}/`);
  await differs('each port as a whole', `https://${host}:84/*`, `https://${host}:8443/`);

  // Capitals, dots, queries.
  await fits(
    'capitals do not count in a host',
    `https://${host.toUpperCase()}/*`,
    `https://${host}/`,
  );
  await fits('capitals do not count in a scheme', `HTTPS://${host}/*`, `https://${host}/`);
  await fits('a dot at the end of a host does not count', `https://${host}./*`, `https://${host}/`);
  await fits('a dot at the end does not count in an address', every, `https://${host}./x`);
  await differs('capitals count in a path', `https://${host}/Api/*`, `https://${host}/api/x`);
  await fits(
    'also here: capitals count in a path',
    `https://${host}/Api/*`,
    `https://${host}/Api/x`,
  );
  await fits('a query is part of the path', `https://${host}/a?key=*`, `https://${host}/a?key=1`);
  await differs(
    'a query is part of the path, if it is another',
    `https://${host}/a?key=1`,
    `https://${host}/a?key=2`,
  );
  await differs(
    'a query that the pattern does not have: it is part of the path',
    `https://${host}/a`,
    `https://${host}/a?key=1`,
  );

  await fits(
    'letters that mean something elsewhere mean themselves',
    `https://${host}/a+b(c).[d]$/*`,
    `https://${host}/a+b(c).[d]$/x`,
  );
  await fits(
    'a path is compared as it is written',
    `https://${host}/a%20b`,
    `https://${host}/a%20b`,
  );
  await differs(
    'a slash in other letters is no slash',
    `https://${host}/a/b`,
    `https://${host}/a%2Fb`,
  );

  // What is left out.
  await fits(
    'without a path, every path is meant',
    `https://${host}`,
    `https://${host}/a?b`,
    `https://${host}/`,
  );
  await fits('also behind a port', `https://${host}:8443`, `https://${host}:8443/a/b`);
  await differs('without a port, another port is another server', every, `https://${host}:8443/`);
  await differs(
    'without a port, the usual one of another scheme is another port',
    every,
    `https://${host}:80/`,
  );
  await differs('also if any scheme is meant', `*://${host}/*`, `http://${host}:443/`);
  for (const [scheme, port] of [
    ['https', 443],
    ['wss', 443],
    ['http', 80],
    ['ws', 80],
  ] as const) {
    const spelled = `${scheme}://${host}:${port}/*`;
    await fits(`the usual port may be written out: ${scheme}`, spelled, `${scheme}://${host}/x`);
    const swapped = `${scheme}://${host}:${port === 80 ? 443 : 80}/*`;
    await differs(
      `written out, it is that of its scheme: ${scheme}`,
      swapped,
      `${scheme}://${host}/x`,
    );
  }

  // Anything else.
  await expect(
    'patterns and addresses at random',
    'they fit where each part does',
    deviations(tried),
    (came) => came.length === 0,
  );
};

/** Patterns are put together from their parts, so we know what each means. */
function deviations(tried: (pattern: string, address: string) => string): string[] {
  const found: string[] = [];
  for (let n = 0; n < 500 && found.length < 3; n++) {
    const name = word();
    const host = one([`${name}.example`, `*.${name}.example`, `a.*.example`, `*`, `${name}-*`]);
    const scheme = one(['https', 'http', 'wss', '*', 'ws*', 'HTTP']);
    const port = one([undefined, undefined, '443', '80', '8443', '*', '9*']);
    const path = one([undefined, '/*', '/api', '/api/*', '/Api/*', '/*/x', '/a?key=*', '/*?*']);
    const pattern = `${scheme}://${host}${port === undefined ? '' : `:${port}`}${path ?? ''}`;
    const filled = host.replaceAll('*', one(['x', 'x.y', name]));
    const there = one([filled, filled, filled, `${filled}.evil.org`, `evil.org`, `x${filled}`]);
    const at = one(['', '', '', ':443', ':80', ':8443', ':9000']);
    const rest = one(['/', '/api', '/api/x', '/Api/x', '/b/c/x', '/a?key=1', '/a', `/${host}/`]);
    const address = `${one(['https', 'http', 'wss', 'ws'])}://${there}${at}${rest}`;
    const url = new URL(address);
    const usual = /^(https|wss):$/.test(url.protocol) ? '443' : '80';
    const isMeant =
      like(scheme.toLowerCase(), url.protocol.slice(0, -1)) &&
      like(host, url.hostname) &&
      (port === undefined ? url.port === '' : like(port, url.port || usual)) &&
      (path === undefined || like(path, url.pathname + url.search));
    const wanted = isMeant ? 'fits' : 'does not fit';
    const came = tried(pattern, address);
    if (came !== wanted) found.push(`${pattern} and ${address}: ${came}`);
  }
  return found;
}

function like(pattern: string, text: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.?+^${}()|[\]\\/]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*')}$`).test(text);
}
