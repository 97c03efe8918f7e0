// machines.ts: logins without a browser. A program has a secret or a key of its own; a platform vouches for what runs on
// it; and a company vouches for those who have logged in there, once for all servers.

import { readFileSync } from 'node:fs';
import type { OAuthConfig } from './clients.ts';
import { findIssuer } from './discovery.ts';
import { keepSecret } from '../17-the-gate/safe-text.ts';
import { DONE, FAILED, type Form, type Found, type OAuth, type Visitor } from './oauth.ts';
import { endOf } from './proof.ts';
import { Reach } from './reach.ts';

const URN = 'urn:ietf:params:oauth';

/** What we ask of the token endpoint. Nothing, if a person has to agree first. */
export async function machineGrant(
  oauth: OAuth, found: Found, scope: string[], visitor?: Visitor,
): Promise<Form | undefined> {
  const { grant } = oauth.config;
  if (grant === 'client_credentials') return { grant_type: 'client_credentials' };
  const jwtBearer = { grant_type: `${URN}:grant-type:jwt-bearer` };
  if (grant === 'workload') return { ...jwtBearer, assertion: platformsWord(oauth.config) };
  if (grant === 'company') return { ...jwtBearer, assertion: await companysWord(oauth, found, scope, visitor) };
  return undefined;
}

/** Read anew each time: platforms replace such files before they expire. */
function platformsWord({ assertion, assertionFile }: OAuthConfig): string {
  const word = (assertion ?? (assertionFile ? readFileSync(assertionFile, 'utf8') : '')).trim();
  // It is sent away. What is no JWT may be any file of yours.
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(word)) throw new Error('there is no JWT in "assertion" or "assertionFile"');
  return word;
}

/** A letter from the company to this one authorization server, about this one MCP server (an ID-JAG). */
async function companysWord(oauth: OAuth, { metadata, resource }: Found, scope: string[], visitor?: Visitor) {
  const { issuer, clientId, clientSecret: secret, tokenEndpoint } = oauth.config.company!;
  const idToken = companyLogin(oauth) ?? (visitor && (await logInAtCompany(oauth, visitor)));
  if (!idToken) throw oauth.error(`wants to know who you are at ${issuer}, and you are not logged in there`);
  const client = { id: clientId, method: secret ? 'client_secret_basic' : 'none', ...(secret && { secret }) };
  const form = {
    grant_type: `${URN}:grant-type:token-exchange`,
    requested_token_type: `${URN}:token-type:id-jag`,
    subject_token: idToken,
    subject_token_type: `${URN}:token-type:id_token`,
    audience: metadata.issuer,
    resource,
    ...(scope.length > 0 && { scope: scope.join(' ') }),
  };
  const endpoint = tokenEndpoint ?? (await companyMetadata(oauth)).token_endpoint;
  const { access_token: letter } = await oauth.token({ issuer, tokenEndpoint: endpoint, client }, form);
  if (typeof letter !== 'string') throw oauth.error(`wants a letter from ${issuer}, which gave us none`);
  keepSecret(letter);
  return letter;
}

/** The login that there is, if its time is not over. */
export function companyLogin({ config, store }: OAuth): string | undefined {
  const { issuer, clientId, idToken = store.companyLogin(issuer, clientId) } = config.company!;
  if (idToken) keepSecret(idToken);
  return idToken && endOf(idToken) > Date.now() ? idToken : undefined;
}

async function companyMetadata(oauth: OAuth) {
  const { issuer } = oauth.config.company!;
  const metadata = await findIssuer(new Reach(`"company" in "oauth" of an MCP server`, new URL(issuer)), issuer);
  return metadata ?? Promise.reject(oauth.error(`wants a letter from ${issuer}, which has no metadata`));
}

async function logInAtCompany(oauth: OAuth, visitor: Visitor): Promise<string> {
  const { issuer, clientId, clientSecret: secret } = oauth.config.company!;
  const metadata = await companyMetadata(oauth);
  const known = { id: clientId, method: secret ? 'client_secret_basic' : 'none', ...(secret && { secret }) };
  const { client, form, close } = await oauth.askPerson(visitor, metadata, { scope: 'openid' }, known);
  const { id_token: idToken } = await oauth.token({ issuer, tokenEndpoint: metadata.token_endpoint, client }, form);
  close(typeof idToken === 'string' ? DONE : FAILED);
  if (typeof idToken !== 'string') throw oauth.error(`wants to know who you are at ${issuer}, which does not say`);
  keepSecret(idToken);
  oauth.store.keepCompanyLogin(issuer, clientId, idToken);
  return idToken;
}
