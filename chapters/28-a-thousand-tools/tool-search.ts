// tool-search.ts: finds tools by what a user needs. BM25, the formula of most search engines, over
// weighted fields; with synonyms, because people do not know what a tool is called; with a look at
// the whole server, because a tool seldom says what all of them are about; and at what is to be done.

import { asObject, type Json } from '../../mcp.ts';
import { actionOf, actionWanted, fitOf, type Action } from './actions.ts';
import { GROUPS } from './synonyms.ts';
import { Lexicon } from './lexicon.ts';

export type SearchableTool = {
  label: string;
  server: string;
  name: string;
  title?: string;
  description?: string;
  inputSchema: Json;
};
export type ToolIndex = {
  /** The labels of those that fit, the best first. */
  search(query: string, limit?: number): string[];
};

/** What a word counts for, by the place where it is. */
const WEIGHTS = {
  server: 4,
  name: 3,
  firstSentence: 2,
  title: 1,
  description: 1, // what comes after the first sentence
  argumentNames: 0.5,
  argumentTexts: 0.4,
  values: 0.25,
};
type WeightedField = keyof typeof WEIGHTS;
const FIELDS = Object.keys(WEIGHTS) as WeightedField[];

const LENGTH_COUNTS = 0.6; // b: a word in a long text says less
const SATURATION = 1; // k1: the tenth time says hardly more than the third
const OF_SERVER = 1.5; // what the server as a whole is about
const USUAL_SHARE = 0.3; // of a server's tools
const OF_PHRASE = 0.8; // "throw … away", for delete
const OF_THE_WORD = 0.7; // how rare the word itself is, and not it or a synonym
const OF_ONE_SERVER = 3 / 5; // of the places
const GAP = 4; // words between the first and the second word of such a phrase
const MAX_QUERY = 1000; // characters
const MAX_CONCEPTS = 60;

export function indexTools(tools: readonly SearchableTool[]): ToolIndex {
  return new TermIndex(tools);
}

/** Where a term is: the numbers of the tools, and how much it counts in each. */
type TermPostings = { tools: number[]; counts: number[] };
/** One thing that the query is about: the words for it, and how well each says it. */
type Concept = { words: Map<string, number>; weight: number };

type FoundTool = { label: string; server: number; score: number };

/** A server that describes its tools by every word there is gets at most three of five places, unless
 *  it is the only one that has something. */
function shared(found: FoundTool[], limit: number) {
  const isOnlyOne = new Set(found.map(({ server }) => server)).size === 1;
  const most = isOnlyOne ? limit : Math.ceil(limit * OF_ONE_SERVER);
  const places = new Map<number, number>(); // by server
  const fair = found.filter(({ server }) => {
    const taken = (places.get(server) ?? 0) + 1;
    places.set(server, taken);
    return taken <= most;
  });
  return fair.slice(0, limit);
}

class TermIndex implements ToolIndex {
  private labels: string[];
  private serverOf: number[];
  private toolsOf: number[] = []; // how many each server has
  private actions: (Action | undefined)[];
  private lexicon = new Lexicon();
  private postings = new Map<string, TermPostings>();
  private synonyms = synonymsIn(GROUPS);

  constructor(tools: readonly SearchableTool[]) {
    this.labels = tools.map(({ label }) => label);
    this.actions = tools.map(({ name }) => actionOf(this.lexicon.stems(name)));
    const servers = new Map<string, number>();
    this.serverOf = tools.map(({ server }) => {
      if (!servers.has(server)) servers.set(server, servers.size);
      return servers.get(server)!;
    });
    for (const server of this.serverOf) this.toolsOf[server] = (this.toolsOf[server] ?? 0) + 1;
    const documents = tools.map((tool) => fieldsOf(tool, this.lexicon));
    const average = averageLengths(documents);
    for (const [n, document] of documents.entries()) this.add(n, document, average);
  }

