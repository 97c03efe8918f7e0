// labels.ts: the names under which a model sees tools.

/** The name under which a model sees a tool: at most 64 of A–Z a–z 0–9 _ -. It is a label,
 *  and never parsed. The server's part has no "__" inside and no "_" at its end, so a + b__c and
 *  a__b + c differ. */
export function toolLabel(serverName: string, toolName: string): string {
  const prefix = serverPrefix(serverName);
  return prefix + fit(toolName, /^[A-Za-z0-9_-]+$/, 64 - prefix.length);
}

export function serverPrefix(serverName: string): string {
  return `mcp__${fit(serverName, /^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$/, 30)}__`;
}

function fit(name: string, allowed: RegExp, length: number): string {
  if (allowed.test(name) && name.length <= length) return name;
  let hash = 2166136261; // FNV-1a: keeps x.y and x_y apart
  for (const char of name) {
    hash = Math.imul(hash ^ char.codePointAt(0)!, 16777619) >>> 0;
  }
  const suffix = `-${hash.toString(36)}`;
  const readable = name.replace(/[^A-Za-z0-9-]+/g, '_');
  return readable.slice(0, length - suffix.length) + suffix;
}
