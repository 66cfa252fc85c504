// How tracking plans and violations are written on the page. Pure.

import type { Schemas } from '../../api/client.ts'
import { plural } from '../../text/format.ts'

export type Plan = Schemas['TrackingPlan']
export type Rule = Schemas['PlanRule']
export type Mode = NonNullable<Rule['mode']>
export type Unplanned = NonNullable<Plan['unplanned']>

/** The key of a rule, as the API uses it: see `ruleKey` of the protocol. */
export function keyOfRule({ type, event }: { type: string | null; event?: string | null | undefined }): string {
  return type === 'track' ? `track ${event ?? ''}` : (type ?? '')
}

/** `Order Completed` instead of `track Order Completed`. */
export function ruleTitle(key: string): string {
  return key.startsWith('track ') ? key.slice('track '.length) : key
}

export const MODES: Readonly<Record<Mode, { label: string; color: string; about: string }>> = {
  observe: { label: 'Observe', color: 'blue', about: 'Messages that violate the rule are sent as usual, and the violation is recorded.' },
  strip: { label: 'Strip', color: 'grape', about: 'Properties that are not planned are removed before the message is sent.' },
  quarantine: {
    label: 'Quarantine',
    color: 'orange',
    about: 'Messages that violate the rule are stored, but not sent until somebody releases them.',
  },
}

export const UNPLANNED: Readonly<Record<Unplanned, string>> = {
  allow: 'Allow: nothing happens',
  observe: 'Observe: a violation is recorded',
  quarantine: 'Quarantine: not sent until released',
}

export interface ViolationText {
  code: string
  path: string
  expected: string
  found: string
}

/** `properties.total: expected a number, found a string.` */
export function violationSentence({ code, path, expected, found }: ViolationText): string {
  switch (code) {
    case 'unplanned_event':
      return path === 'event' ? 'The plan has no rule for this event.' : 'The plan has no rule for messages of this type.'
    case 'unplanned_property':
      return `${path} is not planned.`
    case 'missing_property':
      return `${path} is missing: expected ${expected}.`
    default:
      return `${path}: expected ${expected}, found ${found}.`
  }
}

/** `6 rules: 4 observe, 2 quarantine`. */
export function rulesSummary(rules: readonly Pick<Rule, 'mode'>[]): string {
  const total = plural(rules.length, 'rule')
  const parts = (Object.keys(MODES) as Mode[]).flatMap((mode) => {
    const of = rules.filter((rule) => (rule.mode ?? 'observe') === mode).length
    return of === 0 ? [] : [`${of.toLocaleString()} ${mode}`]
  })
  return parts.length < 2 ? `${total}${parts.length === 0 ? '' : `, all ${parts[0]?.split(' ')[1]}`}` : `${total}: ${parts.join(', ')}`
}

/** Whether a rule contains the text in its event, type, owner or description. */
export function matchesRule({ type, event, owner, description }: Rule, text: string): boolean {
  const wanted = text.trim().toLowerCase()
  return [type, event, owner, description].some((each) => each?.toLowerCase().includes(wanted))
}