  private add(tool: number, document: Document, average: Record<WeightedField, number>) {
    const counts = new Map<string, number>();
    for (const field of FIELDS) {
      const terms = document[field];
      const relative = terms.length / average[field];
      const each = WEIGHTS[field] / (1 - LENGTH_COUNTS + LENGTH_COUNTS * relative);
      for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + each);
    }
    for (const [term, count] of counts) {
      let postings = this.postings.get(term);
      if (!postings) this.postings.set(term, (postings = { tools: [], counts: [] }));
      postings.tools.push(tool);
      postings.counts.push(count);
    }
  }

  search(query: string, limit = 10) {
    const ofTool = new Float64Array(this.labels.length);
    const ofServer = new Float64Array(this.toolsOf.length);
    const text = query.slice(0, MAX_QUERY);
    for (const concept of this.conceptsIn(text)) this.score(concept, ofTool, ofServer);
    const wanted = actionWanted(text, this.lexicon.stems(text));
    const found: FoundTool[] = [];
    for (let n = 0; n < this.labels.length; n++) {
      if (ofTool[n] === 0) continue;
      const fit = fitOf(this.actions[n], wanted);
      const server = this.serverOf[n]!;
      const score = fit * (ofTool[n]! + ofServer[server]!);
      found.push({ label: this.labels[n]!, server, score });
    }
    found.sort((one, two) => two.score - one.score); // stable: equals keep the servers' order
    return shared(found, limit).map(({ label }) => label);
  }

  // ── What the query is about ──

  private conceptsIn(text: string) {
    const concepts = new Map<string, Concept>(); // by what was written: each counts once
    const add = (written: string, words: Map<string, number>, weight = 1) => {
      const isNew = words.size > 0 && !concepts.has(written);
      if (isNew && concepts.size < MAX_CONCEPTS) concepts.set(written, { words, weight });
    };
    for (const term of this.lexicon.terms(text))
      add(term, new Map([[term, 1], ...this.synonymsOf(term)]));

    for (const joined of this.lexicon.joined(text))
      if (this.postings.has(joined)) add(joined, new Map([[joined, 1]]));

    const stems = this.lexicon.stems(text);
    for (const [n, first] of stems.entries())
      for (const second of stems.slice(n + 1, n + 1 + GAP)) {
        const phrase = `${first} ${second}`;
        const others = [...this.synonymsOf(phrase).keys()];
        add(phrase, new Map(others.map((word) => [word, 1])), OF_PHRASE);
      }

    return [...concepts.values()];
  }

  private synonymsOf(term: string): Map<string, number> {
    return this.synonyms.get(term) ?? new Map();
  }

  // ── How well each tool fits ──

  private score({ words, weight }: Concept, ofTool: Float64Array, ofServer: Float64Array) {
    const counts = new Map<number, number>();
    for (const [word, share] of words) {
      const { tools = [], counts: each = [] } = this.postings.get(word) ?? {};
      for (let n = 0; n < tools.length; n++) {
        const tool = tools[n]!;
        counts.set(tool, (counts.get(tool) ?? 0) + share * each[n]!);
      }
    }
    const rarity = weight * rarityOf(this.spread(words, counts.size), this.labels.length);
    const mentions = new Map<number, number>(); // by server
    for (const [tool, count] of counts) {
      ofTool[tool]! += (rarity * count * (SATURATION + 1)) / (count + SATURATION);
      const server = this.serverOf[tool]!;
      mentions.set(server, (mentions.get(server) ?? 0) + Math.min(1, count));
    }
    const rarityOfServer = weight * rarityOf(mentions.size, this.toolsOf.length);
    for (const [server, mentioned] of mentions) {
      const share = mentioned / this.toolsOf[server]!;
      ofServer[server]! += (OF_SERVER * rarityOfServer * share) / (share + USUAL_SHARE);
    }
  }

  /** In how many tools a concept is: between those with the very word, and those with a synonym. */
  private spread(words: Map<string, number>, withSynonyms: number) {
    const [[own, share] = ['', 0], [, next = 0] = []] = words;
    const isPhrase = share === next; // there is no word of its own
    const tools = isPhrase ? undefined : this.postings.get(own)?.tools.length;
    return tools ? tools ** OF_THE_WORD * withSynonyms ** (1 - OF_THE_WORD) : withSynonyms;
  }
}

