// page-form.ts: a form for what a JSON Schema of an object describes. What has no field of its own is
// written as JSON. Whether the answer fits is for the server to say: hearing that is what one comes for.

import { asList, asObject, show, textOf, type Json } from '../../../mcp.ts';
import { optionsOf, type Option as FieldOption } from '../../17-the-gate/form.ts';
import { make } from './elements.ts';

const MAX_FIELDS = 100; // beyond these a person would not fill in any more
const MAX_OPTIONS = 500;

/** Offers values for one field, given those of the others. */
export type Complete = (name: string, value: string, others: FieldTexts) => Promise<string[]>;
type FieldTexts = Record<string, string>;
type FieldInput = {
  control: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;
  read: () => unknown; // undefined: it was left out
};
type Field = FieldInput & { name: string };

/** `read` throws what the person should hear. */
export function pageForm(schema: Json, complete?: Complete) {
  const element = make('div', '', 'fields');
  const properties = Object.entries(asObject(schema.properties));
  const needed = asList(schema.required);
  const fields = properties
    .slice(0, MAX_FIELDS)
    .map(([name, each]) => addField(element, name, asObject(each), needed.includes(name)));
  const isWhole = fields.length > 0 && fields.length === properties.length;
  const others = isWhole ? undefined : addField(element, 'other values, as JSON', {}, false);
  if (complete) for (const field of fields) offerValues(field, fields, complete);
  const read = () => {
    const value: Json = { ...asObject(others?.read()) };
    for (const field of fields) {
      const given = field.read();
      if (given !== undefined) value[field.name] = given;
    }
    return value;
  };
  return { element, read };
}

let count = 0;

function addField(form: HTMLElement, name: string, schema: Json, isNeeded: boolean): Field {
  const input = inputFor(schema, isNeeded);
  const { control } = input;
  const label = make('label', show(schema.title ?? name) + (isNeeded ? ' *' : ''));
  label.htmlFor = control.id = `field-${++count}`;
  control.name = name;
  form.append(label, control);
  if (typeof schema.description === 'string') {
    const hint = make('small', schema.description);
    hint.id = `${control.id}-hint`;
    control.setAttribute('aria-describedby', hint.id);
    form.append(hint);
  }
  const read = () => {
    try {
      const given = input.read();
      if (given === undefined && isNeeded) throw new Error('an answer is needed');
      return given;
    } catch (error) {
      throw new Error(`${name}: ${textOf(error)}`);
    }
  };
  return { name, control, read };
}

// ─── One field ──────────────────────────────────────────────────────────────────────────────────

const YES_OR_NO = [true, false].map((value): FieldOption => {
  const text = value ? 'yes' : 'no';
  return { value, text, title: text };
});

function inputFor(schema: Json, isNeeded: boolean): FieldInput {
  const { type } = schema;
  const isSome = type === 'array';
  const options =
    type === 'boolean' ? YES_OR_NO : optionsOf(isSome ? asObject(schema.items) : schema);
  if (options.length > 0)
    return choiceOf(options.slice(0, MAX_OPTIONS), isSome, { ...schema, isNeeded });
  if (type !== 'string' && type !== 'number' && type !== 'integer') return jsonInput(schema);
  const control = make('input');
  control.type = type === 'string' ? 'text' : 'number';
  control.step = type === 'integer' ? '1' : 'any';
  control.value = schema.default === undefined ? '' : show(schema.default);
  const read = () => {
    if (control.value === '' && !control.validity.badInput) return undefined;
    return type === 'string' ? control.value : control.valueAsNumber;
  };
  return { control, read };
}

/** One of some values, or some of them. An empty choice leaves the field out. */
function choiceOf(options: FieldOption[], isSome: boolean, schema: Json): FieldInput {
  const control = make('select');
  control.multiple = isSome;
  if (!isSome) control.append(make('option'));
  const chosen = isSome ? asList(schema.default) : [schema.default];
  for (const [n, { title, value }] of options.entries()) {
    const isChosen = chosen.includes(value);
    control.append(Object.assign(make('option', title), { value: `${n}`, selected: isChosen }));
  }
  const read = () => {
    const places = [...control.selectedOptions].map(({ value }) => value).filter(Boolean);
    const given = places.map((place) => options[Number(place)]!.value);
    if (!isSome) return given[0];
    return given.length > 0 || schema.isNeeded ? given : undefined;
  };
  return { control, read };
}

function jsonInput(schema: Json): FieldInput {
  const looks = { rows: 2, placeholder: 'JSON', spellcheck: false };
  const control = Object.assign(make('textarea'), looks);
  if (schema.default !== undefined) control.value = JSON.stringify(schema.default);
  const read = () => (control.value.trim() === '' ? undefined : JSON.parse(control.value));
  return { control, read };
}

/** While someone types. An older answer does not take the place of a newer one. */
function offerValues({ name, control }: Field, fields: Field[], complete: Complete): void {
  const list = make('datalist');
  list.id = `${control.id}-values`;
  control.setAttribute('list', list.id);
  control.after(list);
  let latest = 0;
  control.addEventListener('input', async () => {
    const mine = ++latest;
    const filled = fields.filter((field) => field.name !== name && field.control.value !== '');
    const others = Object.fromEntries(filled.map((field) => [field.name, field.control.value]));
    const values = await complete(name, control.value, others).catch(() => []);
    if (mine !== latest) return;
    list.replaceChildren(...values.slice(0, MAX_OPTIONS).map((value) => make('option', value)));
  });
}
