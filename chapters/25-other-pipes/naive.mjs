// Pipes as they are often written first: `node chapters/25-other-pipes/naive.mjs at-once`, `shared`
// or `buffers`.

const mistakes = {
  // What one end sends, the other receives: in the same breath.
  'at-once'() {
    const pair = () => {
      const ours = {};
      const theirs = {};
      ours.send = (message) => theirs.onmessage(message);
      theirs.send = (message) => ours.onmessage(message);
      return [ours, theirs];
    };

    const [client, server] = pair();
    const waiting = new Map();
    server.onmessage = ({ id }) => server.send({ id, result: 42 });
    client.onmessage = ({ id, result }) => {
      if (waiting.has(id)) console.log(`${waiting.get(id)}: ${result}`);
      else console.log(`an answer to ${id}, for which nothing waits`);
    };
    client.send({ id: 1, method: 'add' });
    waiting.set(1, 'the sum'); // on a real wire there is time for this
    console.log(`still waiting: ${[...waiting.values()]}`);
  },

  // The message is handed over as it is. It is the same object on both sides.
  shared() {
    const server = {
      onmessage({ params }) {
        params.a += params.b;
        delete params.b;
        return params.a;
      },
    };
    const question = { id: 1, method: 'add', params: { a: 2, b: 40 } };
    console.log('asked:   ', JSON.stringify(question));
    console.log('answer:  ', server.onmessage(question));
    console.log('again:   ', server.onmessage(question));
    console.log('asked was', JSON.stringify(question));
  },

  // First the whole frame, then the question whether it is too big.
  buffers() {
    const limit = 1000;
    let bytes = Buffer.alloc(0);
    let mostBytes = 0;
    const onData = (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      mostBytes = Math.max(mostBytes, bytes.length);
      const length = Number(bytes.readBigUInt64BE(2));
      if (bytes.length < 10 + length) return; // not all there
      if (length > limit) console.log(`too big: ${length} bytes, and the limit is ${limit}`);
    };

    const header = Buffer.from([0x81, 127, 0, 0, 0, 0, 0, 0, 0, 0]); // text; 8 bytes of length
    header.writeBigUInt64BE(10_000_000n, 2);
    onData(header);
    for (let n = 0; n < 10; n++) onData(Buffer.alloc(1_000_000));
    console.log(`bytes in memory by then: ${mostBytes}`);
  },
};

mistakes[process.argv[2]]?.();
