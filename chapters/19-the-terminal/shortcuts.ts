// What a user can type besides words: !command, which is run, and @file, which is sent along.
//
// Only what is typed at a terminal counts. A prompt that comes through a pipe or as an argument may
// hold anybody's words, and nothing in it may run, or send a file along.

import { statSync } from 'node:fs';
import { basename } from 'node:path';
import type { Turn } from '../../agent.ts';
import type { Json } from '../../mcp.ts';
import { openFile, type Location } from '../16-hands/paths.ts';
import { agrees } from '../17-the-gate/dialogue.ts';
import { exact, quoted } from '../17-the-gate/safe-text.ts';
import type { Attached } from './host.ts';
import type { Program } from './program.ts';
import { inSeconds } from './show.ts';
import { cutToWidth } from './screen.ts';

const MAX_FILE = 50_000; // bytes of a file that are sent
const MAX_FILES = 20;
const MAX_RAN = 100_000; // characters of what was run before one prompt
const MAX_SECONDS = 600;
const MENTION = /(?<=^|[\s(])@(?:"([^"\n]+)"|([^\s"]+))/g;

export const isShellLine = (line: string) => /^\s*!\s*\S/.test(line);

export class Shortcuts {
  private program: Program;
  private ran: string[] = []; // since the last prompt: commands, with what came out

  constructor(program: Program) {
    this.program = program;
  }

  /** In the same shell as the tool, but without a question: the user has typed it. */
  async run(line: string, signal: AbortSignal): Promise<void> {
    const { screen, masker, composition } = this.program;
    const command = line.trim().slice(1).trim();
    const shell = composition.tools.find(({ definition }) => definition.name === 'bash');
    if (!shell) return screen.say('this program has no shell', 'red');
    const onProgress = this.showLive(command);
    try {
      const args = { command, timeout: MAX_SECONDS };
      const { blocks, isError } = await shell.run(args, { signal, onProgress });
      const text = blocks.map((block) => (block.type === 'text' ? block.text : '')).join('\n');
      screen.stopSpinning();
      const shown = text.replace(/\n?exit code 0$/, '');
      if (shown !== '') screen.say(masker.text(shown), isError ? 'red' : undefined);
      const ran = `$ ${command}\n${text}`.slice(-MAX_RAN);
      this.keep(`I ran this command myself:\n${fenced(exact(ran))}`);
    } catch (error) {
      screen.say(masker.text((error as Error).message), 'red');
    } finally {
      screen.stopSpinning();
    }
  }

  /** The end of what it has written, below the spinner. */
  private showLive(command: string): (progress: Json) => void {
    const { screen, masker } = this.program;
    const startedAt = screen.clock();
    let live: string[] = [];
    screen.spin(() => {
      const rows = live.map((row) => `  ${cutToWidth(`│ ${row}`, screen.width - 3)}`);
      return [`$ ${command} ${inSeconds(screen.clock() - startedAt)}`, ...rows];
    });
    return ({ output }) => {
      live = masker
        .text(`${output ?? ''}`)
        .trimEnd()
        .split('\n');
    };
  }

  /** For the model, with the next prompt. */
  keep(what: string): void {
    this.ran.push(what);
    while (this.ran.length > 1 && this.ran.join('').length > MAX_RAN) this.ran.shift();
  }

  forget(): void {
    this.ran = [];
  }

  /** The prompt as the model gets it. Nothing if the user does not want it to be sent. */
  async expand(prompt: string, isTyped: boolean, signal: AbortSignal): Promise<Turn[] | undefined> {
    const { files, others } = this.mentioned(isTyped ? prompt : '');
    const attached = await this.attach(others, signal);
    const texts: string[] = [];
    for (const { shown, location } of files) {
      if (!(await this.mayBeSent(location, signal))) return undefined;
      texts.push(await this.contentOf(shown, location));
    }
    const ran = this.ran.splice(0);
    const news = await this.program.news(signal);
    const brought = [...texts, ...attached.map(({ text }) => text)].filter(Boolean);
    const text = [prompt, ...ran, ...brought, ...news].join('\n\n');
    const images = attached.flatMap((each) => each.images);
    return [{ role: 'user', text, ...(images.length > 0 && { images }) }];
  }

