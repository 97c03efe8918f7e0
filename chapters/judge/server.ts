import type { Verdict } from './child.ts';
export async function judgeServer(_command: string[], _cwd: string): Promise<Verdict[]> {
  return [];
}
