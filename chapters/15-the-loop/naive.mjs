// The loop as it is often written first, and two turns of a conversation with it. `node chapters/15-the-loop/naive.mjs`

const tools = { add: ({ a, b }) => `${a + b}` };
const turns = [];

async function chat(prompt) {
  turns.push({ role: 'user', text: prompt });
  for (;;) {
    const { text, calls } = await model(turns);
    turns.push({ role: 'assistant', text, calls });
    if (calls.length === 0) return text;
    const results = [];
    for (const { id, name, args } of calls) {
      const tool = tools[name];
      results.push({ id, text: await tool(args) });
    }
    turns.push({ role: 'tools', results });
  }
}

// In place of a model behind its service. Like the real ones, the service takes no conversation with
// an unanswered call.
async function model(turns) {
  const answered = new Set(turns.flatMap(({ results = [] }) => results.map(({ id }) => id)));
  const open = turns.flatMap(({ calls = [] }) => calls).find(({ id }) => !answered.has(id));
  if (open) throw new Error(`400: the call ${open.id} has no result`);
  const { role, text, results } = turns.at(-1);
  if (role === 'tools') return { text: `It is ${results[0].text}.`, calls: [] };
  const name = /add/.test(text) ? 'add' : 'subtract'; // not offered: models do that, now and then
  return { text: '', calls: [{ id: `call_${answered.size + 1}`, name, args: { a: 2, b: 40 } }] };
}

for (const prompt of ['add 2 and 40', 'subtract 2 from 44', 'then add 2 and 40 again', 'hello?'])
  console.log(`> ${prompt}\n${await chat(prompt).catch((error) => `  ${error}`)}`);
