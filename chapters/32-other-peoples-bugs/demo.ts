// Chapter 32: one exhibit of the museum, and two clients.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const museum = new URL('../../fixtures/museum/wire.mjs', import.meta.url);
const client = (name: string) => ({
  name,
  argv: (target: string, steps: string) => {
    return [process.execPath, fileURLToPath(new URL(name, import.meta.url)), target, steps];
  },
});

if (!existsSync(museum)) console.log('Nothing here knows how other clients fail.');
else {
  const { sideBySide, wireOf } = await import(museum.href);
  console.log('The exhibit same-id, with hasty.mjs and with small.mjs:');
  const hasty = await wireOf(client('hasty.mjs'), 'same-id');
  const small = await wireOf(client('small.mjs'), 'same-id');
  console.log(sideBySide(hasty, small));
}
