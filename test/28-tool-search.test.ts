// Chapter 28: does a search by words find the tool that a user needs?

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { indexTools, type SearchableTool } from '../chapters/28-a-thousand-tools/tool-search.ts';
import { Lexicon } from '../chapters/28-a-thousand-tools/lexicon.ts';

const fixture = '../fixtures/catalogue.mjs';
const { services, toolsOf } = await import(fixture);

const tool = (server: string, name: string, description: string, more = {}): SearchableTool => {
  const inputSchema = { type: 'object' };
  return { label: `mcp__${server}__${name}`, server, name, description, inputSchema, ...more };
};
const all: SearchableTool[] = [...services().keys()].flatMap((server) =>
  toolsOf(server).map((each: any) => tool(server, each.name, each.description, each)),
);
const made = indexTools(all);

test('a need finds its tool among four hundred, in the words of a user', () => {
  const needs = {
    'report a bug': 'tracker__create_issue',
    'throw that appointment away': 'diary__delete_event',
    'spin up a new VM': 'cloud__create_machine',
    'which pull requests are open?': 'forge__list_merge_request',
    'show me the bill of March': 'ledger__get_invoice',
    'modify the photo': 'studio__update_picture',
    'all folders in my cloud storage': 'drive__list_directory',
  };
  for (const [need, label] of Object.entries(needs)) {
    const found = made.search(need, 5);
    assert.ok(found.includes(`mcp__${label}`), `${need}: ${found.join(' ')}`);
  }
});

test('identifiers are found split and joined, with and without accents and endings', () => {
  const index = indexTools([
    tool('hubspot', 'listDeals', 'HubSpot deals.'),
    tool('x', 'open_cafe', 'Opens a café.'),
    tool('digital-ocean', 'droplets', 'Lists droplets.'),
    tool('prime', 'ng', 'PrimeNG.'),
    tool('somevue', 'list', 'All of them.'),
  ]);
  const first = (query: string) => index.search(query, 1)[0];
  assert.equal(first('hub spot'), 'mcp__hubspot__listDeals');
  assert.equal(first('hubspot'), 'mcp__hubspot__listDeals');
  assert.equal(first('deal'), 'mcp__hubspot__listDeals');
  assert.equal(first('cafe'), 'mcp__x__open_cafe');
  assert.equal(first('primeng'), 'mcp__prime__ng');
  assert.equal(first('prime ng'), 'mcp__prime__ng');
  assert.equal(first('Some Vue'), 'mcp__somevue__list');
  assert.equal(first('Droplet'), 'mcp__digital-ocean__droplets');
});

test('Chinese, Japanese and Korean are found by pairs of characters', () => {
  const index = indexTools([
    tool('amap', 'weather', '根据城市名称查询指定城市的天气'),
    tool('amap', 'route', '公交路径规划'),
    tool('fetch', 'image', '画像取得に強いツール'),
  ]);
  assert.equal(index.search('北京的天气怎么样')[0], 'mcp__amap__weather');
  assert.equal(index.search('坐公交怎么走')[0], 'mcp__amap__route');
  assert.equal(index.search('画像を取得')[0], 'mcp__fetch__image');
});

test('a Chinese need finds an English tool, and the other way round', () => {
  const index = indexTools([
    tool('mail', 'delete_message', 'Removes a message.'),
    tool('mail', 'create_folder', 'Makes a folder.'),
    tool('cloud', 'manageHosting', '部署静态网站'),
  ]);
  assert.equal(index.search('新建一个文件夹')[0], 'mcp__mail__create_folder');
  assert.equal(index.search('删除那个')[0], 'mcp__mail__delete_message');
  assert.equal(index.search('deploy my site')[0], 'mcp__cloud__manageHosting');
});

test('a question does not find first what would change something, nor an order what would read', () => {
  const index = indexTools([
    tool('crm', 'create_deal', 'Deals of a company.'),
    tool('crm', 'deals', 'Deals of a company.'),
    tool('crm', 'get_deal', 'Deals of a company.'),
  ]);
  const found = (need: string) => index.search(need).map((label) => label.split('__')[2]);
  assert.deepEqual(found('which deals does the company have?'), [
    'get_deal',
    'deals',
    'create_deal',
  ]);
  assert.equal(found('make a deal with the company')[0], 'create_deal');
  assert.equal(found('deal, company').at(-1), 'get_deal', 'no verb: the order of the table');
});

test('arguments count, also inside others; the limit is kept, and nothing found is nothing', () => {
  const inner = { zebra: { type: 'string', description: 'the quagga' } };
  const properties = { outer: { type: 'array', items: { properties: inner } } };
  const index = indexTools([
    tool('a', 'one', 'Does something.', { inputSchema: { type: 'object', properties } }),
    tool('a', 'two', 'Does something.'),
  ]);
  assert.deepEqual(index.search('zebra'), ['mcp__a__one']);
  assert.deepEqual(index.search('quagga'), ['mcp__a__one']);
  assert.equal(index.search('something', 1).length, 1);
  assert.deepEqual(index.search('xylophone'), []);
  assert.deepEqual(index.search(''), []);
  assert.deepEqual(indexTools([]).search('anything'), []);
});

test('hostile tools and queries are only text', () => {
  let deep: any = { properties: { x: {} } };
  for (let n = 0; n < 5000; n++) deep = { properties: { x: deep }, items: deep };
  const properties = { __proto__: { description: 3 }, constructor: { enum: [1, null, {}] }, x: 7 };
  const index = indexTools([
    tool('h', '__proto__', 'x'.repeat(1_000_000), { inputSchema: deep }),
    tool('h', 'constructor', 'toString hasOwnProperty', { inputSchema: { properties }, title: 9 }),
    tool('h', 'none', undefined as never, { inputSchema: null }),
  ]);
  assert.deepEqual(index.search('hasOwnProperty toString'), ['mcp__h__constructor']);
  assert.ok(index.search('constructor __proto__ '.repeat(100_000)).length > 0);
});

test('a stem is the same for both sides', () => {
  const lexicon = new Lexicon();
  const same = [
    'create created creates creating',
    'query queries',
    'box boxes',
    'plan planning planned',
    'delete deleting',
    'status',
    'class classes',
    'use',
    'move moving moved',
    'add adding added',
    'deploy deployment',
    'connect connection',
    'colour color',
    'summarise summarizing',
    'write wrote written',
    'index indices',
    'store storing',
  ];
  for (const words of same) assert.equal(new Set(lexicon.stems(words)).size, 1, words);
  assert.equal(new Set(lexicon.stems('plane plan')).size, 2, 'a server may be called Plane');
  assert.deepEqual(lexicon.terms('What is the getFileInfo of 2,307?'), [
    'get',
    'file',
    'info',
    'getfileinfo',
    '2',
    '307',
  ]);
});
