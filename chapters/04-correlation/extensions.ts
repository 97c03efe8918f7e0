// extensions.ts: all that is added to one connection.

import { type Json, isObject, textOf } from '../01-a-pipe/messages.ts';
import type { McpError } from '../03-three-shapes/errors.ts';
import type { Connection } from '../../mcp.ts';
import type { Extension, Handler, Layer, Next, Parts } from './extension.ts';

type Owned = { owner: string; handler: Handler };

export class Extensions {
  handshake?: Parts['handshake'];
  capabilities: Json = {}; // what we declare: those of all extensions together
  outermost!: Next; // the way through all layers
  private connection: Connection;
  private byName = new Map<string, Parts>(); // the outermost first
  private requestHandlers = new Map<string, Owned>();
  private listeners = new Map<string, Owned[]>();

  constructor(connection: Connection) {
    this.connection = connection;
  }

  plugInAll(extensions: Extension[] = []): void {
    for (const [n, extension] of extensions.entries()) {
      const name = extension.name || `extension ${n + 1}`;
      this.plugIn(name, extension(this.connection));
    }
  }

  /** Adds what an extension brings. What there can be only one of is refused the second time. */
  plugIn(name: string, parts: Parts): void {
    if (this.byName.has(name)) {
      throw this.connection.error('config', `has two extensions "${name}"`);
    }
    for (const [first, { handshake }] of this.byName) {
      if (handshake && parts.handshake) throw this.twice('a handshake', first, name);
    }
    this.handshake ??= parts.handshake;
    this.capabilities = merged(this.capabilities, parts.capabilities ?? {});
    const handlers = Object.entries(parts.handlers ?? {});
    for (const [method, handler] of handlers) {
      this.addHandler(method, { owner: name, handler });
    }
    this.byName.set(name, parts);
  }

  private addHandler(method: string, added: Owned): void {
    if (/(^|\/)notifications\//.test(method)) {
      const others = this.listeners.get(method) ?? [];
      this.listeners.set(method, [...others, added]);
      return;
    }
    const first = this.requestHandlers.get(method);
    if (first) throw this.twice(`a handler for ${method}`, first.owner, added.owner);
    this.requestHandlers.set(method, added);
  }

  private twice(what: string, first: string, second: string): McpError {
    const both = `has ${what} twice: by "${first}" and by "${second}"`;
    return this.connection.error('config', both);
  }

  /** Layers are wrapped from the inside out. What one throws becomes a rejection. */
  wrapAround(innermost: Next): void {
    this.outermost = innermost;
    const inwards = [...this.byName.values()];
    for (const { layer } of inwards.reverse()) {
      if (layer) this.outermost = wrapped(layer, this.outermost);
    }
  }

  /** Who answers a request of the server. */
  handlerOf(method: string): Handler | undefined {
    return this.requestHandlers.get(method)?.handler;
  }

  /** A notification goes to every extension that listens for it. Editors leave out the prefix. */
  hear(method: string, params: Json, signal: AbortSignal): void {
    const bare = this.listeners.get(`notifications/${method}`);
    const listeners = this.listeners.get(method) ?? bare ?? [];
    for (const { owner, handler } of listeners) {
      this.guard(owner, method, () => handler(params, { signal }));
    }
  }

  /** Tells all extensions what happened. */
  tell(what: string, tell: (parts: Parts) => unknown): void {
    for (const [name, parts] of this.byName) {
      this.guard(name, what, () => tell(parts));
    }
  }

  /** Runs a part of an extension. If it fails, that is reported, and goes no further. */
  private guard(name: string, what: string, run: () => unknown): void {
    const failed = (error: unknown) => {
      const { serverName } = this.connection;
      const where = `MCP server "${serverName}": the extension "${name}" failed`;
      this.connection.report(`${name} ${what}`, `${where} at ${what}: ${textOf(error)}`);
    };
    // The function given to a Promise runs at once, and what it throws becomes a rejection.
    new Promise((done) => done(run())).catch(failed);
  }
}

/** Not `async`: one more promise per layer would be most of its cost. */
function wrapped(layer: Layer, next: Next): Next {
  return (call) => {
    try {
      return layer(call, next);
    } catch (error) {
      return Promise.reject(error);
    }
  };
}

/** Both, object by object. Where they differ otherwise, the second counts. */
function merged(one: Json, two: Json): Json {
  const both: Json = { ...one };
  for (const [key, value] of Object.entries(two)) {
    const before = both[key];
    const areObjects = isObject(before) && isObject(value);
    both[key] = areObjects ? merged(before, value) : value;
  }
  return both;
}
