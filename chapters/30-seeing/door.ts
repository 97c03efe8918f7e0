// door.ts: how a page of ours may ask for something to be done, and no other page or program.
//
// Another page uses it so: make a `PageDoor` that knows its own host, and print the page's address with
// `#` and `newCode()` behind it. The page's script reads the code, takes it out of the address, sends
// it by POST once, and gets from `trade` the key, which it keeps in a variable and nowhere else.
// Every later POST has it in `Authorization: Bearer …`, and `bodyOf` gives what it asks for; each of
// them throws a `TurnedAway`, with the status to answer.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { asObject, type Json } from '../../mcp.ts';

const MAX_BODY = 2 ** 20; // bytes
const MAX_GUESSES = 5; // wrong codes, before the right one counts no more

/** What is answered to a request that is not let in. */
export class TurnedAway extends Error {
  readonly status: number;

  constructor(status: number, why: string) {
    super(why);
    this.status = status;
  }
}

export class PageDoor {
  private host: () => string;
  private warn: (text: string) => void;
  private again: string;
  private code?: string; // that no page has used yet
  private used?: string;
  private key?: string; // of the one page that may act
  private guesses = 0;

  /** `again`: where there is a new code. */
  constructor(host: () => string, warn: (text: string) => void, again = '/page') {
    this.host = host;
    this.warn = warn;
    this.again = again;
  }

  /** What is behind # is not sent to any server, and so it is in no log and in no Referer. The code
   *  before it counts no more. */
  newCode(): string {
    this.code = secret();
    this.guesses = 0;
    return this.code;
  }

  /** Does a browser on this machine send it, from our page or from its address line? A page that was
   *  reached by another name has another Host, and so has one whose name leads here today. */
  isOurs({ headers }: IncomingMessage): boolean {
    const { host, origin } = headers;
    return host === this.host() && (origin === undefined || origin === `http://${host}`);
  }

  /** The key for a code, once. From now on the page before, if there was one, can act no more. */
  async trade(request: IncomingMessage): Promise<string> {
    const given = String((await this.bodyFrom(request)).code);
    if (this.used !== undefined && isSame(given, this.used)) {
      const what = 'the code of the page was used a second time, which did nothing';
      this.warn(`${what}; ${this.again} has a new one`);
      throw new TurnedAway(403, `this address was used already; ${this.again} has a new one`);
    }
    if (this.code === undefined || !isSame(given, this.code)) {
      this.guess();
      throw new TurnedAway(
        403,
        `this code is not the one of this page; ${this.again} has a new one`,
      );
    }
    this.used = this.code;
    this.code = undefined;
    this.key = secret();
    return this.key;
  }

  private guess(): void {
    this.guesses++;
    if (this.guesses !== MAX_GUESSES) return;
    this.code = undefined;
    this.warn(
      `there were guesses at the code of the page, so it is void; ${this.again} has a new one`,
    );
  }

  /** What our page asks for. */
  async bodyOf(request: IncomingMessage, most = MAX_BODY): Promise<Json> {
    this.mustHaveKey(request);
    const body = await this.bodyFrom(request, most);
    this.mustHaveKey(request); // while it came in, another page may have got the key
    return body;
  }

  private mustHaveKey({ headers }: IncomingMessage): void {
    const [, given = ''] = /^Bearer (\S+)$/.exec(headers.authorization ?? '') ?? [];
    if (this.key === undefined || !isSame(given, this.key))
      throw new TurnedAway(
        401,
        `this page may not act, or another one does now; ${this.again} has a new address`,
      );
  }

  /** A page of another origin cannot send this without a question to us first, which we refuse; and
   *  the browser writes its origin into it. Here it must be there. */
  private async bodyFrom(request: IncomingMessage, most = MAX_BODY): Promise<Json> {
    const {
      origin,
      'sec-fetch-site': site = 'same-origin',
      'content-type': type,
    } = request.headers;
    if (!this.isOurs(request) || origin === undefined || site !== 'same-origin')
      throw new TurnedAway(403, 'this is for the page of this program');
    if (request.method !== 'POST') throw new TurnedAway(405, 'only POST');
    if (type !== 'application/json') throw new TurnedAway(415, 'only application/json');
    const pieces: Buffer[] = [];
    let size = 0;
    for await (const piece of request) {
      size += piece.length;
      if (size > most) throw new TurnedAway(413, `more than ${most} bytes`);
      pieces.push(piece);
    }
    try {
      return asObject(JSON.parse(Buffer.concat(pieces).toString('utf8')));
    } catch {
      throw new TurnedAway(400, 'this is not JSON');
    }
  }
}

const secret = () => randomBytes(16).toString('hex');

/** In a time that does not tell how much of it was right. */
function isSame(given: string, wanted: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(given), hash(wanted));
}
