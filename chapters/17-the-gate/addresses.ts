// Keys in addresses. Many servers want theirs in the address itself: behind ?api_key=, before the @,
// or as a part of the path. Whoever looks over a shoulder, or gets a log to read, must not see it;
// host and path must be seen, to judge where a server is.

const ADDRESS = /\b[a-z][a-z\d+.-]{1,20}:\/\/[^\s"'`<>]{1,4000}/gi;
const USER = /^([a-z][a-z\d+.-]{1,20}:\/\/)([^/?#]{1,1000})@/i;
// Nothing of which a command could be made: in an argument such as "sh -c …" all else must be seen.
const PARAMETER = /([?&;#])([\w.~-]{1,100})=([\w.~%+/=-]{8,2000})/g;
const SECRET_NAME =
  /(key|token|secret|passw(or)?d|passphrase|credentials?|auth|signature)$|^(sig|pwd|pass|pat)$/i;
const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;
const MASK = '***';

/** A part of a path that no person has written: twenty letters and digits in a row, or a UUID. */
function isKey(part: string) {
  const isMixed = /\d/.test(part) && /[a-z]/i.test(part);
  const isRandom = /^[\w=-]{20,500}$/.test(part) && /[a-z\d]{20}/i.test(part);
  return (isMixed && isRandom) || UUID.test(part);
}

/** Shows each key of an address to `see`, and puts in its place what that gives back. */
function replaceKeys(text: string, see: (key: string) => string) {
  return text.replace(ADDRESS, (address) => {
    const end = address.search(/[?#]/);
    const place = end === -1 ? address : address.slice(0, end);
    const query = end === -1 ? '' : address.slice(end);
    const anonymous = place.replace(
      USER,
      (_, start: string, user: string) => `${start}${see(user)}@`,
    );
    const parts = anonymous.split('/').map((part, n) => (n > 2 && isKey(part) ? see(part) : part));
    const shown = query.replace(PARAMETER, (whole, mark: string, name: string, value: string) =>
      SECRET_NAME.test(name) ? `${mark}${name}=${see(value)}` : whole,
    );
    return parts.join('/') + shown;
  });
}

/** A text in which no key of an address can be read. For the eye: the address itself stays as it is. */
export const withoutKeys = (text: string): string => replaceKeys(text, () => MASK);

/** The keys in the addresses of a text, to recognise them elsewhere. */
export function keysIn(text: string): string[] {
  const keys: string[] = [];
  replaceKeys(text, (key) => {
    keys.push(key);
    return key;
  });
  return keys;
}
