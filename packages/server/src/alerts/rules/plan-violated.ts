// Plan Violated: messages of a source do not match its tracking plan.

import { grouped, HOUR_MS, numberSetting, rule } from './rule.ts'

export interface PlanViolations {
  nowMs: number
  planId: string
  /** How many violations were found in this hour and the one before. */
  violations: number
  /** The rule of the plan that was violated most often; null if there was no violation. */
  planRule: string | null
  /** When the first of these violations was found, if that is known. */
  firstMs?: number | undefined
}

export const planViolated = rule({
  id: 'plan_violated',
  event: 'Plan Violated',
  subject: 'source',
  severity: () => 'notice',
  measure: { name: 'violations', label: 'violations in the last two hours' },
  sentences: [
    'Open when at least {leastViolations} violations were found in this hour and the one before. Close after an hour without violations.',
  ],
  description: 'Messages of a source do not match its tracking plan. The incident is closed after an hour without violations.',
  settings: {
    leastViolations: numberSetting(
      10,
      1,
      1_000_000_000,
      'Open an incident when there are at least this many violations in the current and the previous hour.',
    ),
  },
  judge({ nowMs, planId, violations, planRule, firstMs = 0 }: PlanViolations, { leastViolations }) {
    const verdict = violations === 0 ? 'close' : violations >= leastViolations ? 'open' : 'keep'
    return { verdict, sinceMs: Math.max(Math.floor(nowMs / HOUR_MS - 1) * HOUR_MS, firstMs), details: { violations, planRule, planId } }
  },
  opened: (name, { violations, planRule }) =>
    `Messages of the source "${name}" do not match its tracking plan: ${grouped(violations)} violations in the last two hours${planRule == null ? '' : `, most of them of the rule "${String(planRule)}"`}.`,
  closed: (name) => `The messages of the source "${name}" match its tracking plan again.`,
  link: (_id, { planId }) => `/plans/${String(planId)}`,
})
