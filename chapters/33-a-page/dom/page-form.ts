// page-form.ts: a form for what a JSON Schema of an object describes. What has no field of its own is
// written as JSON. Whether the answer fits is for the server to say: hearing that is what one comes for.

import { asList, asObject, show, textOf, type Json } from '../../../mcp.ts';
import { optionsOf, type Option as FieldOption } from '../../17-the-gate/form.ts';
import { make } from './elements.ts';

const MAX_FIELDS = 100; // beyond these a person would not fill in any more
const MAX_OPTIONS = 500;

/** Offers values for one field, given those of the others. */
export type Complete = (name: string, value: string, others: Json) => Promise<string[]>;
type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;
type Field = { name: string; isNeeded: boolean; control: Control; read: () => unknown };

let count = 0;

/** `read` throws what the person should hear. */
export function pageForm(schema: Json, complete?: Complete) {
  const element = make('div', '', 'fields');
  const properties = Object.entries(asObject(schema.properties));
  const needed = asList(schema.required);
  const shown = properties.slice(0, MAX_FIELDS);
  const fields = shown.map(([name, each]) => fieldOf(name, asObject(each), needed.includes(name)));
  const isWhole = properties.length > 0 && properties.length <= MAX_FIELDS;
  const others = isWhole ? undefined : jsonField('other values, as JSON', false);
  const read = (checked = true) => {
    const value: Json = { ...asObject(others?.read()) };
    for (const field of fields) {
      const given = answerIn(field, checked);
      if (given !== undefined) value[field.name] = given;
    }
    return value;
  };
  for (const [n, [, each]] of shown.entries()) addTo(element, fields[n]!, asObject(each));
  if (others) addTo(element, others, {});
  if (complete) for (const field of fields) offerValues(field, complete, () => read(false));
  return { element, read };
}

function answerIn({ name, isNeeded, read }: Field, checked: boolean): unknown {
  try {
    const given = read();
    if (given === undefined && isNeeded) throw new Error('an answer is needed');
    return given;
  } catch (error) {
    if (checked) throw new Error(`${name}: ${textOf(error)}`);
    return undefined;
  }
}

function addTo(form: HTMLElement, { name, isNeeded, control }: Field, schema: Json): void {
  const label = make('label', show(schema.title ?? name) + (isNeeded ? ' *' : ''));
  label.htmlFor = control.id = `field-${++count}`;
  control.name = name;
  form.append(label, control);
  if (typeof schema.description !== 'string') return;
  const hint = make('small', schema.description);
  hint.id = `${control.id}-hint`;
  control.setAttribute('aria-describedby', hint.id);
  form.append(hint);
}

// ─── One field ──────────────────────────────────────────────────────────────────────────────────

const YES_OR_NO = [true, false].map((value): FieldOption => {
  const text = value ? 'yes' : 'no';
  return { value, text, title: text };
});

function fieldOf(name: string, schema: Json, isNeeded: boolean): Field {
  const { type } = schema;
  const isSome = type === 'array';
  const options =
    type === 'boolean' ? YES_OR_NO : optionsOf(isSome ? asObject(schema.items) : schema);
  if (options.length > 0)
    return choiceField(name, options.slice(0, MAX_OPTIONS), isSome, { ...schema, isNeeded });
  if (type !== 'string' && type !== 'number' && type !== 'integer')
    return jsonField(name, isNeeded, schema);
  const control = make('input');
  control.type = type === 'string' ? 'text' : 'number';
  control.step = type === 'integer' ? '1' : 'any';
  control.value = schema.default === undefined ? '' : show(schema.default);
  const read = () => {
    if (control.value === '' && !control.validity.badInput) return undefined;
    return type === 'string' ? control.value : control.valueAsNumber;
  };
  return { name, isNeeded, control, read };
}

/** One of some values, or some of them. An empty choice leaves the field out. */
function choiceField(name: string, options: FieldOption[], isSome: boolean, schema: Json): Field {
  const control = make('select');
  control.multiple = isSome;
  if (!isSome) control.append(make('option'));
  const chosen = isSome ? asList(schema.default) : [schema.default];
  for (const [n, { title, value }] of options.entries()) {
    const isChosen = chosen.includes(value);
    control.append(Object.assign(make('option', title), { value: `${n}`, selected: isChosen }));
  }
  const read = () => {
    const values = [...control.selectedOptions].map(
      ({ value }) => options[Number(value || -1)]?.value,
    );
    const given = values.filter((value) => value !== undefined);
    if (!isSome) return given[0];
    return given.length > 0 || schema.isNeeded ? given : undefined;
  };
  return { name, isNeeded: schema.isNeeded === true, control, read };
}

function jsonField(name: string, isNeeded: boolean, schema: Json = {}): Field {
  const control = Object.assign(make('textarea'), {
    rows: 2,
    placeholder: 'JSON',
    spellcheck: false,
  });
  if (schema.default !== undefined) control.value = JSON.stringify(schema.default);
  const read = () => (control.value.trim() === '' ? undefined : JSON.parse(control.value));
  return { name, isNeeded, control, read };
}

/** While someone types. An older answer does not take the place of a newer one. */
function offerValues({ name, control }: Field, complete: Complete, others: () => Json): void {
  const list = make('datalist');
  list.id = `${control.id}-values`;
  control.setAttribute('list', list.id);
  control.after(list);
  let latest = 0;
  control.addEventListener('input', async () => {
    const mine = ++latest;
    const { [name]: _, ...rest } = others();
    const values = await complete(name, control.value, rest).catch(() => []);
    if (mine !== latest) return;
    list.replaceChildren(...values.slice(0, MAX_OPTIONS).map((value) => make('option', value)));
  });
}
