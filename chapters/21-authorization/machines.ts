// machines.ts: logins without a browser. A program has a secret or a key of its own; a platform vouches for what runs
// on it; and an identity provider vouches for those who have logged in there, once for all servers.

import { asObject, type Extension } from '../../mcp.ts';
import { keepSecrets } from '../17-the-gate/safe-text.ts';
import { readSmallFile } from './clients.ts';
import { findIssuer, type Metadata } from './discovery.ts';
import {
  OAuth,
  OAuthError,
  type Form,
  type Discovery,
  type MachineGrant,
  type OpenUserAgent,
} from './oauth.ts';
import { jwtExpiry } from './proof.ts';
import { Fetcher } from './fetcher.ts';
import type { OAuthClient } from './tokens.ts';

const URN = 'urn:ietf:params:oauth';
const ENTERPRISE = 'io.modelcontextprotocol/enterprise-managed-authorization';
const EXTENSIONS = new Map<unknown, string>([
  ['client_credentials', 'io.modelcontextprotocol/oauth-client-credentials'],
  ['id-jag', ENTERPRISE],
  ['workload', 'io.modelcontextprotocol/auth/wif'],
]);

/** These grants are extensions of the protocol, and a client that uses one declares it. */
export const declareGrant: Extension = ({ config }) => {
  const { grant, xaa } = asObject(config.oauth);
  const extension = EXTENSIONS.get(xaa === true ? 'id-jag' : grant);
  return extension ? { capabilities: { extensions: { [extension]: {} } } } : {};
};

export const machineGrant: MachineGrant = async (oauth, found, scope, openUserAgent) => {
  const { grant } = oauth.config;
  if (grant === 'client_credentials') return { grant_type: 'client_credentials' };
  const jwtBearer = { grant_type: `${URN}:grant-type:jwt-bearer` };
  if (grant === 'workload') return { ...jwtBearer, assertion: workloadAssertion(oauth) };
  if (grant === 'id-jag')
    return { ...jwtBearer, assertion: await identityAssertion(oauth, found, scope, openUserAgent) };
  return undefined;
};

/** Read anew each time: platforms replace such files before they expire. */
function workloadAssertion({ server, config }: OAuth): string {
  const { assertion, assertionFile } = config;
  const word = (assertion ?? (assertionFile ? readSmallFile(assertionFile) : '')).trim();
  // It is sent away. What is no JWT may be any file of yours.
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(word))
    throw new Error('there is no JWT in "assertion" or "assertionFile"');
  keepSecrets(server, word);
  return word;
}

// ─── The identity provider ───────────────────────────────────────────────────────────────────────

/** An ID-JAG: by it the identity provider tells this one authorization server for whom we act, and
 *  at which MCP server. */
async function identityAssertion(
  oauth: OAuth,
  found: Discovery,
  scope: string[],
  openUserAgent?: OpenUserAgent,
): Promise<string> {
  const { issuer, clientId } = oauth.config.idp!;
  const idToken = idpLogin(oauth);
  if (!idToken && !openUserAgent)
    throw oauth.error(`wants to know who you are at ${issuer}, where you are not logged in`);
  try {
    return await exchangeToken(
      oauth,
      found,
      scope,
      idToken ?? (await logInAtIdp(oauth, openUserAgent!)),
    );
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    oauth.store.keepIdpLogin(issuer, clientId); // of no use any more
    if (!idToken || !openUserAgent) throw error;
    return exchangeToken(oauth, found, scope, await logInAtIdp(oauth, openUserAgent));
  }
}

async function exchangeToken(
  oauth: OAuth,
  { metadata, resource }: Discovery,
  scope: string[],
  idToken: string,
): Promise<string> {
  const { issuer, tokenEndpoint = (await idpMetadata(oauth)).token_endpoint } = oauth.config.idp!;
  const form = {
    grant_type: `${URN}:grant-type:token-exchange`,
    requested_token_type: `${URN}:token-type:id-jag`,
    subject_token: idToken,
    subject_token_type: `${URN}:token-type:id_token`,
    audience: metadata.issuer,
    resource,
    ...(scope.length > 0 && { scope: scope.join(' ') }),
  };
  const { idp, client } = atIdp(oauth);
  const { access_token: text } = await idp.token({ issuer, tokenEndpoint, client }, form);
  if (typeof text !== 'string')
    throw oauth.error(`wants an identity assertion of ${issuer}, which gave us none`);
  keepSecrets(oauth.server, text);
  return text;
}

/** The login that there is, if its time is not over. */
export function idpLogin({ server, config, store }: OAuth): string | undefined {
  const { issuer, clientId, idToken = store.idpLogin(issuer, clientId) } = config.idp!;
  keepSecrets(server, idToken);
  return idToken && jwtExpiry(idToken) > Date.now() ? idToken : undefined;
}

/** An authorization server like any other. It knows us by another name, and must not see the secret of this one. */
function atIdp({ server, config, store }: OAuth) {
  const { issuer, clientId: id, clientSecret: secret } = config.idp!;
  const { redirectUri, callbackPort } = config;
  const theirs = {
    clientId: id,
    ...(secret && { clientSecret: secret }),
    redirectUri,
    callbackPort,
  };
  const client = { id, method: secret ? 'client_secret_basic' : 'none', ...(secret && { secret }) };
  return { idp: new OAuth(server, new URL(issuer), theirs, store), client };
}

async function idpMetadata(oauth: OAuth): Promise<Metadata> {
  const { issuer } = oauth.config.idp!;
  const metadata = await findIssuer(
    new Fetcher(`MCP server "${oauth.server}"`, new URL(issuer)),
    issuer,
  );
  if (!metadata)
    throw oauth.error(`wants an identity assertion of ${issuer}, which has no metadata`);
  return metadata;
}

async function logInAtIdp(oauth: OAuth, openUserAgent: OpenUserAgent) {
  const { issuer, clientId } = oauth.config.idp!;
  const metadata = await idpMetadata(oauth);
  const { idp, client } = atIdp(oauth);
  const redeem = async (_: OAuthClient, form: Form) => {
    const answer = await idp.token(
      { issuer, tokenEndpoint: metadata.token_endpoint, client },
      form,
    );
    const { id_token: idToken } = answer;
    if (typeof idToken !== 'string')
      throw oauth.error(`wants to know who you are at ${issuer}, which does not say`);
    keepSecrets(oauth.server, idToken);
    oauth.store.keepIdpLogin(issuer, clientId, idToken);
    return idToken;
  };
  return idp.askPerson(
    openUserAgent,
    metadata,
    { scope: 'openid' },
    { choose: async () => client, redeem },
  );
}
