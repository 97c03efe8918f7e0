// Judges exercise 29: who may knock? A shelf listens, and visitors come under many names.

import { request as httpRequest } from 'node:http';
import type { Judge } from '../book.ts';

/** The status that a visitor gets who calls us by this name, and comes from there. */
function knock(port: number, host: string, origin?: string): Promise<number | string> {
  return new Promise((done) => {
    const headers = { host, ...(origin !== undefined && { origin }) };
    const place = { host: '127.0.0.1', port, path: '/health', headers };
    const request = httpRequest(place, (response) => {
      response.resume();
      response.on('end', () => done(response.statusCode ?? 0));
    });
    request.on('error', (error) => done(error.message));
    request.end();
  });
}

export const judge: Judge = async ({ load, see, expect }) => {
  const { checkOrigin, doorFor } = await load('chapters/29-a-server/guard.ts');
  const { serveHttp } = await load('chapters/29-a-server/serve-http.ts');
  const { shelf } = await load('chapters/29-a-server/bookshelf.ts');
  const http = await serveHttp(shelf(), { hostnames: ['shelf.example'] });
  const here = `127.0.0.1:${http.port}`;

  const visit = async (what: string, wanted: number, host: string, origin?: string) => {
    const came = await knock(http.port, host, origin);
    see('out', { Host: host, Origin: origin ?? '(none)' });
    see('in', { status: came });
    await expect(what, `status ${wanted}`, came, (status) => status === wanted);
  };

  const isAlone = async () => checkOrigin({ host: here }, doorFor('127.0.0.1')) ?? 'it returns';
  await expect('a program on this machine may knock', 'it returns', isAlone(), /^it returns$/);
  await visit('and gets its answer: it sends no Origin', 200, here);
  const names = [
    'localhost',
    'localhost:1',
    'LOCALHOST',
    '[::1]:3000',
    '127.0.0.1',
    'shelf.example:8443',
  ];
  for (const name of names) await visit(`we are known as ${name}`, 200, name);
  const foreign = [
    'evil.example',
    'evil.example:3000',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'evil.example.localhost',
  ];
  for (const name of foreign) {
    await visit(
      `a domain that leads to our address, and is not ours, is refused: ${name}`,
      403,
      name,
    );
  }
  const own = [
    'http://localhost:5173',
    'http://127.0.0.1',
    'https://[::1]:8443',
    'https://shelf.example',
  ];
  for (const origin of own)
    await visit(`a page of ours may knock, at any port: ${origin}`, 200, here, origin);
  const pages = [
    'https://evil.example',
    'http://localhost.evil.example',
    'http://evil.example:80',
    'https://shelf.example.evil.example',
    'http://localhost@evil.example',
  ];
  for (const origin of pages)
    await visit(`a foreign page is refused: ${origin}`, 403, here, origin);
  await visit('a page without an origin says null, and is refused', 403, here, 'null');
  await visit('an origin that is empty is no origin of ours', 403, here, '');
  for (const origin of ['file://localhost', 'ftp://localhost', 'evil://localhost']) {
    await visit(`only http and https are pages of ours: ${origin}`, 403, here, origin);
  }
  await visit(
    'a good Origin does not make up for a foreign Host',
    403,
    'evil.example',
    'http://localhost',
  );
  await visit('nor do two that agree with each other', 403, 'evil.example', 'http://evil.example');
  await http.close();
};
