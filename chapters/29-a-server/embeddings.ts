// embeddings.ts: vectors from a real model, by the request that Ollama, llama.cpp, LM Studio and
// OpenAI share: POST {base}/embeddings {model, input: […]}. A text is sent once: what is known of
// it is kept by its content, so a file that was moved costs nothing.
//
// The contents of files go to that address. It must come from the user, never from a project.

import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { asList, asObject } from '../../mcp.ts';
import { isBusy, Patience } from '../18-minds/patience.ts';
import {
  modelAddress,
  ModelError,
  parseModelJson,
  post,
  streamedMessages,
  type Address,
} from '../18-minds/post.ts';

const BATCH = 16; // texts in one request
const IN_FLIGHT = 2;
const TIMEOUT_MS = 60_000;
const MIN_TEXT = 200; // characters: a model that refuses less refuses everything

type EmbeddingOptions = {
  url: string; // http://localhost:11434/v1
  model: string;
  key?: string;
  queryPrefix?: string; // some models want "search_query: " and "search_document: "
  documentPrefix?: string;
};

export class Embeddings {
  readonly model: string;
  skipped = 0; // texts that the model does not take
  private options: EmbeddingOptions;
  private address: Address;
  private vectors = new Map<string, Float32Array | undefined>(); // by content; undefined: it was skipped
  private dimension = 0;

  constructor(options: EmbeddingOptions) {
    const { url, model, key } = options;
    const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {};
    this.address = modelAddress(`the embedding model ${model}`, url, '/embeddings', headers, key);
    this.address.silenceMs = TIMEOUT_MS;
    this.options = options;
    this.model = model;
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
    const batches = Array.from({ length: Math.ceil(missing.length / BATCH) }, (_, n) =>
      missing.slice(n * BATCH, (n + 1) * BATCH),
    );
    const queue = batches.values(); // one queue, and two workers who empty it
    const work = async () => {
      for (const batch of queue) await this.learnBatch(batch, signal);
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, work));
  }

  /** A model refuses a request for one text that is too long. So the batch is halved, and in the
   *  end the text: its beginning says most. */
  private async learnBatch(batch: [key: string, text: string][], signal: AbortSignal) {
    const prefix = this.options.documentPrefix ?? '';
    try {
      const vectors = await this.request(
        batch.map(([, text]) => prefix + text),
        signal,
      );
      for (const [n, [key]] of batch.entries()) this.vectors.set(key, vectors[n]!);
    } catch (error) {
      const { status } = asObject(error);
      if (![400, 413, 422, 500].includes(Number(status))) throw error;
      await this.learnLess(batch, signal);
    }
  }

  private async learnLess(batch: [key: string, text: string][], signal: AbortSignal) {
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
    const { address, model } = this;
    const patience = new Patience();
    for (;;) {
      try {
        const reply = await post(address, { model, input }, signal);
        for await (const text of streamedMessages(address, reply))
          return this.check(parseModelJson(address, text), input.length);
        return this.check({}, input.length);
      } catch (error) {
        signal.throwIfAborted(); // then whatever broke did so because we were told to stop
        if (!(error instanceof ModelError) || !isBusy(error.status)) throw error;
        const ms = patience.pauseAfter(error);
        if (ms === undefined) throw error;
        await sleep(ms, undefined, { signal });
      }
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
      throw new Error(`the embedding model ${this.model} sent no vector for each text`);
    if (this.dimension !== dimension) this.vectors.clear(); // another model has taken its place
    this.dimension = dimension;
    return sorted as Float32Array[];
  }
}

function ofLengthOne(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, each) => sum + each * each, 0)) || 1;
  return vector.map((each) => each / length);
}
