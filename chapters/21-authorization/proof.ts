// proof.ts: who holds a key can sign, and whoever signs need not show a secret. A JWT is three pieces of base64 with
// dots between them: what kind of signature, what is claimed, and the signature of both.

import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  randomUUID,
  sign,
  type KeyObject,
} from 'node:crypto';
import type { Json } from '../../mcp.ts';

const base64 = (value: Json) => Buffer.from(JSON.stringify(value)).toString('base64url');
const seconds = () => Math.floor(Date.now() / 1000);

function signJwt(header: Json, claims: Json, key: KeyObject) {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  const alg = type === 'rsa' ? 'RS256' : details?.namedCurve === 'prime256v1' ? 'ES256' : undefined;
  if (!alg) throw new Error('a key has to be an RSA key, or one of the curve P-256');
  const signed = `${base64({ ...header, alg })}.${base64({ iat: seconds(), jti: randomUUID(), ...claims })}`;
  // Two numbers side by side, as JWTs want them, and not in the wrapping that certificates have around them.
  const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}

/** Says who we are to an authorization server, and to nobody else: `aud` is its issuer. */
export function clientAssertion(
  clientId: string,
  issuer: string,
  pem: string,
  keyId?: string,
): string {
  const claims = { iss: clientId, sub: clientId, aud: issuer, exp: seconds() + 60 };
  return signJwt({ typ: 'JWT', ...(keyId && { kid: keyId }) }, claims, createPrivateKey(pem));
}

/** When a JWT ends, by its own word, which nobody has checked. */
export function jwtExpiry(jwt: string): number {
  try {
    const { exp } = JSON.parse(
      Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString(),
    ) as Json;
    return typeof exp === 'number' ? exp * 1000 : Infinity;
  } catch {
    return Infinity; // not a JWT: whoever issued it knows
  }
}

/** DPoP (RFC 9449): a token that is bound to a key is of no use to whoever finds it. Every request has a new proof. */
export class KeyProof {
  readonly jwk: Json; // with its secret part, to be kept
  private key: KeyObject;
  private nonces = new Map<string, string>(); // by origin: what a server wants to see in the next proof

  constructor(jwk?: Json) {
    this.key = jwk
      ? createPrivateKey({ key: jwk, format: 'jwk' })
      : generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    this.jwk = jwk ?? (this.key.export({ format: 'jwk' }) as Json);
  }

  for(method: string, { origin, pathname }: URL, token?: string): string {
    const { kty, crv, x, y } = this.jwk; // and not `d`, which is the secret
    const claims = {
      htm: method,
      htu: origin + pathname,
      ...(this.nonces.has(origin) && { nonce: this.nonces.get(origin) }),
      ...(token && { ath: createHash('sha256').update(token).digest('base64url') }),
    };
    return signJwt({ typ: 'dpop+jwt', jwk: { kty, crv, x, y } }, claims, this.key);
  }

  /** What the next proof for this server will hold. */
  nonce({ origin }: URL): string | undefined {
    return this.nonces.get(origin);
  }

  learn({ origin }: URL, nonce: unknown): void {
    if (typeof nonce === 'string') this.nonces.set(origin, nonce);
  }
}
