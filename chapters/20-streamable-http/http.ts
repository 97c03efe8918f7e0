// http.ts: HTTP in a program on Node.

import { fetchHttp } from './request.ts';
import { httpTransportsBy } from './streamable.ts';

export const httpTransports = httpTransportsBy(() => fetchHttp);
