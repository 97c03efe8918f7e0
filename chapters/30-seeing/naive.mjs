// Recording and looking as it is often written first: `node chapters/30-seeing/naive.mjs order`, or
// `page`.

const recorded = [
  {
    request: { id: 1, method: 'tools/call', params: { a: 2, b: 40 } },
    answer: { id: 1, result: 42 },
  },
  {
    request: { id: 2, method: 'tools/call', params: { a: 1, b: 1 } },
    answer: { id: 2, result: 2 },
  },
];

const mistakes = {
  /** The answers are played in the order in which they were recorded. */
  order() {
    const tape = [...recorded];
    const answer = (request) => ({ ...tape.shift().answer, id: request.id });
    for (const params of [
      { a: 1, b: 1 },
      { a: 2, b: 40 },
    ]) {
      const { result } = answer({ id: 1, method: 'tools/call', params });
      console.log(`${params.a} + ${params.b} = ${result}`);
    }
  },

  /** What a server said is put into a page as it is. */
  page() {
    const message = {
      method: 'notifications/message',
      params: { data: '<img src=x onerror=steal()>' },
    };
    const row = `<tr><td>${message.method}</td><td>${message.params.data}</td></tr>`;
    console.log(row);
  },
};

mistakes[process.argv[2]]();
