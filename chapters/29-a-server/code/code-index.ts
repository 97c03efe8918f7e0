// code-index.ts: search by meaning. Each chunk of each file is a document of the ranking; where an
// embedding model is configured, its vectors are added to the words.

import { setTimeout as sleep } from 'node:timers/promises';
import { textOf } from '../../../mcp.ts';
import { cutCode, symbolOf } from '../chunks.ts';
import { Embeddings } from '../embeddings.ts';
import { best, Ranking } from '../ranking.ts';
import type { CodeTree, SourceFile } from '../tree.ts';

const MAX_INDEXED = 4 * 2 ** 20; // bytes of one file: people have written 1.7 million by hand
const MIN_SIZE = 80; // smaller chunks than for reading: a name says most where it is alone
const TURN_MS = 8;
const PATIENCE_MS = 10_000; // for a model's vector of the question, and for those of the code
const CANDIDATES = 64; // chunks that get their vectors first

type IndexOptions = { embeddings?: Embeddings; patienceMs?: number };
type Progress = (done: number, all: number) => void;
/** What is known of a file that is in the index. */
type Indexed = { file: SourceFile; version: number; documents: number[] };
/** Where a document is: lines of a file, counted from 0. */
type DocumentLocation = { at: Indexed; from: number; to: number; symbol: string; key?: string };

export class CodeIndex {
  readonly ranking = new Ranking();
  private tree: CodeTree;
  private options: IndexOptions;
  private indexed = new Map<string, Indexed>(); // by real path
  private places: DocumentLocation[] = []; // by document
  private updating: Promise<void> = Promise.resolve();
  private learning?: Promise<void>;
  private last?: { at: Indexed; lines: string[] }; // documents of one file come together

  constructor(tree: CodeTree, options: IndexOptions = {}) {
    this.tree = tree;
    this.options = options;
  }

  /** Reads what has changed since the last time. */
  async update(signal: AbortSignal, progress: Progress = () => {}): Promise<void> {
    const turn = this.updating.then(() => this.updateNow(signal, progress));
    this.updating = turn.catch(() => {});
    return turn;
  }

  private async updateNow(signal: AbortSignal, progress: Progress) {
    await this.tree.refresh(signal);
    let hasChanged = false;
    for (const [real, known] of this.indexed) {
      if (this.tree.files.get(real)?.version === known.version) continue;
      this.drop(real, known);
      hasChanged = true;
    }
    const fresh = this.tree.list().filter(({ real }) => !this.indexed.has(real));
    try {
      await this.addAll(fresh, signal, progress);
    } finally {
      if (hasChanged || fresh.length > 0) this.ranking.settle(); // what is done is not lost
    }
  }

  private async addAll(fresh: SourceFile[], signal: AbortSignal, progress: Progress) {
    let since = performance.now();
    for (const [n, file] of fresh.entries()) {
      this.add(file);
      if (performance.now() - since < TURN_MS) continue;
      progress(n, fresh.length);
      await new Promise(setImmediate);
      signal.throwIfAborted();
      since = performance.now();
    }
  }

  private add(file: SourceFile) {
    const known: Indexed = { file, version: file.version, documents: [] };
    this.indexed.set(file.real, known);
    if (file.bytes.length > MAX_INDEXED) return;
    const { lines, pieces } = cutCode(file.path, file.bytes.toString(), MIN_SIZE);
    for (const piece of pieces) {
      const { from, to, names, holders } = piece;
      const body = lines.slice(from, to).join('\n');
      const document = this.ranking.add({
        name: names.join(' '),
        holder: holders.join(' '),
        path: file.path,
        body,
      });
      const symbol = Buffer.from(symbolOf(piece)).toString(); // a copy: a part would keep the text
      const key = this.options.embeddings && Embeddings.keyOf(forModel(file.path, symbol, body));
      this.places[document] = { at: known, from, to, symbol, key };
      known.documents.push(document);
    }
  }

  private drop(real: string, { documents }: Indexed) {
    for (const document of documents) {
      this.ranking.remove(document);
      delete this.places[document];
    }
    this.indexed.delete(real);
  }

  async search(query: string, count: number, signal: AbortSignal) {
    const scores = this.ranking.scores(query);
    const notes = [...this.tree.notes, ...this.tooLarge()];
    const isFused = await this.fuse(scores, query, notes, signal);
    const results = best(scores, count).map(({ document, score }) => this.show(document, score));
    this.last = undefined;
    const model = this.options.embeddings?.model;
    return { results, ranked_by: isFused ? `words and ${model}` : 'words', notes };
  }

