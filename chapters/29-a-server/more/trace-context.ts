// trace-context.ts: which piece of work a request belongs to, in the words of W3C Trace Context. What
// collects traces can follow a call through us to the server that does the work.

import { asObject, type Extension, type Json } from '../../../mcp.ts';

const PARENT = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/;
const MAX_STATE = 512; // what everyone must be able to pass on

/** Baggage is not passed on: it may hold anything, and a server is a stranger. */
export function traceContextIn({ traceparent, tracestate }: Json): Json {
  if (typeof traceparent !== 'string' || !PARENT.test(traceparent)) return {};
  const isFit = typeof tracestate === 'string' && tracestate.length <= MAX_STATE;
  return { traceparent, ...(isFit && { tracestate }) };
}

/** Goes into all that we request, unless the caller has said more. */
export function traceContext(current: () => Json): Extension {
  return function traceContext() {
    return {
      layer: (call, next) => {
        const context = current();
        if (!context.traceparent) return next(call);
        const _meta = { ...context, ...asObject(call.params?._meta) };
        return next({ ...call, params: { ...call.params, _meta } });
      },
    };
  };
}

/** As tools that start programs leave it for them. Without it there is nothing to add. */
export function traceContextOf(env: NodeJS.ProcessEnv): Extension[] {
  const { TRACEPARENT: traceparent, TRACESTATE: tracestate } = env;
  const context = traceContextIn({ traceparent, tracestate });
  return context.traceparent ? [traceContext(() => context)] : [];
}
