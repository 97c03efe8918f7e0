// bench.ts: what a judge has at hand, and the words of its verdict. Nothing here needs a process or a
// file, so judge.ts runs it in Node, and dom/ in a page: words and limits exist once.

import type { Bench } from './exercise.ts'; // a type only: this is loaded for hundreds of solutions

/** What differs between the two. */
export type World = {
  load: Bench['load'];
  print: (text: string) => void;
  inspect: (value: unknown, options: object) => string;
  /** It is red. Never comes back. */
  leave: () => never;
};

const LATE_MS = 3000; // one check
export const LIMIT_MS = 60_000; // all of them; a busy machine may need its time
export const LOOP_S = 10; // so long nothing else has run

export function benchIn({ load, print, inspect, leave }: World) {
  const show = (value: unknown) =>
    typeof value === 'string' || value instanceof Error
      ? `${value}`
      : inspect(value, { depth: 6, breakLength: 100 });
  const wire: { direction: string; text: string; serverName?: string }[] = [];
  let hope = { what: 'Node can load the program', wanted: 'no error' };

  const fail = (came: unknown): never => {
    print(fault(hope.what, hope.wanted, show(came)));
    const names = new Set(wire.map(({ serverName }) => serverName)); // one alone needs no name
    const lines = wire
      .slice(-12)
      .map(({ direction, text, serverName }) =>
        [direction === 'out' ? '→' : '←', names.size > 1 && serverName, text]
          .filter(Boolean)
          .join(' '),
      );
    const isWire = wire.some(({ text }) => text.includes('"jsonrpc"'));
    if (wire.length > 0)
      print(`  ${isWire ? 'on the wire' : 'what happened'}:\n    ${lines.join('\n    ')}`);
    return leave();
  };

  const bench: Bench = {
    load,
    see: (direction, message, serverName) => {
      const text = cutShort(JSON.stringify(message) ?? show(message));
      wire.push({ direction, text, serverName });
    },
    expect: async (what, wanted, promise, isRight) => {
      hope = { what, wanted };
      const late = new Promise((done) =>
        setTimeout(done, LATE_MS, 'nothing, in three seconds').unref(),
      );
      const came = await Promise.race([promise, late]).catch((error) => error);
      if (isRight instanceof RegExp ? !isRight.test(show(came)) : !isRight(came)) fail(came);
      wire.length = 0; // the next check begins with a clean page
      print(`✓ ${what}`);
    },
  };
  return { bench, fail };
}

const cutShort = (text: string) => (text.length > 400 ? `${text.slice(0, 400)}…` : text);

/** What a judge compares with. A solution that changes it would judge itself. */
export function freezeWhatJudges(): void {
  for (const each of [Array.prototype, JSON, Promise, Promise.prototype, RegExp.prototype])
    Object.freeze(each);
}

export const fault = (what: string, wanted: string, came: string) =>
  `✗ ${what}\n  expected: ${wanted}\n  came:     ${cutShort(came).replaceAll('\n', '\n            ')}`;

const odd = (came: string) => `${fault('it comes to an end', 'a verdict', came)}\n`;
export const endedBy = (signal: string) => odd(`it was ended by ${signal}`);
export const TOO_LATE = odd(`none in ${LIMIT_MS / 1000} s`);
export const LEFT_EARLY = odd('the program left before it was judged');
export const ENDLESS = odd(
  `none; for ${LOOP_S} s nothing else has run: is there a loop without an end, or without an await in it, ` +
    'or one that begins again for each item, so that its work grows with the square of the list?',
);
