// hasty.mjs: the same client with the `take` that most people write first.
//
//   node hasty.mjs TARGET STEPS       speaks the museum's contract
//   node hasty.mjs wrong-id           prints what an exhibit sends, and what became of it

import { speak, SmallClient } from './small.mjs';

class HastyClient extends SmallClient {
  take(line) {
    const message = JSON.parse(line);
    const { resolve } = this.waiting.get(parseInt(message.id));
    resolve(message.result);
  }
}

const text = (words) => ({ content: [{ type: 'text', text: words }] });
const answer = { jsonrpc: '2.0', id: 1, result: text('yours') };

/** What an exhibit sends while call 1 waits. */
const sent = {
  banner: ['Welcome to the server v1.2', answer],
  'wrong-id': [{ jsonrpc: '2.0', id: '1-x', result: text("another caller's") }, answer],
  'same-id': [{ jsonrpc: '2.0', id: 1, method: 'ping' }, answer],
  'unknown-notice': [{ jsonrpc: '2.0', method: 'notifications/weather' }, answer],
};

const [first, ...rest] = process.argv.slice(2);
if (rest.length > 0) await speak(HastyClient, JSON.parse(first), JSON.parse(rest[0]));
else {
  const show = (arrow) => (message) =>
    console.log(arrow, typeof message === 'string' ? message : JSON.stringify(message));
  const client = new HastyClient(show('→'));
  const call = client.request('tools/call', { name: 'echo', arguments: {} });
  let became = 'it waits';
  call.then((result) => (became = `the caller got ${JSON.stringify(result ?? 'nothing at all')}`));
  try {
    for (const message of sent[first]) {
      show('←')(message);
      client.take(typeof message === 'string' ? message : JSON.stringify(message));
    }
  } catch (error) {
    became = `the client crashed: ${error.message}`;
  }
  await new Promise(setImmediate);
  console.log(`  ${became}`);
}
