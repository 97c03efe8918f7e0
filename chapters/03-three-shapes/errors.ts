// errors.ts: what can go wrong, as two classes.

export type ErrorKind =
  | 'config' // the entry cannot be used as it is
  | 'start' // it could not be started
  | 'closed' // it ended, or we closed it
  | 'timeout'
  | 'aborted' // by the caller
  | 'protocol' // it does not keep to the specification
  | 'limit' // it sent too much
  | 'unknown-tool'
  | 'unreachable' // the request did not arrive
  | 'lost' // the request may have arrived; its answer did not
  | 'expired' // the session is over
  | 'auth'; // it wants a login, or forbids this call

/** Something failed on our side of the wire. `kind` is for programs, the message is for people. */
export class McpError extends Error {
  override name = 'McpError';
  kind: ErrorKind;
  status?: number; // of HTTP, where there was one
  waitMs?: number; // the server wants no other try before that
  constructor(kind: ErrorKind, message: string, status?: number) {
    super(message);
    this.kind = kind;
    this.status = status;
  }
}

/** The server refused. A class of its own: a time-out of ours must not look like an answer. */
export class RpcError extends Error {
  override name = 'RpcError';
  code: number;
  data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}
