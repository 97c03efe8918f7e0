// Judges exercise 29: who may knock? A shelf listens, and visitors come under many names. A second
// door has names that are drawn by lot.

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

const letters = () => Math.random().toString(36).slice(2, 8).replace(/^\d/, 'x');

export const judge: Judge = async ({ load, see, expect }) => {
  const { checkOrigin, doorFor, Refused } = await load('chapters/29-a-server/guard.ts');
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

  const isAlone = async () => checkOrigin({ host: 'localhost' }, doorFor('::1')) ?? 'it returns';
  await expect('a program on this machine may knock', 'it returns', isAlone(), /^it returns$/);
  const strangers = [{ host: 'evil.example' }, { host: here, origin: 'https://evil.example' }];
  for (const stranger of strangers) {
    const refusing = async () => {
      checkOrigin(stranger, doorFor('127.0.0.1'));
      return 'it returns'; // which is judged below
    };
    const isRefusal = (came: unknown) =>
      came === 'it returns' || (came instanceof Refused && (came as any).status === 403);
    const what = 'if anything is thrown, it is a Refused with the status 403';
    await expect(what, 'new Refused(403, …)', refusing(), isRefusal);
  }

  // ── Host ──

  await visit('a program that sends no Origin gets its answer', 200, '127.0.0.1');
  const names = ['localhost', here, 'localhost:1', 'shelf.example:8443', '[::1]:3000'];
  for (const name of names) await visit(`we are known as ${name}`, 200, name);
  for (const name of ['LOCALHOST', 'Shelf.Example:80'])
    await visit(`in capital letters it is the same name: ${name}`, 200, name);
  const foreign = [
    'evil.example',
    'evil.example:3000',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'evil.example.localhost',
    'evillocalhost',
    'shelf.exampl',
    'example',
  ];
  for (const name of foreign) {
    const what = 'a domain that leads to our address, and is not ours, is refused';
    await visit(`${what}: ${name}`, 403, name);
  }

  // ── Origin ──

  const own = [
    'http://127.0.0.1',
    'https://shelf.example',
    'http://localhost:5173',
    'https://[::1]:8443',
  ];
  for (const origin of own) {
    await visit(`a page of ours may knock, at any port: ${origin}`, 200, here, origin);
  }
  const pages = [
    'https://evil.example',
    'http://evil.example:80',
    'http://localhost.evil.example',
    'https://shelf.example.evil.example',
    'http://evillocalhost',
    'http://evil.example.localhost',
    'http://localhost@evil.example',
    'http://localhost:80@evil.example',
  ];
  for (const origin of pages) {
    await visit(`a foreign page is refused: ${origin}`, 403, here, origin);
  }
  await visit('a page without an origin says null, and is refused', 403, here, 'null');
  await visit('an origin that is empty is no origin of ours', 403, here, '');
  for (const origin of ['localhost', 'localhost:3000', '//localhost', 'http:localhost']) {
    await visit(`what is not an address is no page of ours: ${origin}`, 403, here, origin);
  }
  const others = ['file://localhost', 'ftp://localhost', 'evil://localhost', 'httpx://localhost'];
  for (const origin of others) {
    await visit(`only http and https are pages of ours: ${origin}`, 403, here, origin);
  }

  // ── Both ──

  const good = 'http://localhost';
  await visit('a good Origin does not make up for a foreign Host', 403, 'evil.example', good);
  await visit('nor do two that agree with each other', 403, 'evil.example', 'http://evil.example');
  await visit('two names of ours need not be the same', 200, 'shelf.example', good);
  await http.close();

  // ── Another door ──

  for (let n = 0; n < 20; n++) {
    const name = `${letters()}.${letters()}`;
    const door = doorFor('127.0.0.1', { hostnames: [name] });
    const isIn = async (host: string | undefined, origin?: string) => {
      try {
        checkOrigin({ host, ...(origin !== undefined && { origin }) }, door);
        return 'comes in';
      } catch (error) {
        return error instanceof Refused ? 'is refused' : `${error}`;
      }
    };
    const comes = (what: string, wanted: string, host?: string, origin?: string) => {
      const who = `${what} (Host: ${host}, Origin: ${origin}; we are ${name})`;
      return expect(who, wanted, isIn(host, origin), (came) => came === wanted);
    };
    const other = `${letters()}.${letters()}x`;
    const port = 1 + Math.floor(Math.random() * 60_000);
    await comes('another door has other names', 'comes in', `${name}:${port}`);
    await comes('another door has other names', 'comes in', name, `https://${name}:${port}`);
    await comes('and knows no others', 'is refused', other);
    await comes('and knows no others', 'is refused', name, `https://${other}:${port}`);
    await comes('without a Host we were not called at all', 'is refused', undefined);
  }
};
