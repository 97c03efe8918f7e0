// prices.ts: what a conversation has cost, where the user has said what a million tokens cost; and a
// limit, which is looked at before each request. A request that has begun is paid for anyway.

import type { AgentEvent, Model, ModelRequest, Usage } from '../../agent.ts';
import { isObject, type Json } from '../../mcp.ts';

/** In dollars for a million tokens. `cached`: that a cache had already. */
type Price = { input: number; output: number; cached: number };
export type Limit = { money?: number; tokens?: number };

const MILLION = 1_000_000;
const FREE: Price = { input: 0, output: 0, cached: 0 };
const isAmount = (value: unknown) => typeof value === 'number' && value >= 0;

/** By the name of the model, or by how it begins: the longest counts. Throws if one is none. */
export function readPrices(setting: unknown): Map<string, Price> {
  const form = '{ "MODEL": { "input": 3, "output": 15, "cached": 0.3 } }, for a million tokens';
  if (!isObject(setting)) throw new Error(`"prices" is not ${form}`);
  const rows = Object.entries(setting).map(([name, value]) => {
    const { input, output, cached = input } = isObject(value) ? value : ({} as Json);
    if (![input, output, cached].every(isAmount))
      throw new Error(`"prices" of ${JSON.stringify(name)} are not as in ${form}`);
    return [name, { input, output, cached } as Price] as const;
  });
  return new Map(rows.sort(([one], [two]) => two.length - one.length));
}

export class Spending {
  readonly used: Usage = { input: 0, output: 0, cached: 0 };
  money = 0; // of the requests whose price is known
  isUnpriced = false; // there were others
  readonly limit: Limit;
  private prices: Map<string, Price>;
  private asked = new Map<number, string>(); // models that have not answered yet, by request

  constructor(prices: Map<string, Price>, limit: Limit) {
    this.prices = prices;
    this.limit = limit;
  }

  priceOf(model: string): Price | undefined {
    if (model === 'rehearsal') return FREE;
    return [...this.prices].find(([name]) => model.startsWith(name))?.[1];
  }

  /** All requests count, whatever they are for: summaries, sub-agents, what a server asks. */
  hear(event: AgentEvent): void {
    if (event.type === 'agent') this.hear(event.event);
    if (event.type === 'query') this.asked.set(event.id, event.model);
    if (event.type !== 'answer') return;
    const price = this.priceOf(this.asked.get(event.id) ?? '');
    this.asked.delete(event.id);
    if (event.usage) this.add(event.usage, price);
    else if (price !== FREE && !this.isOver) this.isUnpriced = true; // above the limit, none was sent
  }

  private add({ input, output, cached }: Usage, price?: Price) {
    this.used.input += input;
    this.used.output += output;
    this.used.cached += cached;
    this.isUnpriced ||= price === undefined;
    if (!price) return;
    const fresh = (input - cached) * price.input;
    this.money += (fresh + cached * price.cached + output * price.output) / MILLION;
  }

  /** Why no more may be spent. */
  get isOver(): string | undefined {
    const { money = Infinity, tokens = Infinity } = this.limit;
    const used = this.used.input + this.used.output;
    if (this.money >= money) return `${dollars(this.money)} are spent, of ${dollars(money)}`;
    return used >= tokens ? `${used} tokens are spent, of ${tokens}` : undefined;
  }

  /** The same model, which is asked nothing any more when the limit is reached. */
  limited(model: Model): Model {
    const { money } = this.limit;
    if (money !== undefined && !this.priceOf(model.name))
      throw new Error(
        `--max-cost ${money} is money, and "prices" in your settings has none for ${model.name}. ` +
          'For a limit in tokens write --max-cost 200k',
      );
    const spending = this;
    async function* query(request: ModelRequest) {
      const { isOver } = spending;
      const how = 'a greater --max-cost goes on';
      if (isOver) throw Object.assign(new Error(`stopped: ${isOver}; ${how}`), { kind: 'cost' });
      yield* model.query(request);
    }
    return Object.assign(Object.create(model), { query });
  }
}

/** A request costs less than a cent, a day some dollars. */
export function dollars(money: number): string {
  return `$${money.toFixed(money < 1 ? 4 : 2)}`;
}
