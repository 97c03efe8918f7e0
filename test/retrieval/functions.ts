// The functions of a tree as an independent parser sees them: TypeScript's own, installed on demand.

import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { installed } from '../help/installed.ts';

/** Lines count from 1. `text` is without comments; `doc` is the comment above it. */
export type Found = {
  path: string;
  name: string;
  holder: string; // the class or object around it
  first: number;
  last: number;
  text: string;
  doc: string;
};
type Node = any; // the parser comes without its types: it is installed when this runs

const SOURCE = /\.([cm]?[jt]s|[jt]sx)$/;
const TESTS =
  /(^|\/)(tests?|__tests__|spec|fixtures)\/|[.-](test|spec)\.[a-z]+$|\.min\.js$|\.d\.[cm]?ts$/;

export function sourcesIn(folder: string): string[] {
  const found: string[] = [];
  const enter = (at: string) => {
    for (const entry of readdirSync(at, { withFileTypes: true }).sort((a, b) =>
      a.name < b.name ? -1 : 1,
    )) {
      const path = join(at, entry.name);
      if (entry.isDirectory() && !['node_modules', '.git', '.cache', 'dist'].includes(entry.name))
        enter(path);
      else if (entry.isFile() && SOURCE.test(entry.name) && !TESTS.test(relative(folder, path)))
        found.push(path);
    }
  };
  enter(folder);
  return found;
}

export class Parser {
  private ts: Node;

  constructor() {
    const at = join(
      installed('typescript@5.9.3'),
      'node_modules',
      'typescript',
      'lib',
      'typescript.js',
    );
    this.ts = createRequire(import.meta.url)(at);
  }

  /** Each function that has a name, the ones inside of others, too. */
  functionsOf(path: string, text: string): Found[] {
    const { ts } = this;
    const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
    const bare = this.withoutComments(text, source);
    const found: Found[] = [];
    const visit = (node: Node, holder: string) => {
      const name = this.isFunction(node) && node.body ? this.nameOf(node) : '';
      if (name) {
        const whole = this.statementOf(node);
        const [from, to] = [whole.getStart(source), whole.getEnd()];
        const line = (at: number) => source.getLineAndCharacterOfPosition(at).line + 1;
        found.push({
          path,
          name,
          holder,
          first: line(from),
          last: line(to),
          text: bare.slice(from, to),
          doc: this.docOf(text, whole),
        });
      }
      const inner = ts.isClassLike(node) ? (node.name?.text ?? holder) : holder;
      ts.forEachChild(node, (child: Node) => visit(child, inner));
    };
    visit(source, '');
    return found;
  }

  /** Blanks in the place of comments, so that every line stays where it is. */
  withoutComments(text: string, source?: Node): string {
    const { ts } = this;
    const tree = source ?? ts.createSourceFile('x.tsx', text, ts.ScriptTarget.Latest, true);
    const chars = text.split('');
    const blank = (from: number, to: number) => {
      for (let i = from; i < to; i++) if (chars[i] !== '\n' && chars[i] !== '\r') chars[i] = ' ';
    };
    const seen = new Set<number>();
    const visit = (node: Node) => {
      if (node.getChildCount(tree) === 0) {
        const ranges = [
          ...(ts.getLeadingCommentRanges(text, node.pos) ?? []),
          ...(ts.getTrailingCommentRanges(text, node.end) ?? []),
        ];
        const isText = node.kind === ts.SyntaxKind.JsxText;
        for (const { pos, end } of isText ? [] : ranges) {
          if (!seen.has(pos)) blank(pos, end);
          seen.add(pos);
        }
      }
      for (const child of node.getChildren(tree))
        if (child.kind < ts.SyntaxKind.FirstJSDocNode || child.kind > ts.SyntaxKind.LastJSDocNode)
          visit(child);
    };
    visit(tree);
    return chars.join('');
  }

  private isFunction(node: Node): boolean {
    const { ts } = this;
    return (
      ts.isFunctionDeclaration(node) ||
      ts.isMethodDeclaration(node) ||
      ts.isFunctionExpression(node) ||
      ts.isArrowFunction(node) ||
      ts.isGetAccessor(node) ||
      ts.isSetAccessor(node)
    );
  }

  private nameOf(node: Node): string {
    const { ts } = this;
    const own = node.name && (node.name.text ?? node.name.getText());
    if (own) return own;
    const { parent } = node;
    if (
      ts.isVariableDeclaration(parent) ||
      ts.isPropertyAssignment(parent) ||
      ts.isPropertyDeclaration(parent)
    )
      return parent.name.text ?? '';
    if (ts.isBinaryExpression(parent) && ts.isPropertyAccessExpression(parent.left))
      return parent.left.name.text;
    return '';
  }

  /** What the comment is above: for `const f = () => …` the statement. */
  private statementOf(node: Node): Node {
    const { ts } = this;
    let at = node;
    while (
      ts.isVariableDeclaration(at.parent) ||
      ts.isVariableDeclarationList(at.parent) ||
      ts.isVariableStatement(at.parent) ||
      ts.isPropertyAssignment(at.parent) ||
      ts.isPropertyDeclaration(at.parent) ||
      ts.isBinaryExpression(at.parent) ||
      ts.isExpressionStatement(at.parent)
    )
      at = at.parent;
    return at;
  }

  private docOf(text: string, node: Node): string {
    const above = this.ts.getLeadingCommentRanges(text, node.pos) ?? [];
    const last = above.at(-1);
    const comment = last ? text.slice(last.pos, last.end) : '';
    return comment.startsWith('/**') ? comment : '';
  }
}

/** The first sentence of a comment, if it is one of 4 to 40 words. */
export function sentenceOf(doc: string): string | undefined {
  const plain = doc.replace(/^\/\*\*|\*\/$/g, '').replace(/^[ \t]*\*[ \t]?/gm, '');
  const described = plain.replace(/^\s*@(?:description|desc|summary)\s+/, '').split(/^\s*@/m)[0]!;
  const prose = described
    .replace(/\{@link(?:code|plain)?\s+([^}]*)\}/g, '$1')
    .trim()
    .split(/\n\s*\n/)[0]!;
  const sentence = (/^[^]*?[.!?](?=\s|$)/.exec(prose)?.[0] ?? prose).replace(/\s+/g, ' ').trim();
  const words = sentence.split(' ').length;
  return words >= 4 && words <= 40 ? sentence : undefined;
}

export type Query = { sentence: string; target: Found };

/** Those whose sentence describes no other function, at most `count` of them, evenly spread. */
export function queriesFor(functions: Found[], count = 300): Query[] {
  const all = functions.flatMap((target) => {
    const sentence = sentenceOf(target.doc);
    return sentence ? [{ sentence, target }] : [];
  });
  const times = new Map<string, number>();
  for (const { sentence } of all) times.set(sentence, (times.get(sentence) ?? 0) + 1);
  const unique = all.filter(({ sentence }) => times.get(sentence) === 1);
  const step = Math.max(1, unique.length / count);
  return Array.from(
    { length: Math.min(count, unique.length) },
    (_, k) => unique[Math.floor(k * step)]!,
  );
}

export function readTree(folder: string, parser: Parser): Found[] {
  return sourcesIn(folder).flatMap((file) => {
    return parser.functionsOf(relative(folder, file), readFileSync(file, 'utf8'));
  });
}
