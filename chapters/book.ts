// book.ts: the door to the machinery of the book, which is in book/. The pages quote the program, and the quotations say
// whose a line is; so the program of each chapter can be cut out of the files at the top.
//
//   npm run book check | fix | deep      is the book true? repair its quotations; run every chapter's tests
//   npm run book fifty [6]               is a right solution ever refused, fifty times, beside other work?
//   npm run book limits [5]              how long the pages are, and may be
//   npm run book pictures                draw them again
//   npm run book weave [todo | publish]  how much is said in another language, and what has become stale
//   npm run book homes [move]            which modules are in the wrong folder, now that the pages quote what they quote
//   npm run chapter 5 [before | diff | code | page]      the program as it is at the end of a chapter
//   npm run workshop [start | check | hint | reset | watch | compare  N]

import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fixCaptions } from './book/captions.ts';
import { chapterCommand } from './book/chapter.ts';
import { check } from './book/check.ts';
import { fixContents } from './book/contents.ts';
import { deep } from './book/deep.ts';
import { fifty } from './book/fifty.ts';
import { usage } from './book/files.ts';
import { fix } from './book/fix.ts';
import { moveFiles, problemsOfHomes, wrongHomes } from './book/homes.ts';
import { fixInstructor } from './book/instructor.ts';
import { judge, judgeOf } from './book/judge.ts';
import { fixLimits, tellLimits } from './book/limits.ts';
import { readBook } from './book/pages.ts';
import { drawPictures } from './book/pictures.ts';
import { tellShares } from './book/shares.ts';
import { tellWeaving, weave } from './book/weave.ts';
import { exerciseNamed, workshop } from './book/workshop.ts';

export type { Bench, Judge } from './book/exercise.ts'; // for the judges of the chapters

export async function main([command = '', ...args]: string[], at?: string): Promise<void> {
  const book = readBook(at);
  const tell = (problems: string[], good: string) => {
    for (const problem of problems) console.error(problem);
    if (problems.length === 0) console.log(good);
    else process.exitCode = 1;
  };
  if (command === 'check')
    tell(
      await check(book, args[0]),
      [...tellShares(book), ...tellWeaving(book), 'The book is true.'].join('\n'),
    );
  else if (command === 'fix') {
    const lost = fix(book);
    if (lost.length === 0) fixCaptions(readBook(at));
    if (lost.length === 0) fixLimits(readBook(at));
    if (lost.length === 0) fixContents(readBook(at));
    if (lost.length === 0) fixInstructor(readBook(at));
    tell(lost, 'Every quotation matches.');
  } else if (command === 'deep')
    tell(await deep(book, args[0]), 'Every chapter adds what it says.');
  else if (command === 'fifty') tell(await fifty(book, args[0]), 'No right solution is refused.');
  else if (command === 'limits') console.log(tellLimits(book, args[0]).join('\n'));
  else if (command === 'pictures') drawPictures(book);
  else if (command === 'weave')
    tell(weave(book, args[0]), 'What is said has the code, links and figures of the English.');
  else if (command === 'homes') {
    if (args[0] === 'move') moveFiles(book, wrongHomes(book));
    tell(problemsOfHomes(readBook(at)), 'Every file is where it belongs.');
  } else if (command === 'chapter') await chapterCommand(book, args);
  else if (command === 'workshop') await workshop(book, ...args);
  else if (command === 'judge') await judge(judgeOf(book, exerciseNamed(book, args[0])), args[1]!);
  else
    throw usage(
      'npm run book check | fix | deep | fifty | limits | pictures | weave | homes; npm run chapter; npm run workshop',
    );
}

// `| head` closes the pipe when it has seen enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) =>
  process.exit(error.code === 'EPIPE' ? 0 : 1),
);

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url))
  main(process.argv.slice(2)).catch((error) => {
    console.error(error.isUsage ? error.message : error);
    process.exit(error.isUsage ? 2 : 1);
  });
