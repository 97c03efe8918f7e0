// A file of what happened: one record per line, without secrets.

import { resolve } from 'node:path';
import type { AgentEvent } from '../../../agent.ts';
import { asList, asObject, now, show, textOf, VERSION, type Json } from '../../../mcp.ts';
import { sha256 } from '../../17-the-gate/digest.ts';
import type { Masker } from '../../17-the-gate/safe-text.ts';
import { ToldRequests } from '../../18-minds/told-requests.ts';
import { refused } from '../exit.ts';
import type { PlainScreen } from './plain-screen.ts';
import { appendPrivately } from '../session-file.ts';

/** The first line of every trace: which version of the format it is, and when it began. */
export function traceHeader(): Json {
  const program = `mcp-by-hand ${VERSION}`;
  return { trace: 1, program, node: process.version, started: new Date().toISOString() };
}

/** Where records go: to a file, to a page that is open, or nowhere. */
export class Trace {
  isLost = false; // it was asked for, and ends before its time
  file?: string; // where it goes, if it is kept
  private watch?: (line: string) => void; // gets each line, too
  private requests = new ToldRequests(); // to a model
  private screen: PlainScreen;
  private masker: Masker;
  private begin = now(); // the time of day can jump

  constructor(screen: PlainScreen, masker: Masker, file?: string) {
    this.screen = screen;
    this.masker = masker;
    this.keep(file);
  }

  /** From here on into this file; or into none. */
  keep(file?: string): void {
    const path = file && resolve(file);
    try {
      if (path) appendPrivately(path, JSON.stringify(traceHeader()));
    } catch (error) {
      throw refused(`cannot write the trace: ${textOf(error)}`);
    }
    this.file = path;
    this.requests.forget();
  }

  /** From here on also to this listener. */
  follow(watch: (line: string) => void): void {
    this.watch = watch;
    this.requests.forget();
  }

  /** Whole answers; their pieces are for the screen. */
  event(event: AgentEvent): void {
    const isWanted = Boolean(this.file || this.watch);
    if (isWanted && !isPiece(event)) this.write(this.requests.told(event));
  }

  /** What is not a message is noise. */
  wire(dir: 'out' | 'in', message: unknown, server: string): void {
    const isMessage = typeof message === 'object';
    this.write({ dir, server, [isMessage ? 'msg' : 'noise']: withoutHtml(message) });
  }

  write(record: Json): void {
    const { file, watch } = this;
    if (!file && !watch) return;
    const at = Math.round((now() - this.begin) * 1000) / 1000; // milliseconds
    const line = this.masker.json({ at, ...record });
    watch?.(line);
    if (file) this.append(file, line);
  }

  private append(file: string, line: string) {
    try {
      appendPrivately(file, line);
    } catch (error) {
      this.file = undefined;
      this.isLost = true; // a full disk must not end what it is a trace of
      this.screen.warn(`the trace ends here: ${textOf(error)}`);
    }
  }
}

/** The page of an app may be megabytes, and the trace has enough of it with its length and hash. */
function withoutHtml(message: unknown): unknown {
  const { result, ...rest } = asObject(message);
  const contents = asList(asObject(result).contents).map(asObject);
  if (!contents.some(isHtml)) return message;
  const brief = (each: Json) => {
    const { text = each.blob, blob: _, ...about } = each;
    return { ...about, length: show(text).length, hash: sha256(show(text)) };
  };
  const short = contents.map((each) => (isHtml(each) ? brief(each) : each));
  return { ...rest, result: { ...asObject(result), contents: short } };
}

const isHtml = ({ mimeType }: Json) => mimeType === 'text/html;profile=mcp-app';

function isPiece(event: AgentEvent): boolean {
  return event.type === 'agent' ? isPiece(event.event) : event.type === 'text';
}
