// composition.ts: `mcp-by-hand/composition`, all rows of the program, as the package exports it.

export { main } from '../19-the-terminal/main.ts';
export { compose } from '../composition.ts';
export type { Compose, Composition, Host } from '../19-the-terminal/host.ts';
