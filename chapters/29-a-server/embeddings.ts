// embeddings.ts: vectors from a real model, by the request that Ollama, llama.cpp, LM Studio and
// OpenAI share: POST {base}/embeddings {model, input: […]}. A text is sent once: what is known of
// it is kept by its content, so a file that was moved costs nothing.
//
// The contents of files go to that address. It must come from the user, never from a project.

import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { asList, asObject, textOf } from '../../mcp.ts';

const BATCH = 16; // texts in one request
const IN_FLIGHT = 2;
const TIMEOUT_MS = 60_000;
const TRIES = 4;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;
const MAX_ANSWER = 64 * 2 ** 20;
const MIN_TEXT = 200; // characters: a model that refuses less refuses everything

type EmbeddingOptions = {
  url: string; // http://localhost:11434/v1
  model: string;
  key?: string;
  queryPrefix?: string; // some models want "search_query: " and "search_document: "
  documentPrefix?: string;
  timeoutMs?: number;
  firstPauseMs?: number;
};

class EmbeddingError extends Error {
  status?: number;
  pauseMs?: number; // the server wants us to wait
}

export class Embeddings {
  readonly model: string;
  skipped = 0; // texts that the model does not take
  private options: EmbeddingOptions;
  private vectors = new Map<string, Float32Array | undefined>(); // by content; undefined: it was skipped
  private dimension = 0;

  constructor(options: EmbeddingOptions) {
    const { protocol } = new URL(options.url);
    if (!/^https?:$/.test(protocol))
      throw new Error(`${options.url} is not an address of a web server`);
    this.options = options;
    this.model = options.model;
  }

  /** From the user's environment; nothing if it names no model. */
  static from(env: NodeJS.ProcessEnv): Embeddings | undefined {
    const { EMBEDDINGS_URL: url, EMBEDDINGS_MODEL: model, EMBEDDINGS_API_KEY: key } = env;
    if (!url || !model) return undefined;
    const { EMBEDDINGS_QUERY_PREFIX: queryPrefix, EMBEDDINGS_DOCUMENT_PREFIX: documentPrefix } =
      env;
    return new Embeddings({ url, model, key, queryPrefix, documentPrefix });
  }

  static keyOf(text: string): string {
    return createHash('sha256').update(text).digest('base64');
  }

  isKnown(key: string): boolean {
    return this.vectors.has(key);
  }

  /** How near a text is to the question: 1 is the same direction. Nothing if it has no vector. */
  nearness(key: string, question: Float32Array): number | undefined {
    const vector = this.vectors.get(key);
    if (vector?.length !== question.length) return undefined;
    return question.reduce((sum, each, n) => sum + each * vector[n]!, 0);
  }

  async ofQuestion(text: string, signal: AbortSignal): Promise<Float32Array> {
    const prefix = this.options.queryPrefix ?? '';
    const [vector] = await this.request([prefix + text], signal);
    return vector!;
  }

