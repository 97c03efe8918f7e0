// sucrase.d.ts: what we use of sucrase, which strips types. It is installed only when the site is made.

declare module 'sucrase' {
  export function transform(
    source: string,
    options: { transforms: string[]; filePath: string; disableESTransforms: boolean },
  ): { code: string };
}
