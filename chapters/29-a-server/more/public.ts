// public.ts: what a program needs to be a server, as the package exports it.

export { serveStdio } from '../pipe.ts';
export { serveHttp } from '../serve-http.ts';
export { McpServer } from '../server.ts';
export { isOver, type TaskRecord, type TaskStore } from '../task-store.ts';
