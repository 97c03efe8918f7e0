// A person whose part others play, one after the other.

import { ScriptedPerson, type Person } from '../../chapters/17-the-gate/person.ts';

/** The actor answers, and can be exchanged: so one connection serves a whole table of questions. */
export class SwappablePerson implements Person {
  actor = new ScriptedPerson();
  readonly isThere = true;
  say = (text: string) => this.actor.say(text);
  ask: Person['ask'] = (question) => this.actor.ask(question);
  choose: Person['choose'] = (question) => this.actor.choose(question);
  form: Person['form'] = (question) => this.actor.form(question);
  open: Person['open'] = (question) => this.actor.open(question);
}
