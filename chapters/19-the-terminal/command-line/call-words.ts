// What can be said behind `call`: which server, which tool, which arguments.

import { usage } from '../exit.ts';
import { readReach, type Reach } from './one-server.ts';
import { FLAG, TEXT_FLAG } from './parse.ts';

const FLAGS = { args: TEXT_FLAG, 'no-check': FLAG, data: FLAG, save: TEXT_FLAG } as const;
const FORMS = `write call SERVER TOOL key=value …
       call URL TOOL key=value …
       call TOOL key=value … -- COMMAND ARGS`;

export type WantedCall = Reach & {
  server: string;
  tool: string;
  words: string[]; // the arguments
  json?: string; // all of them as one object, in a file, or - for stdin
  isChecked: boolean; // by the tool's schema, before anything is sent
  isData: boolean; // structured content alone
  save?: string; // a folder for pictures, sounds and files
};

export function readCall(args: string[]): WantedCall {
  const { reach, values } = readReach(args, FLAGS);
  const { server, words } = reach;
  const [tool, ...given] = words;
  if (server === undefined || tool === undefined)
    throw usage(`which tool, of which server?\n${FORMS}`);
  return {
    ...reach,
    server,
    tool,
    words: given,
    json: values.args,
    isChecked: !values.noCheck,
    isData: values.data,
    save: values.save,
  };
}
