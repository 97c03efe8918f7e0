// Restarting as it is often written first: `node chapters/26-staying-alive/naive.mjs mail`, or
// `loop`.

import { spawn } from 'node:child_process';

const lives = { mail: 0, loop: 0 };

/** Two servers. One sends the mail, and in its first life dies before it can say so. The other dies
 *  of every call. */
const servers = {
  mail: `process.stdin.once('data', () => {
    console.error('the server: I send "you owe me 42" to Ada');
    if (process.argv[1] === '1') process.exit(1);
    process.stdout.write('sent');
  })`,
  loop: 'process.exit(3)',
};

function request(which) {
  lives[which]++;
  const server = spawn(process.execPath, ['-e', servers[which], `${lives[which]}`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    server.stdin.on('error', () => {});
    server.stdin.write('call\n');
    server.stdout.once('data', (text) => {
      resolve(`${text}`);
      server.kill();
    });
    server.on('exit', (code) => reject(new Error(`exited with code ${code}`)));
  });
}

const mistakes = {
  async mail() {
    async function call() {
      for (;;) {
        try {
          return await request('mail');
        } catch {} // it died: start it again, and request it again
      }
    }
    console.log(`the caller: ${await call()}`);
  },

  async loop() {
    const startedAt = performance.now();
    // It would go on; 20 are enough to see it.
    while (lives.loop < 20) await request('loop').catch(() => {});
    const ms = Math.round(performance.now() - startedAt);
    console.log(`20 processes in ${ms} ms, and the caller has heard nothing yet`);
  },
};

await mistakes[process.argv[2]]?.();
