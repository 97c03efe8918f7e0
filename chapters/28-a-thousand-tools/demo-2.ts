// Chapter 28.2: what the search finds for needs as people say them, among the four hundred tools of
// twenty made-up services. On the program before, it only counts words.

import { indexTools } from './tool-search.ts';

const fixture = '../../fixtures/catalogue.mjs';
const { services, toolsOf } = await import(fixture);

type Listed = { name: string; description: string; inputSchema: object };
const tools = [...services().keys()].flatMap((server: string) =>
  toolsOf(server).map((tool: Listed) => ({ ...tool, server, label: `${server}: ${tool.name}` })),
);
const index = indexTools(tools);

const needs = [
  'delete a calendar event',
  'throw that appointment away',
  'which meetings are in my calendar?',
  'look up the phone number of a colleague',
];
for (const need of needs) {
  console.log(need);
  for (const label of index.search(need, 2)) console.log(`  ${label}`);
}