  /** Words behind an @: files, and what may be something else. `user@host` and `@types/node` are just
   *  words. */
  private mentioned(prompt: string) {
    const found = new Map<string, { shown: string; location: Location }>();
    const others = new Map<string, string[]>();
    for (const [, inQuotes, word = ''] of prompt.matchAll(MENTION)) {
      const named = inQuotes === undefined ? withoutTail(word) : [inQuotes];
      const first = named.map((path) => this.fileAt(path)).find(Boolean);
      if (first && found.size < MAX_FILES) found.set(first.location.real, first);
      if (!first && others.size < MAX_FILES) others.set(named[0] ?? '', named);
    }
    return { files: [...found.values()], others: [...others.values()] };
  }

  /** What rows of the program know by these names. */
  private async attach(all: string[][], signal: AbortSignal): Promise<Attached[]> {
    const { mentions = [] } = this.program.composition;
    const found: Attached[] = [];
    for (const named of all) {
      let first: Attached | undefined;
      for (const each of mentions) first ??= await each.attach(named, this.program, signal);
      if (first) found.push(first);
      else this.tellMissing(named.at(-1) ?? '');
    }
    return found;
  }

  /** A name with a slip in it should not pass for the file, nor a folder for what is in it. */
  private tellMissing(path: string) {
    const looksLikeFile = /\.\w+$|\/$|^(~|\.{0,2})\//.test(path);
    if (this.isFolder(path)) this.tell(path, 'it is a folder, so only its name is sent');
    else if (looksLikeFile) this.tell(path, 'it is no file, so only its name is sent');
  }

  private isFolder(path: string) {
    try {
      return statSync(this.program.roots.locate(path).real).isDirectory();
    } catch {
      return false; // there is none
    }
  }

  private tell(shown: string, what: string) {
    this.program.screen.say(`  @${shown}: ${what}`, 'dim');
  }

  private fileAt(path: string): { shown: string; location: Location } | undefined {
    const { roots } = this.program;
    try {
      const location = roots.locate(path);
      const isFile = statSync(location.real).isFile();
      return isFile ? { shown: roots.show(location.real), location } : undefined;
    } catch {
      return undefined; // there is none
    }
  }

  /** Inside of the folder the model may read anyway. What is outside, may be secret or is kept from
   *  it by a rule is asked about: a text that was pasted can name such a file, too. */
  private async mayBeSent(location: Location, signal: AbortSignal) {
    const { person, gate } = this.program;
    const { real, named, readable } = location;
    const isHidden = gate.isHidden(real) || gate.isHidden(named);
    const hidden = isHidden ? 'a rule keeps it from the model' : undefined;
    const outside = readable ? undefined : 'it is outside the folder';
    const why = location.secret ?? hidden ?? outside;
    if (why === undefined) return true;
    const lines = [`Your prompt names ${quoted(location.real)} (${why}).`];
    const prompt = 'Send its content to the model?';
    return agrees(person, { lines, prompt, ifEmpty: undefined, signal });
  }

  private async contentOf(shown: string, location: Location) {
    const tell = (what: string) => this.tell(shown, what);
    try {
      const file = await openFile(location);
      try {
        const { size } = await file.stat();
        const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_FILE), 0, MAX_FILE, 0);
        const bytes = buffer.subarray(0, bytesRead);
        if (bytes.includes(0)) {
          tell('it is no text, so only its name is sent');
          return '';
        }
        const isCut = size > bytesRead;
        const where = location.inside ? '' : `, of ${location.real}`;
        const part = isCut ? `the first ${bytesRead} of ${size} bytes` : `${size} bytes`;
        tell(`${part} are sent${where}`);
        return `The file ${shown}, ${part}, as data:\n${fenced(exact(bytes.toString()))}`;
      } finally {
        await file.close();
      }
    } catch (error) {
      tell(`it is not sent: ${(error as Error).message}`);
      return '';
    }
  }
}

/** In prose a full stop or a bracket may follow. */
function withoutTail(word: string) {
  const words = [word];
  while (/[.,;:!?)\]}'>]$/.test(words.at(-1)!)) words.push(words.at(-1)!.slice(0, -1));
  return words.filter((each) => basename(each) !== '');
}

/** Between fences that do not occur in it. */
export function fenced(text: string): string {
  let fence = '```';
  while (text.includes(fence)) fence += '`';
  return `${fence}\n${text.replace(/\n$/, '')}\n${fence}`;
}
