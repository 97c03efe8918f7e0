// wire-player.ts: below a console block, the wire of that very run, drawn by the page of chapter
// 30.

declare global {
  interface Window {
    WIRES?: Record<string, string>;
  }
}

export function playWires(): void {
  for (const block of document.querySelectorAll<HTMLElement>('pre[data-wire]')) {
    const name = block.dataset.wire!;
    const button = document.createElement('button');
    button.textContent = '▶ Play the wire of this run';
    const box = document.createElement('div');
    box.className = 'wire';
    box.append(button);
    block.after(box);
    button.addEventListener('click', () => void play(box, name), { once: true });
  }
}

async function play(box: HTMLElement, name: string): Promise<void> {
  await loadScript(`wire-${name}.js`);
  const frame = document.createElement('iframe');
  frame.title = 'The wire, message by message';
  addEventListener('message', ({ source, data }) => {
    if (source !== frame.contentWindow || data !== 'ready') return;
    const trace = window.WIRES?.[name];
    const title = `npm run chapter ${name}`;
    frame.contentWindow!.postMessage({ trace, name: title }, '*'); // a file has no origin to name
  });
  frame.src = 'viewer.html';
  box.classList.add('open');
  box.replaceChildren(frame);
}

/** A page that was opened as a file may not fetch, and may load a script. */
export function loadScript(src: string): Promise<void> {
  return new Promise((done, fail) => {
    const script = document.createElement('script');
    script.src = src;
    script.addEventListener('load', () => done());
    script.addEventListener('error', () => fail(new Error(`${src} could not be loaded`)));
    document.head.append(script);
  });
}
