// message-shapes.ts: is this a message at all? Each of the three shapes has its rules, and what
// breaks them is refused before anything looks into it.

import { asRefusal, isObject, RpcError, type Id, type Json, type Message } from '../../../mcp.ts';

type Shape = 'request' | 'notification' | 'response';

const isId = (id: unknown) => typeof id === 'string' || Number.isSafeInteger(id); // 0 is one, too

/** What it is. Throws "Invalid Request" if it is nothing. */
export function shapeOf(message: unknown): Shape {
  if (Array.isArray(message)) throw new RpcError(-32600, 'Batches are not accepted');
  if (!isObject(message)) throw new RpcError(-32600, 'A message must be an object');
  const { jsonrpc, id, method, params, result, error } = message;
  if (jsonrpc !== '2.0') throw new RpcError(-32600, 'jsonrpc must be "2.0"');
  if (id !== undefined && !isId(id))
    throw new RpcError(-32600, 'id must be a string or an integer');

  if (typeof method === 'string') {
    if (params !== undefined && !isObject(params))
      throw new RpcError(-32600, 'params must be an object');

    return id === undefined ? 'notification' : 'request';
  }
  const isAnswer = id !== undefined && (result !== undefined || isObject(error));
  if (method === undefined && isAnswer) return 'response';
  throw new RpcError(-32600, 'It is neither a request, nor a notification, nor a response');
}

/** The id to answer under, as far as there is one. */
export const idOf = (message: unknown): Id | null =>
  isObject(message) && isId(message.id) ? (message.id as Id) : null;

/** A refusal as it goes on the wire. What could not be read has the id null. */
export function errorResponse(id: Id | null, error: unknown): Message {
  return { jsonrpc: '2.0', id: id as Id, error: asRefusal(error) };
}

export const resultResponse = (id: Id, result: Json): Message => ({ jsonrpc: '2.0', id, result });
