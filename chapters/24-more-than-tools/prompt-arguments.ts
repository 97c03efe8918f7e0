// prompt-arguments.ts: what is typed behind the name of a prompt, as the prompt's arguments.

/** An argument that a prompt declares. */
export type Declared = { name: string; description: string; isRequired: boolean };
type Given = {
  args: Record<string, string>;
  missing: Declared[]; // the required ones that were not given
};

const WORD = /(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\s])+/gs;
const PIECE = /"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)|([^])/gs;

/** Words as a shell would see them: "two words", 'two words', two\ words. A quote that nothing closes
 *  is a letter. */
export function shellWords(text: string): string[] {
  return [...text.matchAll(WORD)].map(([word]) => {
    const pieces = [...word.matchAll(PIECE)].map(([, double, single, escaped, letter]) => {
      const inside = double?.replace(/\\(["\\])/g, '$1');
      return inside ?? single ?? escaped ?? letter ?? '';
    });
    return pieces.join('');
  });
}

/** `name=value` for any argument, the other words in the order of declaration. With more words than
 *  arguments it is mostly one text: the last argument that must be given takes what is left. */
export function argumentsFrom(text: string, declared: Declared[]): Given {
  const args = new Map<string, string>();
  const loose: string[] = [];
  for (const word of shellWords(text)) {
    const name = word.slice(0, Math.max(0, word.indexOf('=')));
    const isNamed = declared.some((each) => each.name === name) && !args.has(name);
    if (isNamed) args.set(name, word.slice(name.length + 1));
    else loose.push(word);
  }
  const open = declared.filter(({ name }) => !args.has(name));
  const isForNobody = open.length === 0 && loose.length > 0;
  if (isForNobody) throw new Error(`what is ${loose[0]}? ${formOf(declared)}`);
  const lastRequired = open.findLastIndex(({ isRequired }) => isRequired);
  const taker = lastRequired === -1 ? open.length - 1 : lastRequired;
  const isTooMuch = loose.length > open.length;
  for (const [n, { name }] of open.entries()) {
    const words = isTooMuch && n === taker ? loose.splice(0) : loose.splice(0, 1);
    if (words.length > 0) args.set(name, words.join(' '));
  }
  const missing = declared.filter(({ name, isRequired }) => isRequired && !args.has(name));
  return { args: Object.fromEntries(args), missing };
}

/** `it takes city=…, and if you like style=…` */
export function formOf(declared: Declared[]): string {
  const list = (wanted: boolean) => {
    const some = declared.filter(({ isRequired }) => isRequired === wanted);
    return some.map(({ name }) => `${name}=…`).join(' ');
  };
  const optional = list(false) && `if you like ${list(false)}`;
  const parts = [list(true), optional].filter(Boolean);
  return parts.length === 0 ? 'it takes no arguments' : `it takes ${parts.join(', and ')}`;
}
