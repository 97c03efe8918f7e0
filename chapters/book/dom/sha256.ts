// sha256.ts: SHA-256 and its HMAC (FIPS 180-4 and 198-1). A browser has both, but gives them later, and
// programs for Node have them at once.

import { Buffer } from 'node:buffer';

const isPrime = (n: number) => {
  for (let divisor = 2; divisor * divisor <= n; divisor++) if (n % divisor === 0) return false;
  return true;
};
const primes = (count: number) => {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) if (isPrime(n)) found.push(n);
  return found;
};
/** The first 32 bits behind the point. */
const fraction = (n: number) => ((n % 1) * 2 ** 32) | 0;
const ROUNDS = primes(64).map((prime) => fraction(Math.cbrt(prime)));
const START = primes(8).map((prime) => fraction(Math.sqrt(prime)));
const turned = (x: number, by: number) => (x >>> by) | (x << (32 - by));
const BLOCK = 64; // bytes

function sha256(data: Uint8Array): Buffer {
  const padded = new Uint8Array(Math.ceil((data.length + 9) / BLOCK) * BLOCK);
  padded.set(data);
  padded[data.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(data.length) * 8n);
  const state = [...START];
  for (let at = 0; at < padded.length; at += BLOCK) addBlock(state, view, at);
  const out = Buffer.alloc(32);
  for (const [n, word] of state.entries()) out.writeInt32BE(word, n * 4);
  return out;
}

function addBlock(state: number[], view: DataView, at: number): void {
  const words = new Int32Array(64);
  for (let n = 0; n < 16; n++) words[n] = view.getInt32(at + n * 4);
  for (let n = 16; n < 64; n++) {
    const [early, late] = [words[n - 15]!, words[n - 2]!];
    const one = turned(early, 7) ^ turned(early, 18) ^ (early >>> 3);
    const two = turned(late, 17) ^ turned(late, 19) ^ (late >>> 10);
    words[n] = words[n - 16]! + one + words[n - 7]! + two;
  }
  let [a, b, c, d, e, f, g, h] = state as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  for (let n = 0; n < 64; n++) {
    const choice = (e & f) ^ (~e & g);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const one = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
    const two = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
    const next = (h + one + choice + ROUNDS[n]! + words[n]!) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + next) | 0, c, b, a, (next + two + majority) | 0];
  }
  for (const [n, each] of [a, b, c, d, e, f, g, h].entries()) state[n] = (state[n]! + each) | 0;
}

function hmac(key: Uint8Array, data: Uint8Array): Buffer {
  const block = Buffer.alloc(BLOCK);
  block.set(key.length > BLOCK ? sha256(key) : key);
  const mixed = (byte: number) => Buffer.from(block.map((each) => each ^ byte));
  return sha256(Buffer.concat([mixed(0x5c), sha256(Buffer.concat([mixed(0x36), data]))]));
}

type Data = string | Uint8Array;

/** As createHash and createHmac give it. */
function gathered(kind: string, finish: (data: Uint8Array) => Buffer) {
  if (kind !== 'sha256') throw new Error(`a page has no ${kind}`);
  const given: Uint8Array[] = [];
  const hash = {
    update(data: Data) {
      given.push(Buffer.from(data as string));
      return hash;
    },
    digest(encoding?: BufferEncoding) {
      const sum = finish(Buffer.concat(given));
      return encoding ? sum.toString(encoding) : sum;
    },
  };
  return hash;
}

export const createHash = (kind: string) => gathered(kind, sha256);
export const createHmac = (kind: string, key: Data) =>
  gathered(kind, (data) => hmac(Buffer.from(key as string), data));
export const timingSafeEqual = (one: Uint8Array, two: Uint8Array) =>
  one.length === two.length && one.every((byte, at) => byte === two[at]);
