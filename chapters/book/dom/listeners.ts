// listeners.ts: Node tells which listeners a signal has, a browser does not. So we keep account.

type Listener = EventListenerOrEventListenerObject;
const known = new WeakMap<EventTarget, Set<Listener>>();

/** Those for 'abort'. */
export const getEventListeners = (signal: EventTarget) => [...(known.get(signal) ?? [])];

export function countListeners(): void {
  const { addEventListener, removeEventListener } = AbortSignal.prototype;
  AbortSignal.prototype.addEventListener = function (
    this: AbortSignal,
    type: string,
    listener: Listener,
    options?: boolean | AddEventListenerOptions,
  ) {
    addEventListener.call(this, type, listener, options);
    if (type !== 'abort' || this.aborted) return;
    const all = known.get(this) ?? new Set();
    known.set(this, all.add(listener));
    const forget = () => all.delete(listener);
    if (typeof options === 'object' && options.once)
      addEventListener.call(this, type, forget, { once: true });
  };
  AbortSignal.prototype.removeEventListener = function (
    this: AbortSignal,
    type: string,
    listener: Listener,
    options?: boolean | EventListenerOptions,
  ) {
    removeEventListener.call(this, type, listener, options);
    known.get(this)?.delete(listener);
  };
}
