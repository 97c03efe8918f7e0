// A streamed answer, read as it is often done first: `node chapters/18-minds/naive.mjs`.

const event = (text) =>
  `event: content_block_delta\ndata: ${JSON.stringify({ delta: { type: 'text_delta', text } })}\n\n`;
const bytes = Buffer.from(event('Voilà: ') + event('2 and 40 ') + event('are 42.'));

function read(chunks) {
  let text = '';
  for (const chunk of chunks)
    for (const part of chunk.toString().split('\n\n'))
      try {
        text += JSON.parse(part.split('data: ')[1]).delta.text;
      } catch {} // an event that we do not know, probably
  return text;
}

const cut = (...at) => [0, ...at].map((from, n) => bytes.subarray(from, at[n] ?? bytes.length));
console.log('in one piece:        ', read(cut()));
console.log('in three pieces:     ', read(cut(120, 260)));
console.log('cut in the letter à: ', read(cut(bytes.indexOf('à') + 1)));
console.log(
  'lines end in CR LF:  ',
  read([Buffer.from(bytes.toString().replaceAll('\n', '\r\n'))]),
);
