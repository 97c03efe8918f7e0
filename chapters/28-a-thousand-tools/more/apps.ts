// apps.ts: some tools are there for the app that a server brings along, such as a button in its
// window, and not for a model.

import { asObject, type Json } from '../../../mcp.ts';

/** `_meta.ui.visibility` lists who may call it: "model", "app" or both, which is the default. */
export function isForModels({ _meta }: Json): boolean {
  const { visibility } = asObject(asObject(_meta).ui);
  return !Array.isArray(visibility) || visibility.includes('model');
}
