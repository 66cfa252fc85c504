// `switchyard plan check`: says what a plan would flag in messages that were already sent, for CI and before a plan is applied.

import { type Command, EXIT, UsageProblem } from '../line/command.ts'
import { parseCount } from '../line/times.ts'
import { checkSchemas, limitRemark, messageFlags, PLAN_FILE, readMessages, readPlan, thousands } from './plan-input.ts'

const USUAL_PERIOD = '24h'

export const planCheck: Command = {
  name: 'plan check',
  summary: 'Show what a tracking plan would flag in messages that were sent',
  details:
    'Reads the stored messages of the sources and checks them against the plan, as the service would. Nothing is changed or recorded. Properties that a plan removed before a message was stored cannot be checked.\n\nThe exit code is 0 if no message is flagged, 1 if some are (more than --allow), 2 if the file is not a valid plan.',
  arguments: [PLAN_FILE],
  flags: {
    source: {
      placeholder: 'SOURCE',
      description: 'A source, by id or name. Repeat the flag for several.',
      many: true,
      defaultText: 'the sources in the file',
    },
    ...messageFlags(USUAL_PERIOD),
    allow: { placeholder: 'NUMBER', description: 'How many flagged messages to accept.', defaultText: '0' },
  },
  examples: ['switchyard plan check plan.yaml --source shop --from 24h', 'switchyard plan check plan.yaml --allow 10 --json'],
  async run(call) {
    const { flag, flags, out, json } = call
    const path = call.arguments[0] as string
    const file = await readPlan(path)
    await checkSchemas(file)
    const allowed = parseCount('allow', flag('allow') ?? '0', 0)
    const sources = flags('source').length > 0 ? flags('source') : (file.sources ?? [])
    if (sources.length === 0) throw new UsageProblem(`${path} names no sources. Use --source to say whose messages to check.`)
    const [{ createPlanJudge }, { createSchemaCompiler }, { MessageCheck }] = await Promise.all([
      import('@switchyard/protocol'),
      import('../../plans/plan-schema-compiler.ts'),
      import('../../plans/check-messages.ts'),
    ])
    const judge = createPlanJudge(file.plan, createSchemaCompiler)
    const check = new MessageCheck(judge)
    const { isMore } = await readMessages(call, { sources, defaultPeriod: USUAL_PERIOD, what: 'Checking messages' }, (message) =>
      check.add(message),
    )
    limitRemark(call, isMore)
    for (const { rule, message } of judge.faults) out.remark(`The rule ${rule} was not applied: ${message}`)
    const { messages, flaggedMessages } = check
    const flagged = check.flagged()
    if (json) out.json({ messages, flaggedMessages, complete: !isMore, flagged })
    else {
      if (flagged.length > 0)
        out.table(
          ['rule', 'path', 'code', 'expected', 'found', 'messages', 'sample message id'],
          flagged.map((each) => [each.rule, each.path, each.code, each.expected, each.found, thousands(each.messages), each.sample ?? '–']),
        )
      out.line(`${path} would flag ${thousands(flaggedMessages)} of ${thousands(messages)} ${messages === 1 ? 'message' : 'messages'}.`)
    }
    return flaggedMessages > allowed || judge.faults.length > 0 ? EXIT.failed : EXIT.ok
  },
}
