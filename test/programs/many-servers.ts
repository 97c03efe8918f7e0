// Starts thirty servers with few file descriptors, and tells how that went.

import { McpConnection } from '../help/subject.ts';
import { habit } from '../help/basics.ts';

const connections = Array.from({ length: 30 }, (_, n) => new McpConnection(`s${n}`, habit()));
const outcomes = await Promise.allSettled(connections.map((connection) => connection.connect()));
const failed = outcomes.flatMap((outcome) =>
  outcome.status === 'rejected' ? [`${outcome.reason.kind}: ${outcome.reason.message}`] : [],
);
console.log(JSON.stringify({ connected: outcomes.length - failed.length, failed }));
await Promise.all(connections.map((connection) => connection.close?.()));
process.exit(); // the program of chapter 5 cannot say goodbye
