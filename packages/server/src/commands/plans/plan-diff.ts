// `switchyard plan diff` and `switchyard plan apply`: compare a plan file with the service, and put it into effect.

import type { TrackingPlan } from '@switchyard/protocol'
import { counted } from '../../api/counted.ts'
import { comparePlans, type PlanChange } from '../../plans/compare-plans.ts'
import { type Call, type Command, EXIT } from '../line/command.ts'
import { at, idsOf } from '../line/references.ts'
import { ApiProblem } from '../service/api.ts'
import { learnPlan, messageFlags, orProblem, PLAN_FILE, planNamed, planOf, readPlan } from './plan-input.ts'

const USUAL_PERIOD = '7d'
const SIGNS = { added: '+', removed: '-', changed: '~' } as const

export const planDiff: Command = {
  name: 'plan diff',
  summary: 'Show how a plan file differs from the plan of the service, or from what was sent',
  details:
    'Without --source, shows what `plan apply` would change. With --source, learns a plan from the messages of the source and shows how the file differs from it, so that you see new events and properties.\n\nThe exit code is 0 if there are no differences and 5 if there are some.',
  arguments: [PLAN_FILE],
  flags: {
    source: { placeholder: 'SOURCE', description: 'Compare with what this source sent, by id or name.' },
    ...messageFlags(USUAL_PERIOD),
  },
  examples: ['switchyard plan diff plan.yaml', 'switchyard plan diff plan.yaml --source shop --from 7d'],
  async run(call) {
    const { plan, sources } = await readPlan(call.arguments[0] as string)
    const source = call.flag('source')
    const changes: PlanChange[] = []
    if (source === undefined) {
      const stored = await planNamed(call, plan.name)
      if (stored === undefined) call.out.remark(`The service has no plan ${plan.name}. Applying the file creates it.`)
      const before: TrackingPlan = stored === undefined ? { name: plan.name, unplanned: 'allow', rules: [] } : planOf(stored)
      changes.push(...comparePlans(before, plan), ...(await sourceChanges(call, (stored?.['sourceIds'] ?? []) as string[], sources)))
    } else changes.push(...comparePlans((await learnPlan(call, USUAL_PERIOD, source)).plan, plan))
    show(call, changes)
    return changes.length === 0 ? EXIT.ok : EXIT.differs
  },
}

export const planApply: Command = {
  name: 'plan apply',
  summary: 'Create or change a tracking plan to match a YAML file',
  details:
    'The plan is matched by its name. If the file has `sources`, the plan is attached to exactly these sources; without it, they stay as they are. Applying the same file again changes nothing. If somebody else changes the plan at the same time, the command stops with an error; run it again.',
  arguments: [PLAN_FILE],
  examples: ['switchyard plan apply plan.yaml'],
  async run(call) {
    const file = await readPlan(call.arguments[0] as string)
    const { plan, sources } = file
    const stored = await planNamed(call, plan.name)
    const attached = sources === undefined ? undefined : await idsOf(call.api, 'source', sources)
    const changes =
      stored === undefined
        ? null
        : [...comparePlans(planOf(stored), plan), ...(await sourceChanges(call, (stored['sourceIds'] ?? []) as string[], sources))]
    const body = { ...plan, description: plan.description ?? null, ...(attached === undefined ? {} : { sourceIds: attached }) }
    const applied = await orProblem(async () => {
      try {
        if (stored === undefined) return await call.api.post('/api/plans', body, { uniqueName: true })
        return changes?.length === 0 ? stored : await call.api.patch(at`/api/plans/${String(stored['id'])}`, body, stored)
      } catch (error) {
        // An error about a field names its line in the file.
        throw error instanceof ApiProblem && error.field !== undefined ? file.problem(error.field, error.message) : error
      }
    })
    if (call.json) call.out.json(applied)
    else {
      if (changes !== null && changes.length > 0) show(call, changes)
      const rules = counted(plan.rules.length, 'rule')
      const done = stored === undefined ? 'Created' : changes?.length === 0 ? 'Nothing to change in' : 'Changed'
      call.out.line(`${done} the plan ${plan.name}: ${rules}, version ${String(applied['version'])}.`)
      if (((applied['sourceIds'] ?? []) as string[]).length === 0)
        call.out.remark('The plan is attached to no source. Add `sources` to the file, then apply it again.')
    }
    return EXIT.ok
  },
}

/** `sources` as in the file, by id or name. */
async function sourceChanges({ api }: Call, before: readonly string[], sources: readonly string[] | undefined): Promise<PlanChange[]> {
  if (sources === undefined) return []
  const after = await idsOf(api, 'source', sources)
  const change = (kind: 'added' | 'removed', text: string): PlanChange => ({ kind, rule: null, path: null, change: text })
  return [
    ...after.flatMap((id, index) => (before.includes(id) ? [] : [change('added', `attached to the source ${sources[index]}`)])),
    ...before.filter((id) => !after.includes(id)).map((id) => change('removed', `no longer attached to the source ${id}`)),
  ]
}

function show({ json, out }: Call, changes: readonly PlanChange[]): void {
  if (json) return out.json(changes)
  if (changes.length === 0) out.line('No differences.')
  let last: string | null = null
  for (const { kind, rule, path, change } of changes) {
    const sign = out.paint(kind === 'added' ? 'green' : kind === 'removed' ? 'red' : 'yellow', SIGNS[kind])
    // A rule that is new or removed has one line; the changes of another rule are listed under its name.
    if (rule === null || (path === null && kind !== 'changed')) out.line(`${sign} ${rule === null ? '' : `${rule}: `}${change}`)
    else {
      if (rule !== last) out.line(rule)
      out.line(`  ${sign} ${path === null ? '' : `${path}: `}${change}`)
    }
    last = rule
  }
}
