// exercise-page.ts: an exercise in a web page: a text, a button, and the unchanged judge in a worker.

import { transform } from 'sucrase';
import { endedBy, ENDLESS, fault, LEFT_EARLY, LIMIT_MS, LOOP_S, TOO_LATE } from '../bench.ts';
import type { PageExercise } from '../site/exercises.ts';
import { startWorker, type Modules, type Task } from './script.ts';
import type { Verdict } from '../judge.ts';

declare const RUNTIME: string; // the text of runtime.ts as a script
declare const EXERCISE: PageExercise; // of the script beside the page

/** The verdict on what was written; `tell` is given the output as it grows. */
export function judged(inside: string, tell: (output: string) => void): Promise<Verdict> {
  const { name, before, after, file, judge, modules } = EXERCISE;
  const source = `${before}\n${inside}\n${after}`;
  let own: Modules;
  try {
    own = { [file]: asModule(source, file) };
  } catch (error) {
    return Promise.resolve(unreadable((error as Error).message));
  }
  const world = { pid: 7, cwd: '/work', env: { PATH: '/usr/bin', HOME: '/home/you' } };
  const task: Task = { role: 'judge', file: judge, args: [name], world };
  const word = crypto.randomUUID();
  const parts = { runtime: RUNTIME, modules: { ...modules, ...own } };
  return verdictOf(startWorker(parts, task, word), word, tell);
}

const unreadable = (why: string): Verdict => ({
  isGreen: false,
  output: `${fault('Node can load the program', 'no error', why)}\n`,
});

/** Without its types, as a CommonJS module. Lines stay where they are. */
function asModule(source: string, file: string): string {
  const transforms = file.endsWith('.ts') ? ['typescript', 'imports'] : ['imports'];
  const { code } = transform(source, { transforms, filePath: file, disableESTransforms: true });
  return code.replaceAll('import.meta.url', '__url');
}

/** As `verdict` of judge.ts: green is who says a word that the solution cannot know, and then leaves. */
function verdictOf(worker: Worker, word: string, tell: (output: string) => void): Promise<Verdict> {
  let output = '';
  let still = -LOOP_S; // seconds without a sign; the first may take twice as long
  return new Promise((done) => {
    const end = (isGreen: boolean, more = '') => {
      worker.terminate();
      clearInterval(watch);
      clearTimeout(timer);
      done({ isGreen, output: output + more });
    };
    const timer = setTimeout(() => end(false, TOO_LATE), LIMIT_MS);
    const watch = setInterval(() => {
      if (++still >= LOOP_S) end(false, ENDLESS);
    }, 1000);
    worker.onmessage = ({ data: { out, err, exit } }) => {
      still = Math.min(still, 0);
      if (out ?? err) {
        output += new TextDecoder().decode(out ?? err);
      }
      const isSaid = output.endsWith(`${word}\n`);
      if (!isSaid) tell(output);
      if (exit === undefined) return;
      const isWell = exit === 0 && isSaid;
      if (isWell) output = output.slice(0, -word.length - 1);
      end(isWell, exit === 0 && !isWell ? LEFT_EARLY : '');
    };
    worker.onerror = (event) => {
      event.preventDefault(); // sucrase reads more than an engine does
      end(false, event.message ? unreadable(event.message).output : endedBy('the browser'));
    };
  });
}

// ─── The page ───────────────────────────────────────────────────────────────────────────────────

const at = <Kind extends HTMLElement>(id: string) => document.getElementById(id) as Kind;

export function begin(): void {
  const { name, start, before, after, ours } = EXERCISE;
  const text = at<HTMLTextAreaElement>('yours');
  const verdict = at('verdict');
  const kept = `mcp-by-hand exercise ${name}`;
  const heads = before.split('\n');
  const tails = after.split('\n');
  at('first').textContent = heads.at(-1)!;
  at('last').textContent = tails[0]!;
  at('before').textContent = heads.slice(0, -1).join('\n');
  at('after').textContent = tails.slice(1).join('\n');
  const put = (inside: string) => {
    text.value = inside;
    text.rows = Math.max(8, inside.split('\n').length + 2);
  };
  put(remembered(kept) ?? start);
  text.addEventListener('input', () => remember(kept, text.value));

  let run = 0;
  const check = async () => {
    const mine = ++run;
    const isLatest = () => mine === run;
    verdict.dataset.state = 'judging';
    verdict.textContent = 'Judging …';
    const { isGreen, output } = await judged(text.value, (soFar) => {
      if (isLatest()) verdict.textContent = soFar;
    });
    if (!isLatest()) return;
    verdict.textContent = output + (isGreen ? 'Solved. Ours is below.' : '');
    verdict.dataset.state = isGreen ? 'green' : 'red';
    at('ours').hidden = !isGreen;
  };
  at('ours-text').textContent = ours;
  at('check').addEventListener('click', check);
  text.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void check();
  });
  let other = start; // what the button brings
  at('again').addEventListener('click', () => {
    const mine = text.value;
    put(other);
    remember(kept, other);
    other = mine;
    at('again').textContent = text.value === start ? 'Back to mine' : 'Begin again';
  });
}

// A browser may keep nothing for a page that was opened as a file, or for anybody.
function remember(key: string, text: string): void {
  try {
    localStorage.setItem(key, text);
  } catch {}
}

function remembered(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}
