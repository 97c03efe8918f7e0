// What a server must do, as cases over raw HTTP and raw lines. test/29-server.test.ts runs them on the server of chapter 29;
// `npm run mutants` runs them on the same server with one bug in it, again and again.

import { HTTP_CASES } from './server-cases-http.ts';
import { PIPE_CASES } from './server-cases-pipe.ts';
import { STATELESS_CASES } from './server-cases-stateless.ts';
import type { Case } from './server-fixture.ts';

export const cases: Record<string, Case> = { ...HTTP_CASES, ...STATELESS_CASES, ...PIPE_CASES };
