// What a client does that answers for its user. `node naive.mjs accept` or `node naive.mjs wait`.
// The server is a function that behaves as real ones do; no line of it is ours to change.

/** Before it drops a database, it asks; and it goes by the action alone, as some servers do. */
async function dropDatabase(ask) {
  const answer = await ask({
    message: 'You are about to drop the database "customers".',
    requestedSchema: {
      type: 'object',
      properties: { decision: { type: 'string', enum: ['approve', 'reject'] } },
    },
  });
  return answer.action === 'accept' ? 'dropped' : 'not dropped';
}

/** A server that waits a minute for an answer (here: a tenth of a second), and then gives up. */
async function withPatience(ask) {
  const patience = new Promise((done) =>
    setTimeout(done, 100, 'the server: nobody answered, the call has failed'),
  );
  return Promise.race([
    patience,
    ask({ message: 'Which city?' }).then(() => 'the server: thank you'),
  ]);
}

const mistakes = {
  async accept() {
    // It cannot draw a list, so it sends what it has: nothing.
    const empty = async () => ({ action: 'accept', content: {} });
    console.log(`a client that cannot draw the form: ${await dropDatabase(empty)}`);
    // It can, and the user chooses "reject".
    const chosen = async () => ({ action: 'accept', content: { decision: 'reject' } });
    console.log(`a user who chose "reject":          ${await dropDatabase(chosen)}`);
    const declined = async () => ({ action: 'decline' });
    console.log(`a user who declined:                ${await dropDatabase(declined)}`);
  },

  async wait() {
    const thoughtful = () => new Promise((done) => setTimeout(done, 300, { action: 'accept' }));
    console.log(await withPatience(thoughtful));
  },
};

await mistakes[process.argv[2]]?.();
