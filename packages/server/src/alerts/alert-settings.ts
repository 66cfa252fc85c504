// The settings of rules, and mutes, as documents that all nodes share. Only what differs from the defaults is stored, so a better default in a
// later version applies to everybody who has not chosen otherwise.

import type { JsonObject } from '@switchyard/protocol'
import { newId } from '../model/new-id.ts'
import type { Actor, DocumentStore } from '../store/store.ts'
import type { Rule, Subject, Values } from './rules/rule.ts'
import { RULES } from './rules/rules.ts'

/** What was chosen for a rule. Numbers are settings of the rule, by name. */
export type Choice = Readonly<Record<string, boolean | number>>

export interface Choices {
  /** By id of the rule. */
  rules: Readonly<Record<string, Choice>>
  /** By id of the rule, then by id of the source or destination. */
  exceptions: Readonly<Record<string, Readonly<Record<string, Choice>>>>
}

export interface Mute {
  id: string
  /** Null: all rules. */
  rule: string | null
  /** The id of a source or destination. Null: all of them, and everything else. */
  subjectId: string | null
  untilMs: number
  note: string | null
  createdAtMs: number
  createdBy: Actor
}

/** A change of the choices. Null removes a choice, so that the default applies again. */
export interface ChoiceChange {
  rules?: Readonly<Record<string, Readonly<Record<string, boolean | number | null>> | null>>
  exceptions?: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, boolean | number | null>> | null>>>>
}

const SETTINGS = 'alert-settings'
const KEY = 'rules'
const MUTES = 'alert-mute'
/** The most mutes that there can be at a time, so that all of them can be read at once. */
export const MAX_MUTES = 500
export const MAX_EXCEPTIONS = 1_000
const NO_CHOICES: Choices = { rules: {}, exceptions: {} }

export class AlertSettings {
  readonly #documents: DocumentStore

  constructor(documents: DocumentStore) {
    this.#documents = documents
  }

  async choices(): Promise<Choices> {
    const stored = await this.#documents.get(SETTINGS, KEY)
    return stored === undefined ? NO_CHOICES : (stored.doc as unknown as Choices)
  }

  /** Returns the choices before and after the change. */
  async change(change: ChoiceChange, nowMs: number): Promise<{ before: Choices; after: Choices }> {
    let result = { before: NO_CHOICES, after: NO_CHOICES }
    await this.#documents.update(SETTINGS, [KEY], (stored) => {
      const before = (stored.get(KEY)?.doc as unknown as Choices | undefined) ?? NO_CHOICES
      const after: Choices = {
        rules: merged(before.rules, change.rules),
        exceptions: Object.fromEntries(
          RULES.map(({ id }) => [id, merged(before.exceptions[id] ?? {}, change.exceptions?.[id])] as const).filter(
            ([, own]) => Object.keys(own).length > 0,
          ),
        ),
      }
      result = { before, after }
      const count = Object.values(after.exceptions).reduce((sum, own) => sum + Object.keys(own).length, 0)
      if (count > MAX_EXCEPTIONS) throw new TooMany(`at most ${MAX_EXCEPTIONS} exceptions are possible`)
      return new Map([[KEY, { atMs: nowMs, doc: after as unknown as JsonObject }]])
    })
    return result
  }

  /** The mutes that have not ended, the first to end first. */
  async mutes(nowMs: number): Promise<Mute[]> {
    const stored = await this.#documents.list(MUTES, { order: 'newest', limit: MAX_MUTES })
    const mutes = stored.map(({ doc }) => doc as unknown as Mute)
    return mutes.filter(({ untilMs }) => untilMs > nowMs).sort((a, b) => a.untilMs - b.untilMs)
  }

  async mute(mute: Omit<Mute, 'id'>): Promise<Mute> {
    const made: Mute = { id: newId('mut'), ...mute }
    await this.#documents.drop(MUTES, { beforeMs: mute.createdAtMs })
    if ((await this.mutes(mute.createdAtMs)).length >= MAX_MUTES) throw new TooMany(`at most ${MAX_MUTES} mutes are possible at a time`)
    await this.#documents.update(MUTES, [], () => new Map([[made.id, { atMs: made.untilMs, doc: made as unknown as JsonObject }]]))
    return made
  }

  /** Returns the mute; undefined if there is none with this id. */
  async unmute(id: string): Promise<Mute | undefined> {
    if (!/^\w{1,100}$/.test(id)) return undefined
    let ended: Mute | undefined
    await this.#documents.update(MUTES, [id], (stored) => {
      ended = stored.get(id)?.doc as unknown as Mute | undefined
      return new Map(ended === undefined ? [] : [[id, null]])
    })
    return ended
  }
}

/** There are too many mutes or exceptions already. */
export class TooMany extends Error {
  override name = 'TooMany'
}

export function isMuted(mutes: readonly Mute[], rule: string, subject: Pick<Subject, 'id'>, nowMs: number): boolean {
  return mutes.some((mute) => mute.untilMs > nowMs && (mute.rule ?? rule) === rule && (mute.subjectId ?? subject.id) === subject.id)
}

/** What applies to a subject: its exception, then the choice for the rule, then the default. */
export function settingsFor(
  choices: Choices,
  { id, settings, notifies }: Rule<never>,
  subjectId: string | null,
): { enabled: boolean; notifies: boolean; values: Values } {
  const exception = subjectId === null ? undefined : choices.exceptions[id]?.[subjectId]
  const chosen = { ...choices.rules[id], ...exception }
  const values = Object.entries(settings).map(([name, { fallback }]) => [name, typeof chosen[name] === 'number' ? chosen[name] : fallback])
  const isTold = chosen['notify'] ?? notifies
  return { enabled: chosen['enabled'] !== false, notifies: isTold === true, values: Object.fromEntries(values) as Values }
}

function merged(
  before: Readonly<Record<string, Choice>>,
  change: Readonly<Record<string, Readonly<Record<string, boolean | number | null>> | null>> = {},
): Record<string, Choice> {
  const after = { ...before }
  for (const [id, own] of Object.entries(change)) {
    const chosen = Object.entries({ ...(own === null ? {} : before[id]), ...own }).filter(([, value]) => value !== null)
    if (chosen.length === 0) delete after[id]
    else after[id] = Object.fromEntries(chosen) as Choice
  }
  return after
}
