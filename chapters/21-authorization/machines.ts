// machines.ts: logins without a browser. A program has a secret or a key of its own; a platform vouches for what runs
// on it; and a company vouches for those who have logged in there, once for all servers.

import { asObject, type Extension } from '../../mcp.ts';
import { keepSecrets } from '../17-the-gate/safe-text.ts';
import { readSmallFile, type OAuthConfig } from './clients.ts';
import { findIssuer, type Metadata } from './discovery.ts';
import { OAuth, Refusal, type Form, type Found, type Visitor } from './oauth.ts';
import { endOf } from './proof.ts';
import { Reach } from './reach.ts';
import type { Client } from './tokens.ts';

const URN = 'urn:ietf:params:oauth';
const EXTENSIONS = new Map<unknown, string>([
  ['client_credentials', 'io.modelcontextprotocol/oauth-client-credentials'],
  ['company', 'io.modelcontextprotocol/enterprise-managed-authorization'],
  ['workload', 'io.modelcontextprotocol/auth/wif'],
]);

/** These grants are extensions of the protocol, and a client that uses one declares it. */
export const declareGrant: Extension = ({ config }) => {
  const { grant, xaa } = asObject(config.oauth);
  const extension = EXTENSIONS.get(xaa === true ? 'company' : grant);
  return extension ? { capabilities: { extensions: { [extension]: {} } } } : {};
};

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
  const word = (assertion ?? (assertionFile ? readSmallFile(assertionFile) : '')).trim();
  // It is sent away. What is no JWT may be any file of yours.
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(word)) throw new Error('there is no JWT in "assertion" or "assertionFile"');
  keepSecrets(word);
  return word;
}

// ─── The company's word ───────────────────────────────────────────────────────────────────────────────────────

/** A letter from the company to this one authorization server, about this one MCP server (an ID-JAG). */
async function companysWord(oauth: OAuth, found: Found, scope: string[], visitor?: Visitor): Promise<string> {
  const { issuer, clientId } = oauth.config.company!;
  const idToken = companyLogin(oauth);
  if (!idToken && !visitor) throw oauth.error(`wants to know who you are at ${issuer}, where you are not logged in`);
  try {
    return await letter(oauth, found, scope, idToken ?? (await logInAtCompany(oauth, visitor!)));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    oauth.store.keepCompanyLogin(issuer, clientId); // of no use any more
    if (!idToken || !visitor) throw error;
    return letter(oauth, found, scope, await logInAtCompany(oauth, visitor));
  }
}

async function letter(oauth: OAuth, { metadata, resource }: Found, scope: string[], idToken: string): Promise<string> {
  const { issuer, tokenEndpoint = (await companyMetadata(oauth)).token_endpoint } = oauth.config.company!;
  const form = {
    grant_type: `${URN}:grant-type:token-exchange`,
    requested_token_type: `${URN}:token-type:id-jag`,
    subject_token: idToken,
    subject_token_type: `${URN}:token-type:id_token`,
    audience: metadata.issuer,
    resource,
    ...(scope.length > 0 && { scope: scope.join(' ') }),
  };
  const { company, client } = atCompany(oauth);
  const { access_token: text } = await company.token({ issuer, tokenEndpoint, client }, form);
  if (typeof text !== 'string') throw oauth.error(`wants a letter from ${issuer}, which gave us none`);
  keepSecrets(text);
  return text;
}

/** The login that there is, if its time is not over. */
export function companyLogin({ config, store }: OAuth): string | undefined {
  const { issuer, clientId, idToken = store.companyLogin(issuer, clientId) } = config.company!;
  keepSecrets(idToken);
  return idToken && endOf(idToken) > Date.now() ? idToken : undefined;
}

/** An authorization server like any other. It knows us by another name, and must not see the secret of this one. */
function atCompany({ server, config, store }: OAuth) {
  const { issuer, clientId: id, clientSecret: secret } = config.company!;
  const { redirectUri, callbackPort } = config;
  const theirs = { clientId: id, ...(secret && { clientSecret: secret }), redirectUri, callbackPort };
  const client = { id, method: secret ? 'client_secret_basic' : 'none', ...(secret && { secret }) };
  return { company: new OAuth(server, new URL(issuer), theirs, store), client };
}

async function companyMetadata(oauth: OAuth): Promise<Metadata> {
  const { issuer } = oauth.config.company!;
  const metadata = await findIssuer(new Reach(`MCP server "${oauth.server}"`, new URL(issuer)), issuer);
  if (!metadata) throw oauth.error(`wants a letter from ${issuer}, which has no metadata`);
  return metadata;
}

async function logInAtCompany(oauth: OAuth, visitor: Visitor): Promise<string> {
  const { issuer, clientId } = oauth.config.company!;
  const metadata = await companyMetadata(oauth);
  const { company, client } = atCompany(oauth);
  const redeem = async (_: Client, form: Form) => {
    const answer = await company.token({ issuer, tokenEndpoint: metadata.token_endpoint, client }, form);
    const { id_token: idToken } = answer;
    if (typeof idToken !== 'string') throw oauth.error(`wants to know who you are at ${issuer}, which does not say`);
    keepSecrets(idToken);
    oauth.store.keepCompanyLogin(issuer, clientId, idToken);
    return idToken;
  };
  return company.askPerson(visitor, metadata, { scope: 'openid' }, { choose: async () => client, redeem });
}
