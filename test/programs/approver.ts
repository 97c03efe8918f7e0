// Approves COUNT servers named PREFIX0, PREFIX1, … in the trust file of HOME for the project CWD.

import { Trust } from '../../agent.ts';

const [home = '', cwd = '', prefix = '', count = '0'] = process.argv.slice(2);
const trust = new Trust({ home, cwd, warn: (text) => console.log(text) });
for (let n = 0; n < Number(count); n++)
  trust.allow({
    name: `${prefix}${n}`,
    config: { command: prefix },
    file: '.mcp.json',
    scope: 'project',
    authority: 'project',
  });
