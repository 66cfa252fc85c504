// The judges of the plans in effect, by source. A plan is compiled once per version, and again only if its content changes.

import { createPlanJudge, type JsonObject, type PlanFault, type PlanJudge, type Verdict } from '@switchyard/protocol'
import type { Configuration } from '../store/port/model.ts'
import { createSchemaCompiler } from './plan-schema-compiler.ts'

export interface SourcePlan {
  planId: string
  judge: (message: JsonObject) => Verdict | null
}

export interface PlanJudges {
  /** The plan of a source; null if it has none. */
  of(configuration: Configuration, sourceId: string): SourcePlan | null
  /** The rules of a plan that this process could not apply. Their messages count as valid. */
  faults(planId: string): readonly PlanFault[]
}

export function createPlanJudges(onFault: (planId: string, fault: PlanFault) => void): PlanJudges {
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
      for (const sourceId of sourceIds) bySource.set(sourceId, { planId: id, judge: plan.judge })
    }
    judges = kept
    current = configuration
  }

  return {
    of(configuration, sourceId) {
      // The configuration is replaced as a whole when something in it changes.
      if (configuration !== current) update(configuration)
      return bySource.get(sourceId) ?? null
    },
    faults: (planId) => judges.get(planId)?.plan.faults ?? [],
  }
}
