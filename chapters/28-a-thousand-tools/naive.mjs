// Many tools as they are often handled first: `node chapters/28-a-thousand-tools/naive.mjs all`, or
// `regex`; and `lost`, which is about calling them.

const fixture = '../../fixtures/catalogue.mjs';
const { services, toolsOf } = await import(fixture);

const tools = [...services().keys()].flatMap((server) =>
  toolsOf(server).map((tool) => ({ ...tool, name: `mcp__${server}__${tool.name}` })),
);

const mistakes = {
  all() {
    const characters = JSON.stringify(tools).length;
    const tokens = Math.round(characters / 4);
    console.log(`${tools.length} tools, ${characters} characters, about ${tokens} tokens`);
    console.log('in every request, before the user has said a word');
  },

  regex() {
    const search = (need) => {
      const pattern = new RegExp(need.split(' ').join('|'), 'i');
      return tools.filter((tool) => pattern.test(JSON.stringify(tool)));
    };
    const found = search('delete a calendar event');
    console.log(`${found.length} tools found. The first five:`);
    for (const { name } of found.slice(0, 5)) console.log(`  ${name}`);
  },

  async lost() {
    let file = []; // what a server of notes has on its disk
    const pause = () => new Promise((done) => setImmediate(done));
    const addNote = async (note) => {
      const notes = [...file]; // read all,
      await pause();
      file = [...notes, note]; // write all
      return 'added';
    };
    const results = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(addNote));
    console.log(
      `${results.length} calls, all answered "${results[9]}"; in the file: ${file.length}`,
    );
  },
};

mistakes[process.argv[2]]?.();
