// Loaded before the tests that run in Bun or Deno: what they start by `process.execPath` is a server
// of ours, written for Node, and stays there. The client under test is what runs elsewhere.

process.execPath = process.env.SERVERS_ON!;
