// What several `plan` commands read: the file of a plan, the plans of the service, and the retained messages of a source, page by page.

import type { JsonObject, TrackingPlan } from '@switchyard/protocol'
import type { PlanFile } from '../../plans/plan-file.ts'
import { type Argument, type Call, CommandProblem, EXIT, type Flag, UsageProblem } from '../line/command.ts'
import { readFileText } from '../line/input.ts'
import { periodOf } from '../line/listing.ts'
import { idsOf } from '../line/references.ts'
import { parseCount, parseTimeFlag } from '../line/times.ts'

export const PLAN_FILE: Argument = { name: 'FILE', description: 'The plan as a YAML file; - reads it from stdin.' }

const USUAL_LIMIT = 100_000

export function messageFlags(defaultPeriod: string): Readonly<Record<string, Flag>> {
  return {
    from: {
      placeholder: 'TIME',
      description: 'The start of the period: 2h (two hours ago) or 2026-11-14T09:00:00Z.',
      defaultText: defaultPeriod,
    },
    to: { placeholder: 'TIME', description: 'The end of the period, in the same format.', defaultText: 'now' },
    limit: {
      placeholder: 'NUMBER',
      description: 'The maximum number of messages to read from each source, newest first.',
      defaultText: String(USUAL_LIMIT),
    },
  }
}

export async function readPlan(path: string): Promise<PlanFile> {
  const text = await readFileText('The plan', path)
  const { readPlanFile } = await import('../../plans/plan-file.ts')
  return await orProblem(() => readPlanFile(text, path))
}

/** Turns a problem with the file into an error message for the user. */
export async function orProblem<T>(read: () => Promise<T>): Promise<T> {
  const { PlanFileProblem } = await import('../../plans/plan-file.ts')
  try {
    return await read()
  } catch (error) {
    throw error instanceof PlanFileProblem ? new UsageProblem(error.message, { cause: error }) : error
  }
}

/** Checks the schemas of a plan as the service does when it saves a plan. */
export async function checkSchemas({ plan, problem }: PlanFile): Promise<void> {
  const [{ checkRules }, { ApiError }] = await Promise.all([import('../../plans/check-rules.ts'), import('../../errors.ts')])
  await orProblem(async () => {
    try {
      await checkRules(plan.rules)
    } catch (error) {
      throw error instanceof ApiError ? problem(error.field ?? '', error.message) : error
    }
  })
}

/** A plan as the API returns it, without what a file does not have. */
export function planOf({ name, description, unplanned, rules }: JsonObject): TrackingPlan {
  return { name, unplanned, rules, ...(description === null || description === undefined ? {} : { description }) }
}

export async function planNamed({ api }: Call, name: string): Promise<JsonObject | undefined> {
  const found: JsonObject[] = []
  for await (const plan of api.all('/api/plans')) if (plan['name'] === name) found.push(plan)
  if (found.length > 1)
    throw new CommandProblem(`Several plans have the name ${name}. Rename or delete all but one: ${found.map(({ id }) => id).join(', ')}.`)
  return found[0]
}

/** Calls `add` with each message of the sources, newest first. Returns how many were read, and whether there are more. */
export async function readMessages(
  call: Call,
  { sources, defaultPeriod, what }: { sources: readonly string[]; defaultPeriod: string; what: string },
  add: (message: JsonObject) => void,
): Promise<{ read: number; isMore: boolean }> {
  const { api, flag, out } = call
  const { from = parseTimeFlag('from', defaultPeriod), to } = periodOf(call)
  const limit = parseCount('limit', flag('limit') ?? String(USUAL_LIMIT))
  const ids = await idsOf(api, 'source', sources)
  const progress = out.progress(what)
  let read = 0
  let isMore = false
  try {
    for (const sourceId of ids) {
      const end = read + limit
      for await (const { message } of api.all('/api/messages', { sourceId, from, to, limit: Math.min(1_000, limit) })) {
        if (read >= end) {
          isMore = true
          break
        }
        read++
        // A message whose content was deleted is null.
        if (message !== null && message !== undefined) add(message)
        progress.update(read, null, 'messages')
      }
    }
  } finally {
    progress.end()
  }
  return { read, isMore }
}

/** Learns a plan from the messages of a source. Throws if there are none. */
export async function learnPlan(call: Call, defaultPeriod: string, source: string, name = source) {
  const { PlanLearner } = await import('../../plans/learn-plan.ts')
  const learner = new PlanLearner()
  const about = { sources: [source], defaultPeriod, what: 'Reading messages' }
  const { isMore } = await readMessages(call, about, (message) => learner.add(message))
  const learned = learner.learned(name)
  if (learned.messages === 0)
    throw new CommandProblem(
      `The source ${source} sent no messages in this period that a plan can describe. Use a longer --from.`,
      EXIT.notFound,
    )
  limitRemark(call, isMore)
  return { ...learned, isMore }
}

/** 12000 → 12,000. */
export function thousands(count: number): string {
  return count.toLocaleString('en-US')
}

export function limitRemark({ out, flag }: Call, isMore: boolean): void {
  if (isMore)
    out.remark(
      `The period has more messages. Only the newest ${thousands(Number(flag('limit') ?? USUAL_LIMIT))} of a source were read; use --limit to read more.`,
    )
}
