// The judges of the plans in effect, by source. A plan is compiled once per version, and again only if its content changes. Rules with large
// schemas are compiled when the configuration changes, one after the other with other work in between; the others with their first message.

import { createPlanJudge, type JsonObject, type PlanFault, type PlanJudge, type PlanVerdict, requestBudget } from '@switchyard/protocol'
import type { Configuration } from '../model/configuration.ts'
import { createSchemaCompiler } from './plan-schema-compiler.ts'

export interface SourcePlan {
  planId: string
  /** Call it once per request, and what it returns for each message of the request. */
  forRequest: () => (message: JsonObject) => PlanVerdict | null
}

export type PlanJudges = ReturnType<typeof createPlanJudges>

export function createPlanJudges(onFault: (planId: string, fault: PlanFault) => void) {
  let current: Configuration | undefined
  let bySource = new Map<string, SourcePlan>()
  let judges = new Map<string, { version: number; plan: PlanJudge }>()

  function update(configuration: Configuration): void {
    const kept: typeof judges = new Map()
    bySource = new Map()
    for (const { id, version, sourceIds, ...content } of configuration.plans.values()) {
      const known = judges.get(id)
      const plan = known?.version === version ? known.plan : createPlanJudge(content, createSchemaCompiler, (fault) => onFault(id, fault))
      kept.set(id, { version, plan })
      if (plan !== known?.plan) compileAhead(id, plan)
      const forRequest: SourcePlan['forRequest'] = () => {
        const budget = requestBudget()
        return (message) => plan.judge(message, budget)
      }
      for (const sourceId of sourceIds) bySource.set(sourceId, { planId: id, forRequest })
    }
    judges = kept
    current = configuration
  }

  /** One rule at a time: the largest schemas take some hundred milliseconds. */
  function compileAhead(id: string, plan: PlanJudge): void {
    setImmediate(() => {
      if (judges.get(id)?.plan === plan && plan.compileNext()) compileAhead(id, plan)
    })
  }

  /** Compiles large schemas of new plans. Without this, they are compiled with the next message. */
  function follow(configuration: Configuration): void {
    // The configuration is replaced as a whole when something in it changes.
    if (configuration !== current) update(configuration)
  }

  return {
    follow,
    /** The plan of a source; null if it has none. */
    of(configuration: Configuration, sourceId: string): SourcePlan | null {
      follow(configuration)
      return bySource.get(sourceId) ?? null
    },
    /** The rules of a plan that this process could not apply. Their messages count as valid. */
    faults: (planId: string): readonly PlanFault[] => judges.get(planId)?.plan.faults ?? [],
  }
}
