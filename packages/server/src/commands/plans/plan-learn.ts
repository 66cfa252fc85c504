// `switchyard plan learn`: writes a tracking plan from the messages that a source really sent.

import { writeFileSync } from 'node:fs'
import { counted } from '../../api/counted.ts'
import { type Command, UsageProblem } from '../line/command.ts'
import { learnPlan, messageFlags, thousands } from './plan-input.ts'

const USUAL_PERIOD = '7d'

export const planLearn: Command = {
  name: 'plan learn',
  summary: 'Write a tracking plan from the messages that a source sent',
  details:
    'The plan has a rule for each event: the types of its properties, which of them every message has, formats, and small sets of values. All rules have the mode observe. Review the plan before you apply it.\n\nA set of values is only listed if each was sent at least three times, and by several users if there are several. Values and names that look personal, such as email addresses, ids and names, are left out. The exit code is 4 if the source sent no messages in the period.',
  flags: {
    source: { placeholder: 'SOURCE', description: 'The source, by id or name.' },
    ...messageFlags(USUAL_PERIOD),
    name: { placeholder: 'NAME', description: 'The name of the plan.', defaultText: 'the name of the source' },
    out: { placeholder: 'FILE', description: 'The file to write. Without it, the plan is written to stdout.' },
    force: { placeholder: null, description: 'Overwrite the file if it exists.' },
  },
  examples: ['switchyard plan learn --source shop --from 7d --out plan.yaml'],
  async run(call) {
    const { flag, out, json } = call
    const source = flag('source')
    if (source === undefined) throw new UsageProblem('--source is required: the source whose messages to read.')
    const { planText } = await import('../../plans/plan-file.ts')
    const { plan, messages, leftOut, isMore } = await learnPlan(call, USUAL_PERIOD, source, flag('name'))
    if (leftOut.events > 0)
      out.remark(
        `${counted(leftOut.events, 'event has', 'events have')} no rule, because the names look generated or because there are too many; they have ${counted(leftOut.messages, 'message')}. The plan allows events without a rule.`,
      )
    const path = flag('out')
    const text = await planText(plan, [source])
    if (path !== undefined && path !== '-') write(path, text, call.has('force'))
    const summary = { messages, rules: plan.rules.length, leftOut, complete: !isMore }
    if (json) out.json({ ...summary, plan, ...(path === undefined ? {} : { file: path }) })
    else if (path === undefined || path === '-') out.text(text.trimEnd())
    else
      out.line(
        out.inForm(
          `Wrote ${path}: ${counted(plan.rules.length, 'rule')}, learned from ${thousands(messages)} ${messages === 1 ? 'message' : 'messages'}. Review it, then run \`switchyard plan apply ${path}\`.`,
        ),
      )
  },
}

function write(path: string, text: string, force: boolean): void {
  try {
    writeFileSync(path, text, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new UsageProblem(
      code === 'EEXIST'
        ? `${path} exists. Use --force to overwrite it, or compare it with \`switchyard plan diff ${path} --source SOURCE\`.`
        : `Cannot write ${path}: ${message}.`,
      { cause: error },
    )
  }
}
