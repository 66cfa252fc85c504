// A client for unit tests: it sends nothing, records every call, and asserts that the calls fit a tracking plan, by the rules of the service. It needs
// neither a server nor a test runner, and leaves no timer behind.

import { createPlanJudge, type PlanJudge, type TrackingPlan, type Violation } from '@switchyard/protocol'
import { Analytics, type AnalyticsError, type AnalyticsEvent, type EventCatalog, type EventProperties } from '../index.ts'
import { createSchemaCompiler } from './schema-compiler.ts'

export type { PlanRule, TrackingPlan, Violation } from '@switchyard/protocol'

export interface TestClientSettings {
  /** Without a plan, the client only records calls. */
  plan?: TrackingPlan | undefined
}

/** A call that the service would reject, or whose message does not fit the plan. */
export interface UnplannedCall {
  /** The number of the call, starting at 1. */
  number: number
  /** Undefined if the call was not even an object. */
  message: AnalyticsEvent | undefined
  /** None if the service would reject the call. */
  violations: readonly Violation[]
  /** Why the service would reject the call, or what else the client reports about it. */
  error?: AnalyticsError
}

const TYPES = ['identify', 'track', 'page', 'screen', 'group', 'alias'] as const

/** Test files create many clients with one plan. */
const judges = new WeakMap<TrackingPlan, PlanJudge>()

export function createTestClient<Events extends { [Event in keyof Events]: EventProperties } = EventCatalog>(
  settings: TestClientSettings = {},
): TestClient<Events> {
  return new TestClient<Events>(settings)
}

/** Has all methods of `Analytics`. Plugins are registered but do not run. */
export class TestClient<Events extends { [Event in keyof Events]: EventProperties } = EventCatalog> extends Analytics<Events> {
  /** The messages of all calls that the service would accept, in order. */
  readonly messages: AnalyticsEvent[] = []
  /** The calls that `assertPlanned` reports. */
  readonly unplanned: UnplannedCall[] = []
  readonly #plan: TrackingPlan | undefined
  readonly #judge: PlanJudge | undefined
  #calls = 0

  constructor({ plan }: TestClientSettings = {}) {
    super({ writeKey: 'test', disable: true })
    this.#plan = plan
    this.#judge = plan === undefined ? undefined : judgeOf(plan)
    for (const type of TYPES) this.on(type, ({ event }) => this.#record(event))
    this.on('error', (error) => {
      this.unplanned.push({ number: this.#calls + 1, message: error.ctx?.event, violations: [], error })
      // A call with an invalid timestamp is reported first, and then accepted.
      if (error.code !== 'timestamp_invalid') this.#calls += 1
    })
  }

  /** Throws an error that lists every call that does not fit the plan, and every call that the service would reject. */
  assertPlanned(): void {
    const [fault] = this.#judge?.faults ?? []
    if (fault !== undefined) throw new Error(`the rule ${fault.rule} of the tracking plan cannot be applied: ${fault.message}`)
    if (this.unplanned.length > 0) throw new PlanError(this.unplanned, this.#calls, this.#plan?.name)
  }

  /** Forgets all calls. */
  clear(): void {
    this.messages.length = 0
    this.unplanned.length = 0
    this.#calls = 0
  }

  #record(message: AnalyticsEvent): void {
    this.#calls += 1
    this.messages.push(message)
    const verdict = this.#judge?.judge(message)
    if (!verdict) return
    const reported = this.unplanned.find(({ number }) => number === this.#calls)
    if (reported) reported.violations = verdict.violations
    else this.unplanned.push({ number: this.#calls, message, violations: verdict.violations })
  }
}

/** Thrown by `assertPlanned`. */
export class PlanError extends Error {
  override name = 'PlanError'
  readonly calls: readonly UnplannedCall[]

  constructor(calls: readonly UnplannedCall[], all: number, plan: string | undefined) {
    const which = plan === undefined ? 'would be rejected by the service' : `do not fit the tracking plan ${JSON.stringify(plan)}`
    super([`${calls.length} of ${all} calls ${which}:`, ...calls.flatMap(describe)].join('\n'))
    this.calls = [...calls]
  }
}

function describe({ number, message, violations, error }: UnplannedCall): string[] {
  const what = message === undefined ? '' : `, ${message.type}${message.event === undefined ? '' : ` ${JSON.stringify(message.event)}`}`
  return [
    `  call ${number}${what}`,
    ...(error === undefined ? [] : [`    ${error.message} (${error.code})`]),
    ...violations.map(({ code, path, expected, found }) => `    ${path}: expected ${expected}, found ${found} (${code})`),
  ]
}

function judgeOf(plan: TrackingPlan): PlanJudge {
  if (!Array.isArray(plan.rules)) throw new TypeError('plan must be a tracking plan: an object with name, unplanned and rules')
  let judge = judges.get(plan)
  if (judge === undefined) {
    // A plan file may leave these out.
    judge = createPlanJudge({ rules: plan.rules, unplanned: plan.unplanned ?? 'allow' }, createSchemaCompiler)
    judges.set(plan, judge)
  }
  return judge
}
