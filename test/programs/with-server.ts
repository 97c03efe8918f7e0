// A program with a stubborn server, which ends in the way that the first argument names.
// The server and its child write their pids into the file of the second argument.
// (With `polite` it is a server that leaves when its stdin ends, and says so in that file.)

import { McpConnection } from '../help/subject.ts';
import { habit, pidsIn, until } from '../help/basics.ts';

const [ending, file = ''] = process.argv.slice(2);
if (ending === 'own-plan-once')
  process.once('SIGINT', () => setTimeout(() => (console.log('saved'), process.exit(7)), 200));
if (ending === 'beside-a-library') {
  // Libraries such as signal-exit end the program only when no other listener is there.
  const listener = () => {
    if (process.listeners('SIGINT').length > 1) return;
    process.off('SIGINT', listener);
    process.kill(process.pid, 'SIGINT');
  };
  process.on('SIGINT', listener);
}
const isPolite = ending === 'polite' || ending === 'beside-a-library';
const connection = new McpConnection('demo', habit(isPolite ? 'leaves-late' : 'stubborn', file));
await connection.connect();
if (ending === 'while-connecting') {
  void new McpConnection('mute', habit('mute')).connect();
  void connection.initialize().catch(() => {});
} else await connection.initialize();
if (!isPolite) await until(() => pidsIn(file).length === 2);

if (ending === 'own-plan') process.on('SIGINT', () => console.log('interrupted, going on'));
if (ending === 'normal-exit') process.exit(0);
if (ending === 'exception') throw new Error('a bug in the program');
if (ending === 'rejection') void Promise.reject(new Error('a bug in the program'));
console.log('ready');
if (ending === 'while-connecting') process.exit(0);
setInterval(() => {}, 1e9);