/** The fewer have it, the more it tells. */
function rarityOf(having: number, all: number): number {
  return Math.log(1 + (all - having + 0.5) / (having + 0.5));
}

/** For each word, and for phrases of two, the other words of its groups. In a short group they are
 *  closer. */
function synonymsIn(groups: readonly string[]) {
  const lexicon = new Lexicon();
  const found = new Map<string, Map<string, number>>();
  for (const group of groups) {
    const members = group.split('|').map((words) => lexicon.stems(words).join(' '));
    const closeness = 0.35 * Math.min(1, 3 / members.length + 0.3);
    for (const member of members) {
      const others = found.get(member) ?? new Map<string, number>();
      found.set(member, others);
      for (const other of members) {
        if (other === member || other.includes(' ')) continue;
        others.set(other, Math.max(closeness, others.get(other) ?? 0));
      }
    }
  }
  return found;
}

// ── What is indexed of a tool ──

type Document = Record<WeightedField, string[]>;
const MAX_DESCRIPTION = 1200; // characters; some go on for thirteen thousand
const MAX_TEXT = 200; // of one argument
const MAX_TEXTS = 2000; // of all of them
const MAX_ARGUMENTS = 300;
const MAX_DEPTH = 4;
const MAX_VALUES = 30;

function fieldsOf(tool: SearchableTool, lexicon: Lexicon): Document {
  const { first, rest } = sentencesOf(textIn(tool.description).slice(0, MAX_DESCRIPTION));
  const args: ArgumentTexts = { names: [], texts: [], values: [] };
  collect(tool.inputSchema, args, 0);
  const terms = (text: string) => lexicon.terms(text);
  return {
    server: terms(tool.server),
    name: terms(tool.name),
    firstSentence: terms(first),
    title: terms(textIn(tool.title)),
    description: terms(rest),
    argumentNames: terms(args.names.join(' ')),
    argumentTexts: terms(args.texts.join(' ').slice(0, MAX_TEXTS)),
    values: terms(args.values.join(' ')),
  };
}

const textIn = (value: unknown) => (typeof value === 'string' ? value : '');

/** The first sentence, or line, and what comes after it. */
export function sentencesOf(text: string): { first: string; rest: string } {
  const trimmed = text.trim();
  const end = /[.!?](?=\s|$)|[。\n]/.exec(trimmed);
  const length = end ? end.index + 1 : trimmed.length;
  return { first: trimmed.slice(0, length).trim(), rest: trimmed.slice(length).trim() };
}

type ArgumentTexts = { names: string[]; texts: string[]; values: string[] };

/** Of all arguments, also of those inside others. */
function collect(schema: unknown, into: ArgumentTexts, depth: number) {
  const { properties, items } = asObject(schema);
  for (const [name, argument] of Object.entries(asObject(properties))) {
    if (into.names.length >= MAX_ARGUMENTS) return;
    const { description, enum: values } = asObject(argument);
    into.names.push(name);
    into.texts.push(textIn(description).slice(0, MAX_TEXT));
    if (Array.isArray(values)) into.values.push(...values.slice(0, MAX_VALUES).map(textIn));
    if (depth < MAX_DEPTH) collect(argument, into, depth + 1);
  }
  if (items && depth < MAX_DEPTH) collect(items, into, depth + 1);
}

function averageLengths(documents: Document[]): Record<WeightedField, number> {
  const average = {} as Record<WeightedField, number>;
  for (const field of FIELDS) {
    let sum = 0;
    for (const document of documents) sum += document[field].length;
    average[field] = sum / documents.length || 1;
  }
  return average;
}
