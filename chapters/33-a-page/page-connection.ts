// page-connection.ts: the connection of this book, put together for a web page.

import { Connection, type Json } from '../../mcp.ts';
import type { Person } from '../17-the-gate/person.ts';
import { httpTransportsBy } from '../20-streamable-http/streamable.ts';
import { inBothEras } from '../22-no-handshake/era.ts';
import { elicitation } from '../23-the-server-asks/elicitation.ts';
import { problemsBy } from '../23-the-server-asks/keywords.ts';
import { fetchWeb } from './web-fetch.ts';
import { workerTransport, type WorkerLike } from './worker-transport.ts';

const MAX_PAGE_BYTES = 16 * 2 ** 20; // of a message: a tab has less room than a program
const CHECK_MS = 200; // a person waits for it, and so does everything in the page

export type PageParts = {
  startWorker: (config: Json) => WorkerLike;
  person: Person;
  record: (facts: Json) => void; // for the wire that is drawn beside it
  say: Person['say'];
};

export function pageConnection(name: string, config: Json, parts: PageParts): Connection {
  const { startWorker, person, record, say } = parts;
  return new Connection(name, config, {
    transports: { ...httpTransportsBy(() => fetchWeb), worker: workerTransport(startWorker) },
    maxLineBytes: MAX_PAGE_BYTES,
    extensions: [
      elicitation({ person, problemsFound: problemsIn, emit: record, warn: say }),
      ...inBothEras(),
    ],
    onWire: (dir, msg, server) => record({ dir, server, msg }),
    onStderr: (stderr, server) => record({ server, stderr }),
    onWarning: (text) => say(text, 'warning'),
  });
}

/** A pattern of a stranger is not tried: nothing in a page could stop it. */
async function problemsIn(schema: unknown, value: unknown) {
  const endsAt = performance.now() + CHECK_MS;
  const mustBeInTime = () => {
    if (performance.now() > endsAt) throw new Error('it takes too long to check');
  };
  return problemsBy({ mustBeInTime, matches: () => undefined }, schema, value);
}
