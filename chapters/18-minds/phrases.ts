// phrases.ts: what people type who have not seen a single tool, as words that name one. What was
// made of a prompt is told, so nobody takes it for understanding.

const PLEASE = '^\\W*?(?:(?:please|hey|ok|so|can you|could you|tell me)[ ,]+)*';
const LOOK = "(?:what|which|list|show)(?: me|'?s|’s| is| are| do you see| all| the| in)*";
const HERE = ' (?:here|there|(?:this|the|my) (?:folder|directory|project)|files?)';
const END = '[\\s.?!]*$';
const ASK = "(?:(?:what|how much)(?:'?s|’s| is) |calculate )?";
const NUMBER = '(-?\\d+(?:\\.\\d+)?)';
const CREATE = '(?:create|make|write|add)(?: me)?(?: an?| the)?(?: new)?(?: text)?';
const NAME = '(?:file (?:called |named )?([^\\s"]+)|([^\\s"]+\\.\\w+))';
const SHOW =
  "(?:show(?: me)?|open|view|(?:what|which)(?:'?s|’s| is)(?: written)? in)(?: the)?(?: file)? ";
const SAYING = '(?:that |which )?(?:says|saying|contains|containing|reads|with)(?: the text)?';
const WORDS = '["“\']?([^"]+?)["”\']?\\s*$';
const MAX_PHRASE = 300; // characters: no prompt takes the square of its length

const phrase = (...parts: string[]) => new RegExp(PLEASE + parts.join(''), 'i');

/** Forms of prompts, and what each comes to. */
const PHRASES = [
  { form: phrase(LOOK, HERE, `(?:${HERE}| in| are| do you see)*`, END), words: 'run ls' },
  { form: phrase(ASK, NUMBER, ' ?(?:plus|and|\\+) ?', NUMBER, END), words: 'add $1 and $2' },
  { form: phrase(SHOW, '["“]?([^\\s"”?]+\\.\\w{1,8})["”]?', END), words: 'read "$1"' },
  {
    form: phrase(CREATE, ' ', NAME, ' ', SAYING, ' ', WORDS),
    words: 'write path=$1$2 content="$3"',
  },
];

const TOOLS = phrase('(?:what|which|list|show)\\b.{0,30}\\btools\\b.{0,20}$');

/** The words that a prompt stands for; nothing if it is none of these forms. */
export function meantBy(prompt: string): string | undefined {
  if (prompt.length > MAX_PHRASE) return undefined;
  const found = PHRASES.find(({ form }) => form.test(prompt));
  return found && prompt.replace(found.form, found.words);
}

export const asksForTools = (prompt: string) => prompt.length <= MAX_PHRASE && TOOLS.test(prompt);
