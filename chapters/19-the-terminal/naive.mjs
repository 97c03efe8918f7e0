// A chat as it is often written first: `node chapters/19-the-terminal/naive.mjs questions`, or `ctrl-c`.

import { createInterface } from 'node:readline';
import { PassThrough, Writable } from 'node:stream';

const say = (text) => console.log(text);
const pause = (ms, value) => new Promise((done) => setTimeout(done, ms, value));

const mistakes = {
  // readline's own question() listens to one line. What comes while nobody asks is gone.
  async questions() {
    const rl = createInterface({ input: process.stdin });
    const ask = (question) => new Promise((answered) => rl.question(question, answered));

    say(`prompt: ${await ask('')}`);
    await pause(50); // the model thinks, and wants to call a tool
    const answer = await Promise.race([ask('').catch(() => {}), pause(500)]); // what happens here differs from Node to Node
    say(`may it? ${answer ?? '(nobody answers)'}`);
  },

  // At a terminal readline takes every key itself, so that Ctrl-C is the byte 3 and no signal.
  async 'ctrl-c'() {
    const keyboard = new PassThrough(); // stands for the terminal
    const rl = createInterface({
      input: keyboard,
      output: new Writable({ write: (_, __, done) => done() }),
      terminal: true,
    });
    process.on('SIGINT', () => say('stopped'));
    rl.on('close', () => say('(readline has closed: there is no prompt any more)'));

    say('the model talks');
    keyboard.write('\x03');
    await pause(50);
    say('the model talks on');
  },
};

await mistakes[process.argv[2]]?.();
process.exit();
