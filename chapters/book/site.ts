// site.ts: the book, and a client that runs in a page, as one folder that opens without a server.
//
//   npm run site            writes dist-site/
//   npm run site serve      and serves it to this machine, for pages that talk to servers on it

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, extname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isFile, read } from './files.ts';
import { readBook, root, type Book } from './pages.ts';
import { playgroundFiles } from './playground.ts';
import { problemsOfSite } from './site/checks.ts';
import { exerciseFiles, exercisesInPage } from './site/exercises.ts';
import { growthPage } from './site/growth.ts';
import { loadMarkdown } from './site/markdown.ts';
import { render, renderFolder, renderSource, type Finding, type Heading } from './site/render.ts';
import { ENGLISH, Shelf, type Woven } from './site/shelf.ts';
import { Shell } from './site/shell.ts';
import { wiresOf } from './site/wires.ts';
import { wovenPages } from './weave.ts';
import { bundleForWeb } from './web.ts';

const FOLDER = 'dist-site';
const PORT = 8033;
const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
};

export type SiteFiles = Map<string, string | Buffer>;

/** All files by their names, and what is wrong with them. */
export async function siteFiles(book: Book = readBook()) {
  const files: SiteFiles = new Map([['.nojekyll', '']]);
  const [wires, playground] = await Promise.all([wiresOf(book), playgroundFiles()]);
  for (const [name, text] of [...playground, ...(await exerciseFiles(book))]) files.set(name, text);
  for (const [step, script] of wires.scripts) files.set(`wire-${step}.js`, script);
  await addPages(book, files, wovenPages(book));
  files.set('book.css', read(root, 'chapters/book/site/book.css'));
  const entry = `import { beginBook } from './chapters/book/site/dom/book.ts'; beginBook();`;
  files.set('book.js', await bundleForWeb(entry, { format: 'iife', minify: true }));
  return { files, problems: [...wires.problems, ...problemsOfSite(book, files)] };
}

async function addPages(book: Book, files: SiteFiles, woven: Woven[]): Promise<void> {
  const shelf = new Shelf(book, woven);
  const shell = new Shell(book, shelf);
  const Markdown = await loadMarkdown();
  const md = new Markdown({ html: true });
  const findings: Record<string, Finding[]> = {};
  const ids = new Map<string, string[]>(); // the anchors of a page in English
  const exercises = new Map(
    exercisesInPage(book).map(({ name, quotation }) => [quotation.page, name]),
  );
  const addPage = (page: Parameters<typeof render>[2]) => {
    const text = page.text ?? read(book.root, page.page);
    const shown = render(md, shelf, page, text, page.text ? ids.get(page.page) : []);
    const { title, headings } = shown;
    const exercise = exercises.get(page.page);
    const html = exercise ? withExercise(shown.html, exercise, headings) : shown.html;
    if (page.language === ENGLISH)
      ids.set(
        page.page,
        headings.map(({ id }) => id),
      );
    const sheet = { title, language: page.language, body: html, headings, page };
    files.set(page.name, shell.around(sheet));
    (findings[page.language] ??= []).push(...shown.findings);
  };
  for (const page of shelf.pages.values()) addPage(page); // it grows while it is read
  for (const page of shelf.translations) addPage(page);
  for (const [file, name] of shelf.sources) {
    const isWhole = isFile(book.root, file);
    const body = isWhole
      ? renderSource(file, read(book.root, file))
      : renderFolder(file, shelf.filesIn(file));
    files.set(name, shell.around({ title: file, language: ENGLISH, body }));
  }
  for (const [file, name] of shelf.pictures) files.set(name, readFileSync(join(book.root, file)));
  const growth = { title: 'How the program grows', language: ENGLISH, body: growthPage(book) };
  files.set('growth.html', shell.around(growth));
  for (const [language, all] of Object.entries(findings)) {
    const rows = all.map(({ page, heading, id, text }) => [page, heading, id, text.trim()]);
    const name = JSON.stringify(language);
    files.set(
      `search-${language}.js`,
      `(window.FINDINGS ??= {})[${name}] = ${JSON.stringify(rows)};\n`,
    );
  }
}

/** Below its heading, a link to the page where it can be solved. */
function withExercise(html: string, name: string, headings: Heading[]): string {
  const { id } = headings.find((heading) => heading.id.startsWith('exercise-'))!;
  const link = `<a href="exercise-${name}.html">▶ Solve it in the browser</a>`;
  const isHeading = new RegExp(`<h2 id="${id}">.*?</h2>`);
  return html.replace(isHeading, (heading) => `${heading}\n<p class="exercise">${link}</p>`);
}

/** To this machine alone, and nothing but these files. */
export async function serveSite(
  files: SiteFiles,
  port = 0,
): Promise<{ server: Server; url: string }> {
  const server = createServer(({ url = '/', method }, response) => {
    const name = url === '/' ? 'index.html' : url.split(/[?#]/)[0]!.slice(1);
    const text = method === 'GET' ? files.get(name) : undefined;
    const kind = TYPES[extname(name)] ?? 'text/plain';
    const type = kind === 'image/png' ? kind : `${kind}; charset=utf-8`;
    const headers = { 'content-type': type, 'x-content-type-options': 'nosniff' };
    response.writeHead(text === undefined ? 404 : 200, headers).end(text ?? 'not here\n');
  });
  await new Promise<void>((done, fail) => {
    server.once('error', fail).listen(port, '127.0.0.1', done);
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}

/** Afterwards the folder holds these files, and no others. */
export function writeSite(folder: string, files: SiteFiles): void {
  rmSync(folder, { recursive: true, force: true });
  for (const [name, text] of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

async function main(command = ''): Promise<void> {
  const { files, problems } = await siteFiles();
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
  writeSite(join(root, FOLDER), files);
  console.log(`${files.size} files in ${FOLDER}/: open ${join(FOLDER, 'index.html')}`);
  if (command !== 'serve') return;
  const { url } = await serveSite(files, PORT);
  console.log(`They are also at ${url} until Ctrl-C. A server of ours lets them in with`);
  console.log(`  npm start -- serve --http --allow-origin ${url.slice(0, -1)}`);
}

if (resolve(process.argv[1] ?? '') === fileURLToPath(import.meta.url)) await main(process.argv[2]);