  /** What is not in the index is said: a search that finds nothing there looks complete. */
  private tooLarge() {
    const files = [...this.indexed.values()].map(({ file }) => file);
    const large = files.filter(({ bytes }) => bytes.length > MAX_INDEXED);
    if (large.length === 0) return [];
    return [`${large.length} files over ${MAX_INDEXED} bytes are only found by search_code`];
  }

  private show(document: number, score: number) {
    const { at, from, to, symbol } = this.places[document]!;
    return {
      file_path: at.file.path,
      start_line: from + 1,
      end_line: to,
      symbol,
      score: Math.round(score * 1000) / 1000, // 0 to 1
      text: this.textOf(document),
    };
  }

  private textOf(document: number) {
    const { at, from, to } = this.places[document]!;
    if (this.last?.at !== at) this.last = { at, lines: at.file.bytes.toString().split('\n') };
    return this.last.lines.slice(from, to).join('\n');
  }

  // ─── With a model ────────────────────────────────────────────────────────────────────────────

  /** Adds what the model thinks, where it has seen a chunk: each of the two, divided by its
   *  highest. A model that does not answer costs its opinion, not the search. */
  private async fuse(scores: Float64Array, query: string, notes: string[], signal: AbortSignal) {
    const { embeddings } = this.options;
    if (!embeddings) return false;
    try {
      const question = await this.vectorOf(query, embeddings, signal);
      await this.learn(embeddings, scores, notes, signal);
      const near = Float64Array.from(scores, (_, document) => {
        const key = this.places[document]?.key;
        return (key === undefined ? 0 : embeddings.nearness(key, question)) ?? 0;
      });
      const highest = (all: Float64Array) =>
        all.reduce((most, each) => Math.max(most, each), 0) || 1;
      const [byWords, byModel] = [highest(scores), highest(near)];
      for (const document of scores.keys()) {
        const both = scores[document]! / byWords + Math.max(0, near[document]!) / byModel;
        scores[document] = this.places[document] ? both / 2 : 0;
      }
      return true;
    } catch (error) {
      if (signal.aborted) throw error;
      notes.push(`ranked by words only: ${textOf(error)}`);
      return false;
    }
  }

  /** A client waits for a minute or so, and a model that loads may take longer. */
  private async vectorOf(query: string, embeddings: Embeddings, signal: AbortSignal) {
    const time = AbortSignal.timeout(this.patienceMs);
    try {
      return await embeddings.ofQuestion(query, AbortSignal.any([signal, time]));
    } catch (error) {
      if (signal.aborted || !time.aborted) throw error;
      throw new Error(`${embeddings.model} did not answer within ${this.patienceMs / 1000} s`);
    }
  }

  private get patienceMs(): number {
    return this.options.patienceMs ?? PATIENCE_MS;
  }

  /** Vectors for what has none: first for what the words have found, then for all the rest. That
   *  may take a model minutes, so it goes on while we answer with what is there. */
  private async learn(
    embeddings: Embeddings,
    scores: Float64Array,
    notes: string[],
    signal: AbortSignal,
  ) {
    const first = best(scores, CANDIDATES).map(({ document }) => document);
    const all = async () => {
      await embeddings.learn(this.textsOf(first, embeddings), signal);
      const rest = this.textsOf([...this.places.keys()], embeddings);
      this.learning ??= embeddings.learn(rest, new AbortController().signal).finally(() => {
        this.learning = undefined;
      });
      await this.learning;
    };
    const learning = all();
    learning.catch(() => {}); // it is tried again with the next search
    const time = new AbortController();
    const patience = sleep(this.patienceMs, undefined, { signal: time.signal, ref: false });
    await Promise.race([learning, patience]);
    time.abort();
    await patience.catch(() => {});
    const known = this.places.filter(({ key }) => embeddings.isKnown(key!)).length;
    const { size } = this.ranking;
    if (known < size)
      notes.push(`${known} of ${size} chunks have a vector so far; the rest follows`);
    const { model, skipped } = embeddings;
    if (skipped > 0) notes.push(`${model} took no vector of ${skipped} chunks`);
  }

  private textsOf(documents: number[], embeddings: Embeddings) {
    const texts = new Map<string, string>();
    for (const document of documents) {
      const { at, symbol, key } = this.places[document] ?? {};
      if (!at || embeddings.isKnown(key!)) continue;
      texts.set(key!, forModel(at.file.path, symbol!, this.textOf(document)));
    }
    return texts;
  }
}

/** A chunk alone does not say where it is from. */
const forModel = (path: string, symbol: string, body: string) => `${path} ${symbol}\n${body}`;
