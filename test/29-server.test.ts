// Chapter 29: the server, over raw HTTP and raw lines. The cases are in help/, where run/mutants.ts finds them too.

import { afterEach, test } from 'node:test';
import * as http from '../chapters/29-a-server/serve-http.ts';
import * as pipe from '../chapters/29-a-server/pipe.ts';
import * as seal from '../chapters/29-a-server/request-state.ts';
import * as server from '../chapters/29-a-server/server.ts';
import { cleanUp, later } from './help/basics.ts';
import { cases } from './help/server-cases.ts';

afterEach(cleanUp);

for (const [name, run] of Object.entries(cases))
  test(name, () => run({ ...http, ...pipe, ...seal, ...server }, later));
