// drawn.ts: the pictures of the book, each with the file that it is drawn into. To change one, change it here and run
// `npm run book pictures`; `npm run book check` compares.

import { arrow, box, label, picture, text, type Shape } from './svg.ts';

export const PICTURES: Record<string, () => string> = {
  'chapters/00-the-whole/map.svg': house,
  'chapters/01-a-pipe/three-pipes.svg': threePipes,
  'chapters/02-framing/chunks.svg': chunks,
  'chapters/04-correlation/waiters.svg': waiters,
  'chapters/04-correlation/onion.svg': onion,
  'chapters/11-goodbye/ladder.svg': ladder,
  'chapters/17-the-gate/door.svg': door,
};

function house(): string {
  const left = 40;
  const rows: [string, string, 'ours' | 'plain' | 'theirs'][] = [
    ['ask', 'a prompt in, an answer out', 'plain'],
    ['the loop', 'ask the model, run its calls, again', 'ours'],
    ['McpManager', 'which servers, which tool is whose', 'ours'],
    ['McpConnection', 'which answer belongs to which request', 'ours'],
    ['a server', 'a child process: lines in, lines out', 'theirs'],
  ];
  const shapes = rows.flatMap(([name, what, tone], at): Shape[] => {
    const y = 20 + at * 74;
    const next = at < rows.length - 1 ? [arrow({ x: 200, y: y + 52 }, { x: 200, y: y + 72 })] : [];
    return [box({ x: left, y }, 320, 52, [name, what], tone), ...next];
  });
  const model = box({ x: 450, y: 94 }, 130, 52, ['the model', 'a function'], 'plain');
  const between = [
    arrow({ x: 362, y: 112 }, { x: 446, y: 112 }),
    arrow({ x: 448, y: 130 }, { x: 364, y: 130 }),
  ];
  return picture(620, 390, 'The whole client: the loop, the manager, a connection, a server', [
    ...shapes,
    model,
    ...between,
  ]);
}

function threePipes(): string {
  return picture(620, 220, 'A client and a server with three pipes between them', [
    box({ x: 20, y: 30 }, 150, 150, ['our program', 'the client'], 'ours'),
    box({ x: 450, y: 30 }, 150, 150, ['the server', 'a child process'], 'theirs'),
    arrow({ x: 172, y: 60 }, { x: 446, y: 60 }),
    text({ x: 310, y: 52 }, 'stdin: what we say'),
    arrow({ x: 448, y: 108 }, { x: 174, y: 108 }),
    text({ x: 310, y: 100 }, 'stdout: what it answers'),
    arrow({ x: 448, y: 156 }, { x: 174, y: 156 }, true),
    text({ x: 310, y: 148 }, 'stderr: a log for people'),
    label(
      { x: 310, y: 206 },
      'stderr is not the wire, but it must be read: a full pipe stops the server',
    ),
  ]);
}

function chunks(): string {
  const widths = [150, 60, 210];
  const words = ['{"id":1, …}⏎{"id"', ':2, …', '}⏎{"id":3, …}⏎'];
  let x = 100;
  const pieces = widths.flatMap((width, at): Shape[] => {
    const shape = box({ x, y: 34 }, width, 40, [], 'theirs');
    const inside = text({ x: x + width / 2, y: 59 }, words[at]!, { size: 13 });
    x += width + 8;
    return [shape, inside];
  });
  const messages = ['{"id":1, …}', '{"id":2, …}', '{"id":3, …}'].map((message, at) =>
    box({ x: 100 + at * 146, y: 130 }, 138, 40, [message], 'good'),
  );
  return picture(
    620,
    190,
    'Three chunks of bytes, cut anywhere, hold three messages that end at a line feed',
    [
      text({ x: 90, y: 59 }, 'chunks', { anchor: 'end' }),
      ...pieces,
      text({ x: 90, y: 155 }, 'messages', { anchor: 'end' }),
      ...messages,
      label({ x: 310, y: 106 }, 'bytes come as they like; only ⏎ (0x0A) ends a message'),
    ],
  );
}

