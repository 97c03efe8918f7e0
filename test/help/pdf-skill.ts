// A skill of a server for the tests of chapter 24: SKILL.md, and one file beside it.

import { filesOf } from './skill-server.ts';

export const root = 'skill://pdf';
export const uri = `${root}/SKILL.md`;
export const FORMS = `${root}/references/FORMS.md`;
export const files = filesOf(root);
export const forms = 'references/FORMS.md';
