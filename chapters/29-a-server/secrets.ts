// secrets.ts: what several processes behind one address must share: the key that seals questions,
// and the token that clients show. Both are derived from one secret, and neither tells the other.

import { createHmac, randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { McpError } from '../../mcp.ts';

const FEWEST = 32; // characters

export type Secrets = { sealingKey: Buffer; token: string };
type SecretOptions = {
  file?: string; // readable by its owner only
  variable?: string; // of the environment
};

/** Without a file or a variable: made now, and known to this process only. */
export function secretsFrom({ file, variable }: SecretOptions = {}): Secrets {
  const secret = secretIn(file, variable);
  const derive = (use: string) => createHmac('sha256', secret).update(use).digest();
  return { sealingKey: derive('requestState'), token: derive('token').toString('base64url') };
}

function secretIn(file?: string, variable?: string): string | Buffer {
  if (file) return secretInFile(file);
  if (!variable) return randomBytes(32);
  return longEnough(process.env[variable] ?? '', `the variable ${variable}`);
}

function secretInFile(file: string) {
  const { mode } = statSync(file);
  const isWindows = process.platform === 'win32'; // its files have other rights
  if (!isWindows && (mode & 0o077) !== 0)
    throw new McpError('config', `${file} can be read by others; run: chmod 600 ${file}`);

  return longEnough(readFileSync(file, 'utf8').trim(), file);
}

function longEnough(secret: string, where: string) {
  if (secret.length >= FEWEST) return secret;
  const words = `${where} must hold a secret of ${FEWEST} characters or more`;
  throw new McpError('config', `${words}; one way to make it: openssl rand -hex 32`);
}