function waiters(): string {
  const frames: [string, string[], string][] = [
    ['two requests go out', ['1 → Ada', '2 → Bob'], '→ id 1, → id 2'],
    ['the second answer comes first', ['1 → Ada'], '← id 2: for Bob'],
    ['then the first', [], '← id 1: for Ada'],
  ];
  const shapes = frames.flatMap(([title, rows, wire], at): Shape[] => {
    const x = 20 + at * 205;
    const slots = [0, 1].map((row) => {
      const words = rows[row];
      return box(
        { x: x + 15, y: 78 + row * 46 },
        140,
        36,
        words ? [words] : [],
        words ? 'ours' : 'quiet',
      );
    });
    return [
      text({ x: x + 85, y: 24 }, `${at + 1}`, { weight: 600 }),
      label({ x: x + 85, y: 44 }, title),
      box({ x, y: 60 }, 170, 120, [], 'quiet'),
      ...slots,
      label({ x: x + 85, y: 204 }, wire),
    ];
  });
  return picture(
    620,
    220,
    'The map of waiters fills with each request and empties with each answer',
    shapes,
  );
}

function onion(): string {
  const layers = ['stay alive', 'both eras', 'in order', 'send, and wait'];
  const shapes = layers.map((name, at) => {
    const inset = at * 34;
    const width = 460 - inset * 2;
    const height = 250 - inset * 1.7;
    const tone = at === layers.length - 1 ? 'ours' : 'plain';
    const shape = box({ x: 80 + inset, y: 20 + inset * 0.85 }, width, height, [], tone);
    return `${shape}\n${text({ x: 310, y: 41 + inset * 0.85 + (at === 3 ? 24 : 0) }, name, { weight: 600 })}`;
  });
  return picture(
    620,
    300,
    'Layers of extensions around a request: the first in the list is the outermost',
    [
      ...shapes,
      arrow({ x: 10, y: 150 }, { x: 176, y: 150 }),
      label({ x: 40, y: 140 }, 'a call'),
      arrow({ x: 444, y: 150 }, { x: 610, y: 150 }),
      label({ x: 576, y: 140 }, 'its answer'),
      label(
        { x: 310, y: 290 },
        'each layer gets the call and next(): it may wait, change, repeat or refuse',
      ),
    ],
  );
}

function ladder(): string {
  const steps: [string, string, 'good' | 'theirs' | 'bad'][] = [
    ['end its stdin', 'most servers leave here', 'good'],
    ['SIGTERM to the group', 'it may still save its work', 'theirs'],
    ['SIGKILL to the group', 'and what it started goes, too', 'bad'],
  ];
  const shapes = steps.flatMap(([name, what, tone], at): Shape[] => {
    const x = 10 + at * 202;
    const y = 24 + at * 52;
    const next =
      at < 2
        ? [
            arrow({ x: x + 90, y: y + 56 }, { x: x + 196, y: y + 80 }),
            label({ x: x + 118, y: y + 86 }, 'a second later'),
          ]
        : [];
    return [box({ x, y }, 196, 54, [name, what], tone), ...next];
  });
  return picture(620, 200, 'The ladder of goodbye: end of stdin, SIGTERM, SIGKILL', shapes);
}

function door(): string {
  return picture(620, 250, 'The gate as a door: deny, ask, allow, in this order', [
    box({ x: 20, y: 90 }, 130, 60, ['a call', 'of any tool'], 'plain'),
    arrow({ x: 152, y: 120 }, { x: 218, y: 120 }),
    box({ x: 220, y: 20 }, 170, 200, [], 'quiet'),
    text({ x: 305, y: 44 }, 'the gate', { weight: 600 }),
    box({ x: 235, y: 58 }, 140, 40, ['denied?'], 'bad'),
    box({ x: 235, y: 108 }, 140, 40, ['must we ask?'], 'theirs'),
    box({ x: 235, y: 158 }, 140, 40, ['allowed?'], 'good'),
    arrow({ x: 377, y: 78 }, { x: 446, y: 78 }),
    text({ x: 454, y: 83 }, 'a result that says so', { anchor: 'start' }),
    arrow({ x: 377, y: 128 }, { x: 446, y: 128 }),
    text({ x: 454, y: 133 }, 'the person decides', { anchor: 'start' }),
    arrow({ x: 377, y: 178 }, { x: 446, y: 178 }),
    text({ x: 454, y: 183 }, 'it runs', { anchor: 'start' }),
    label({ x: 305, y: 240 }, 'the first that fits counts, and no rule at all means: ask'),
  ]);
}
