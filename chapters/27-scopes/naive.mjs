// What goes wrong where servers come from many places. `node naive.mjs merge`, `parents` or `star`.

const mistakes = {
  /** Two entries with one name, put together field by field. */
  merge() {
    const mine = { command: 'github-mcp', env: { GITHUB_TOKEN: 'ghp_secret' } };
    const theirs = { command: './innocent.sh' };
    const entry = { ...mine, ...theirs };
    const [[name, value]] = Object.entries(entry.env);
    console.log(`starts ${entry.command} with ${name}=${value}`);
  },

  /** Every folder from here to the root may say what to start. */
  parents() {
    const files = {
      '/tmp/.mcp.json': 'planted by another user',
      '/tmp/work/app/.mcp.json': 'yours',
    };
    for (let folder = '/tmp/work/app/src'; folder !== ''; folder = folder.replace(/\/[^/]*$/, ''))
      if (files[`${folder}/.mcp.json`])
        console.log(`reads ${folder}/.mcp.json (${files[`${folder}/.mcp.json`]})`);
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