  /** Has the texts that are new made into vectors, a few requests side by side. */
  async learn(texts: Map<string, string>, signal: AbortSignal): Promise<void> {
    const missing = [...texts].filter(([key]) => !this.vectors.has(key));
    const batches = Array.from({ length: Math.ceil(missing.length / BATCH) }, (_, n) => {
      return missing.slice(n * BATCH, (n + 1) * BATCH);
    });
    const queue = batches.values(); // one queue, and two workers who empty it
    const work = async () => {
      for (const batch of queue) await this.learnBatch(batch, signal);
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, work));
  }

  /** A model refuses a request for one text that is too long. So the batch is halved, and in the
   *  end the text: its beginning says most. */
  private async learnBatch(
    batch: [key: string, text: string][],
    signal: AbortSignal,
  ): Promise<void> {
    const prefix = this.options.documentPrefix ?? '';
    try {
      const vectors = await this.request(
        batch.map(([, text]) => prefix + text),
        signal,
      );
      for (const [n, [key]] of batch.entries()) this.vectors.set(key, vectors[n]!);
    } catch (error) {
      const status = error instanceof EmbeddingError ? (error.status ?? 0) : 0;
      const isTooMuch = [400, 413, 422, 500].includes(status);
      if (!isTooMuch) throw error;
      await this.learnLess(batch, signal);
    }
  }

  private async learnLess(
    batch: [key: string, text: string][],
    signal: AbortSignal,
  ): Promise<void> {
    const half = Math.ceil(batch.length / 2);
    if (batch.length > 1) {
      await this.learnBatch(batch.slice(0, half), signal);
      await this.learnBatch(batch.slice(half), signal);
      return;
    }
    const [key, text] = batch[0]!;
    const shorter = text.slice(0, text.length / 2);
    if (shorter.length >= MIN_TEXT) return this.learnBatch([[key, shorter]], signal);
    this.vectors.set(key, undefined);
    this.skipped++;
  }

  // ─── The wire ────────────────────────────────────────────────────────────────────────────────

  private async request(input: string[], signal: AbortSignal): Promise<Float32Array[]> {
    let pauseMs = this.options.firstPauseMs ?? FIRST_PAUSE_MS;
    for (let tries = 1; ; tries++) {
      try {
        return this.check(await this.post(input, signal), input.length);
      } catch (error) {
        const isBusy = error instanceof EmbeddingError && [429, 503].includes(error.status ?? 0);
        if (!isBusy || tries === TRIES) throw error;
        await sleep(Math.min(error.pauseMs ?? pauseMs, MAX_PAUSE_MS), undefined, { signal });
        pauseMs *= 2;
      }
    }
  }

  private async post(input: string[], signal: AbortSignal): Promise<unknown> {
    const { url, model, key, timeoutMs = TIMEOUT_MS } = this.options;
    const address = `${url.replace(/(?<!\/)\/+$/, '')}/embeddings`;
    const time = AbortSignal.timeout(timeoutMs);
    try {
      const response = await fetch(address, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          ...(key && { Authorization: `Bearer ${key}` }),
        },
        body: JSON.stringify({ model, input }),
        redirect: 'error', // what we send was meant for this address
        signal: AbortSignal.any([signal, time]),
      });
      const text = await bounded(response);
      if (response.ok) return JSON.parse(text);
      throw refusedBy(response, text);
    } catch (error) {
      if (signal.aborted || error instanceof EmbeddingError) throw error;
      const why = time.aborted ? `no answer in ${timeoutMs / 1000} s` : reasonIn(error);
      throw new EmbeddingError(`the embedding model at ${url} cannot be used: ${why}`);
    }
  }

  /** Servers answer in any order, and say by `index` which is which. */
  private check(answer: unknown, count: number): Float32Array[] {
    const { data } = asObject(answer);
    const rows = asList(data);
    const vectors = new Map<number, Float32Array>();
    for (const [n, row] of rows.entries()) {
      const { index = n, embedding } = asObject(row);
      if (Array.isArray(embedding) && embedding.every(Number.isFinite))
        vectors.set(Number(index), ofLengthOne(Float32Array.from(embedding)));
    }
    const sorted = Array.from({ length: count }, (_, n) => vectors.get(n));
    const dimension = sorted[0]?.length ?? 0;
    const isWhole =
      rows.length === count && sorted.every((each) => each && each.length === dimension);
    if (!isWhole || dimension === 0)
      throw new EmbeddingError(`the embedding model ${this.model} sent no vector for each text`);
    if (this.dimension !== dimension) this.vectors.clear(); // another model has taken its place
    this.dimension = dimension;
    return sorted as Float32Array[];
  }
}

async function bounded(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.length;
    if (size > MAX_ANSWER) throw new Error('the answer is too long');
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

function refusedBy(response: Response, text: string): EmbeddingError {
  const words = text.replace(/[^\x20-\x7e]+/g, ' ').slice(0, 200);
  const error = new EmbeddingError(`the embedding model answered ${response.status}: ${words}`);
  error.status = response.status;
  const seconds = Number(response.headers.get('retry-after') ?? NaN);
  if (Number.isFinite(seconds)) error.pauseMs = seconds * 1000;
  return error;
}

/** fetch says "fetch failed", and hides the reason below it. */
const reasonIn = (error: unknown) => textOf(asObject(error).cause ?? error);

function ofLengthOne(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, each) => sum + each * each, 0)) || 1;
  return vector.map((each) => each / length);
}
