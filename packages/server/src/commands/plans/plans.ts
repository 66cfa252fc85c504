// `switchyard plan`: lists, shows and deletes tracking plans, and lists the violations that the service recorded.

import type { JsonObject } from '@switchyard/protocol'
import type { Argument, Call, Command } from '../line/command.ts'
import { type Column, time } from '../line/listing.ts'
import { namesOf, optionalId, resourcePath } from '../line/references.ts'
import { deleteCommand, listCommand, newestCommand } from '../line/resource-commands.ts'
import { planCheck } from './plan-check.ts'
import { planApply, planDiff } from './plan-diff.ts'
import { planOf } from './plan-input.ts'
import { planLearn } from './plan-learn.ts'
import { planTypes } from './plan-types.ts'

const PLAN: Argument = { name: 'PLAN', description: 'The plan, by id or name.' }

async function columns({ api }: Call): Promise<readonly Column[]> {
  const sources = await namesOf(api, 'source')
  return [
    ['id', ({ id }) => id],
    ['name', ({ name }) => name],
    ['version', ({ version }) => version],
    ['rules', ({ rules }) => (rules as unknown[]).length],
    ['sources', ({ sourceIds }) => (sourceIds as string[]).map((id) => sources.get(id) ?? id)],
    ['created', ({ createdAt }) => time(createdAt)],
  ]
}

/** Null for the violations of a source that are counted together, because it has too many. */
const violationOf = ({ violation }: JsonObject): JsonObject => (violation as JsonObject | null) ?? { rule: 'other violations' }

const VIOLATION_COLUMNS: readonly Column[] = [
  ...(['rule', 'path', 'code', 'expected', 'found'] as const).map((field): Column => [field, (entry) => violationOf(entry)[field]]),
  ['24 h', ({ hours }) => (hours as number[]).reduce((sum, count) => sum + count, 0)],
  ['total', ({ total }) => total],
  ['last seen', ({ lastSeen }) => time(lastSeen)],
  ['sample message id', ({ messageIds }) => (messageIds as string[])[0]],
]

export const PLAN_COMMANDS: readonly Command[] = [
  listCommand({
    name: 'plan list',
    summary: 'List tracking plans and their sources',
    examples: ['switchyard plan list'],
    path: '/api/plans',
    columns,
    none: 'There are no tracking plans. Write one with `switchyard plan learn --source SOURCE --out plan.yaml`.',
  }),
  {
    name: 'plan show',
    summary: 'Show a tracking plan as a YAML file',
    details: 'The output can be edited and applied with `switchyard plan apply`.',
    arguments: [PLAN],
    examples: ['switchyard plan show shop > plan.yaml'],
    async run(call) {
      const plan = await call.api.get(await resourcePath(call, 'plan'))
      if (call.json) call.out.json(plan)
      else {
        const { planText } = await import('../../plans/plan-file.ts')
        const sources = await namesOf(call.api, 'source')
        const attached = (plan['sourceIds'] as string[]).map((id) => sources.get(id) ?? id)
        call.out.text((await planText(planOf(plan), attached)).trimEnd())
      }
    },
  },
  planLearn,
  planDiff,
  planCheck,
  planApply,
  planTypes,
  deleteCommand({
    name: 'plan delete',
    summary: 'Delete a tracking plan (its sources are no longer checked)',
    arguments: [PLAN],
    kind: 'plan',
    question: (plan, id) => `Delete the tracking plan ${plan} (${id})? Messages of its sources will no longer be checked.`,
  }),
  newestCommand({
    name: 'plan violations',
    summary: 'List how messages differed from their tracking plans, newest first',
    details:
      'Each line is one property of one rule, with the number of messages in the last 24 hours and in all. `switchyard trace MESSAGE_ID` shows a message.',
    flags: {
      source: { placeholder: 'SOURCE', description: 'Only violations of this source, by id or name.' },
      plan: { placeholder: 'PLAN', description: 'Only violations of this plan, by id or name.' },
    },
    examples: ['switchyard plan violations --source shop'],
    path: '/api/violations',
    async query({ api, flag }) {
      return { sourceId: await optionalId(api, 'source', flag('source')), plan: await optionalId(api, 'plan', flag('plan')) }
    },
    columns: VIOLATION_COLUMNS,
    none: 'No violations were recorded.',
  }),
]
