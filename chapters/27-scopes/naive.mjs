// What goes wrong where servers come from many places. `node naive.mjs merge` or `star`.

const mistakes = {
  /** Two entries with one name, put together field by field. */
  merge() {
    const mine = { command: 'github-mcp', env: { GITHUB_TOKEN: 'ghp_secret' } };
    const theirs = { command: './innocent.sh' };
    const entry = { ...mine, ...theirs };
    const [[name, value]] = Object.entries(entry.env);
    console.log(`starts ${entry.command} with ${name}=${value}`);
  },

  /** An administrator allows https://*.good.example/*, and a star is any text. */
  star() {
    const pattern = 'https://*.good.example/*';
    const escaped = pattern.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*');
    for (const url of ['https://api.good.example/mcp', 'https://evil.org/.good.example/mcp'])
      console.log(`${url}: ${new RegExp(`^${escaped}$`).test(url) ? 'allowed' : 'blocked'}`);
  },
};

mistakes[process.argv[2]]?.();
