// `switchyard plan types`: writes typed calls for a tracking plan, and checks in CI that they are up to date.

import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import type { JsonObject, TrackingPlan } from '@switchyard/protocol'
import { counted } from '../../api/counted.ts'
import { type Call, type Command, CommandProblem, EXIT, UsageProblem } from '../line/command.ts'
import { at, idOf } from '../line/references.ts'
import { readPlan } from './plan-input.ts'
import { TARGETS, type Target, typedModule } from './typed-module.ts'

export const planTypes: Command = {
  name: 'plan types',
  summary: 'Write TypeScript functions for the events of a tracking plan',
  details:
    'The module has a function for each planned track event, and typed identify, group, page and screen if the plan has rules for them. Wrong names, and missing or wrong properties, do not compile. It imports nothing but types.\n\nThe plan is read from FILE or from the service. Without FILE and --plan, it is the only plan of the service.',
  arguments: [{ name: 'FILE', description: 'The plan as a YAML file; - reads it from stdin.', optional: true }],
  flags: {
    plan: { placeholder: 'PLAN', description: 'Read this plan from the service, by id or name.' },
    out: { placeholder: 'FILE', description: 'The file to write. Without it, the module is written to stdout.' },
    for: {
      placeholder: 'CLIENT',
      description:
        'The client that the functions call: node is @switchyard/node, browser is @segment/analytics-next. testing writes the plan itself, for @switchyard/node/testing.',
      values: TARGETS,
      defaultText: 'node',
    },
    check: { placeholder: null, description: 'Write nothing, and exit with 1 if the file given with --out is not up to date.' },
  },
  examples: [
    'switchyard plan types plan.yaml --out analytics.gen.ts',
    'switchyard plan types --plan Shop --for browser --out analytics.gen.ts',
    'switchyard plan types plan.yaml --out analytics.gen.ts --check',
  ],
  async run(call) {
    const path = call.flag('out')
    const [file, named] = [call.arguments[0], call.flag('plan')]
    if (file !== undefined && named !== undefined) throw new UsageProblem('Give either FILE or --plan, not both.')
    if (call.has('check') && path === undefined) throw new UsageProblem('--check needs --out: the file to check.')
    const plan = file === undefined ? await planOfService(call, named) : (await readPlan(file)).plan
    const text = typedModule(plan, (call.flag('for') ?? 'node') as Target)
    if (path === undefined) {
      call.out.text(text.trimEnd())
      return EXIT.ok
    }
    const written = textOf(path)
    // Git may have converted line breaks.
    const isCurrent = written?.replaceAll('\r\n', '\n') === text
    if (call.has('check')) {
      if (call.json) call.out.json({ file: path, plan: plan.name, isCurrent })
      else if (isCurrent) call.out.line(`${path} is up to date.`)
      else
        call.out.line(
          `${path} ${written === undefined ? 'does not exist' : `is not up to date with the tracking plan ${plan.name}`}. Run the same command without --check.`,
        )
      return isCurrent ? EXIT.ok : EXIT.failed
    }
    // An unchanged file is not written again, so that nothing that watches it starts to work.
    if (!isCurrent) write(path, text)
    if (call.json) call.out.json({ file: path, plan: plan.name, rules: plan.rules.length, isChanged: !isCurrent })
    else
      call.out.line(
        isCurrent ? `${path} is up to date.` : `Wrote ${path}: ${counted(plan.rules.length, 'rule')} of the tracking plan ${plan.name}.`,
      )
    return EXIT.ok
  },
}

async function planOfService({ api }: Call, named: string | undefined): Promise<TrackingPlan> {
  if (named !== undefined) return (await api.get(at`/api/plans/${await idOf(api, 'plan', named)}`)) as JsonObject & TrackingPlan
  const plans: (JsonObject & TrackingPlan)[] = []
  for await (const plan of api.all('/api/plans')) plans.push(plan as JsonObject & TrackingPlan)
  const [plan, ...others] = plans
  if (plan === undefined)
    throw new CommandProblem(
      'The service has no tracking plan. Give the file of a plan, or create one with `switchyard plan apply FILE`.',
      EXIT.notFound,
    )
  if (others.length > 0)
    throw new UsageProblem(`The service has several tracking plans. Choose one with --plan: ${plans.map(({ name }) => name).join(', ')}.`)
  return plan
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new UsageProblem(`Cannot read ${path}: ${(error as Error).message}.`, { cause: error })
  }
}

function write(path: string, text: string): void {
  try {
    writeFileSync(`${path}.new`, text)
    renameSync(`${path}.new`, path)
  } catch (error) {
    throw new UsageProblem(`Cannot write ${path}: ${(error as Error).message}.`, { cause: error })
  }
}
