import type { Chapter } from './bench.ts';
export const transport: Chapter = { n: 0, title: 'transport', needs: [], promises: [] };
