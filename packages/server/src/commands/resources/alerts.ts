// `switchyard alerts`: lists incidents, changes the rules, mutes alerts, and sends a test.

import type { JsonObject } from '@switchyard/protocol'
import { RULE_IDS } from '../../api/alert-rule-ids.ts'
import { type Call, type Command, CommandProblem, EXIT, type Flag, UsageProblem } from '../line/command.ts'
import { type Column, cell, showEntries, showFacts, showResult, state, time } from '../line/listing.ts'
import { at, namesOf, optionalId } from '../line/references.ts'
import { newestCommand } from '../line/resource-commands.ts'
import { parseDuration, parseTimeFlag } from '../line/times.ts'

const MINUTE_MS = 60_000

const RULE_FLAG: Flag = { placeholder: 'RULE', description: 'Only this rule.', values: RULE_IDS }
const SUBJECT_FLAGS: Readonly<Record<string, Flag>> = {
  source: { placeholder: 'SOURCE', description: 'Only for this source, by id or name.' },
  destination: { placeholder: 'DESTINATION', description: 'Only for this destination, by id or name.' },
}

const COLUMNS: readonly Column[] = [
  ['id', ({ id }) => id],
  ['state', ({ state, acknowledged }) => (acknowledged === null ? state : `${cell(state)}, acknowledged`)],
  ['severity', ({ severity }) => severity],
  ['alert', ({ event }) => event],
  ['about', ({ subject }) => (subject as JsonObject)['name']],
  ['cause', ({ cause, measure }) => cause ?? countText(measure)],
  ['began', ({ since }) => time(since)],
  ['closed', ({ closedAt }) => (closedAt === null ? null : time(closedAt))],
]

const RULE_COLUMNS: readonly Column[] = [
  ['rule', ({ rule }) => rule],
  ['alert', ({ event }) => event],
  ['enabled', ({ enabled }) => enabled],
  ['settings', ({ settings }) => settingsText(settings)],
  ['exceptions', ({ exceptions }) => (exceptions as unknown[]).length],
  ['alerts', ({ notify }) => notify],
]

export const ALERT_COMMANDS: readonly Command[] = [
  newestCommand({
    name: 'alerts list',
    summary: 'List incidents: those that are not closed first, then the closed ones',
    details: 'The exit code is 0 whether or not there are open incidents.',
    flags: {
      state: { placeholder: 'STATE', description: 'Only incidents in this state.', values: ['active', 'starting', 'open', 'closed'] },
      rule: RULE_FLAG,
      ...SUBJECT_FLAGS,
    },
    examples: ['switchyard alerts', 'switchyard alerts --state active --json'],
    path: '/api/incidents',
    query: async (call) => ({ state: call.flag('state'), rule: call.flag('rule'), ...(await subjectOf(call)) }),
    columns: COLUMNS,
    none: 'There are no incidents.',
  }),
  {
    name: 'alerts show',
    summary: 'Show an incident with its timeline',
    arguments: [{ name: 'INCIDENT_ID', description: 'The id, as listed by `switchyard alerts`.' }],
    async run(call) {
      const { json, out } = call
      const incident = await call.api.get(at`/api/incidents/${call.arguments[0] as string}`)
      if (json) return out.json(incident)
      const { id, event, severity, subject, link, muted, timeline, message, cause, measure, acknowledged } = incident
      const { kind, name } = subject as JsonObject
      showFacts(out, [
        ['id', id],
        ['state', state(call, incident['state'])],
        ['severity', severity],
        ['alert', event],
        ['about', `${cell(kind)} ${cell(name)}`],
        ['cause', cause ?? undefined],
        ['message', incident['state'] === 'closed' ? undefined : message],
        ['count', countText(measure) ?? undefined],
        ['acknowledged', acknowledged === null ? undefined : `by ${cell((acknowledged as JsonObject)['name'])}`],
        ['page', link],
        ['muted', muted === true ? true : undefined],
      ])
      out.line('')
      for (const { at: when, what, sentence, messageId } of timeline as JsonObject[]) {
        out.line(`${time(when)}  ${cell(what).padEnd(7)} ${cell(sentence)}${messageId === null ? '' : ` (${cell(messageId)})`}`)
      }
    },
  },
  {
    name: 'alerts acknowledge',
    summary: 'Say that somebody takes care of an incident',
    arguments: [{ name: 'INCIDENT_ID', description: 'The id, as listed by `switchyard alerts`.' }],
    flags: {
      by: { placeholder: 'NAME', description: 'Who takes care of it. Default: the name of the token.' },
      note: { placeholder: 'TEXT', description: 'For other people.' },
      undo: { placeholder: null, description: 'Take the acknowledgement back.' },
    },
    examples: ["switchyard alerts acknowledge inc_Zm9vYmFy1234 --by Ada --note 'restarting the receiver'"],
    async run(call) {
      const id = call.arguments[0] as string
      if (call.has('undo')) {
        await call.api.delete(at`/api/incidents/${id}/acknowledge`)
        return showResult(call, { id, acknowledged: null }, `Took back the acknowledgement of ${id}.`)
      }
      const incident = await call.api.post(at`/api/incidents/${id}/acknowledge`, { name: call.flag('by'), note: call.flag('note') })
      return showResult(call, incident, `Acknowledged ${id} by ${cell((incident['acknowledged'] as JsonObject)['name'])}.`)
    },
  },
  {
    name: 'alerts rules',
    summary: 'Show the rules with their settings, or change one',
    details:
      'Without RULE, all rules are listed. With RULE and no flag, the settings of the rule are explained. ' +
      'A change applies to all sources or destinations, or to the one given with --source or --destination.',
    arguments: [{ name: 'RULE', description: 'The rule, such as destination_failing.', optional: true }],
    flags: {
      set: { placeholder: 'NAME=NUMBER', description: 'Change a setting of the rule.', many: true },
      notify: { placeholder: null, description: 'Send alerts about its incidents.' },
      silent: { placeholder: null, description: 'Send no alerts: its incidents are only listed.' },
      enable: { placeholder: null, description: 'Turn the rule on.' },
      disable: { placeholder: null, description: 'Turn the rule off.' },
      reset: { placeholder: null, description: 'Return to the default settings.' },
      ...SUBJECT_FLAGS,
    },
    examples: [
      'switchyard alerts rules',
      'switchyard alerts rules destination_failing --set openAfterMinutes=15',
      "switchyard alerts rules source_silent --disable --source 'batch import'",
    ],
    async run(call) {
      const { api, has } = call
      const [rule] = call.arguments
      const isChange = ['set', 'notify', 'silent', 'enable', 'disable', 'reset'].some((name) => has(name))
      if (rule === undefined && isChange) throw new UsageProblem('Give the RULE to change. Run `switchyard alerts rules` for a list.')
      const subject = await subjectOf(call)
      const subjectId = subject.sourceId ?? subject.destinationId
      const alerts = isChange
        ? await api.patch('/api/alerts', changeOf(rule as string, subjectId, choiceOf(call)))
        : await api.get('/api/alerts')
      const rules = alerts['rules'] as JsonObject[]
      if (rule === undefined) {
        showEntries(call, rules, RULE_COLUMNS, 'There are no rules.')
        return EXIT.ok
      }
      const one = rules.find((each) => each['rule'] === rule)
      if (one === undefined)
        throw new CommandProblem(`There is no rule ${rule}. Run \`switchyard alerts rules\` for a list.`, EXIT.notFound)
      showResult(call, one, () => showRule(call, one))
      return EXIT.ok

      function choiceOf({ flags }: Pick<Call, 'flags'>): JsonObject | null {
        if (has('reset')) return null
        const choice: JsonObject = {
          ...(has('enable') ? { enabled: true } : has('disable') ? { enabled: false } : {}),
          ...(has('notify') ? { notify: true } : has('silent') ? { notify: false } : {}),
        }
        for (const given of flags('set')) {
          const [, name, number] = /^(\w+)=(\d+)$/.exec(given) ?? []
          if (name === undefined) throw new UsageProblem(`--set ${given} is not valid. Write NAME=NUMBER, such as openAfterMinutes=15.`)
          choice[name] = Number(number)
        }
        return choice
      }
    },
  },
  {
    name: 'alerts mute',
    summary: 'Mute alerts for some time (incidents are still recorded)',
    details:
      'Without --rule, --source or --destination, all alerts are muted. If an incident is still open when the mute ends, the alert is sent then.',
    flags: {
      for: { placeholder: 'DURATION', description: 'For how long, such as 2h.' },
      until: { placeholder: 'TIME', description: 'Until when, such as 2026-11-20T08:00:00Z.' },
      rule: RULE_FLAG,
      ...SUBJECT_FLAGS,
      note: { placeholder: 'TEXT', description: 'Why, for other people.' },
    },
    examples: ["switchyard alerts mute --destination warehouse --for 2h --note 'migration'"],
    async run(call) {
      const { api, flag, out } = call
      const duration = flag('for')
      const until = flag('until')
      if ((duration === undefined) === (until === undefined)) throw new UsageProblem('Give either --for or --until: every mute has an end.')
      const mute = await api.post('/api/alerts/mutes', {
        rule: flag('rule'),
        ...(await subjectOf(call)),
        note: flag('note'),
        ...(duration === undefined
          ? { until: parseTimeFlag('until', until as string) }
          : { minutes: Math.max(1, Math.ceil(parseDuration('for', duration) / MINUTE_MS)) }),
      })
      showResult(
        call,
        mute,
        out.inForm(`Muted until ${time(mute['until'])}. To end it earlier: switchyard alerts unmute ${cell(mute['id'])}`),
      )
    },
  },
  {
    name: 'alerts mutes',
    summary: 'List the mutes that have not ended',
    async run(call) {
      const { data } = await call.api.get('/api/alerts/mutes')
      const names = call.json ? new Map() : new Map([...(await namesOf(call.api, 'source')), ...(await namesOf(call.api, 'destination'))])
      const columns: readonly Column[] = [
        ['id', ({ id }) => id],
        ['rule', ({ rule }) => rule ?? 'all'],
        ['about', ({ sourceId, destinationId }) => names.get(sourceId ?? destinationId) ?? sourceId ?? destinationId ?? 'all'],
        ['until', ({ until }) => time(until)],
        ['note', ({ note }) => note],
        ['by', ({ createdBy }) => (createdBy as JsonObject)['name']],
      ]
      showEntries(call, data as JsonObject[], columns, 'Nothing is muted.')
    },
  },
  {
    name: 'alerts unmute',
    summary: 'End a mute',
    arguments: [{ name: 'MUTE_ID', description: 'The id, as listed by `switchyard alerts mutes`.' }],
    async run(call) {
      const id = call.arguments[0] as string
      await call.api.delete(at`/api/alerts/mutes/${id}`)
      showResult(call, { id, ended: true }, `Ended mute ${id}.`)
    },
  },
  {
    name: 'alerts test',
    summary: 'Send a test alert to all destinations of the source system',
    details: 'The exit code is 1 if no destination is attached to the source system.',
    async run({ api, json, out }) {
      const sent = await api.post('/api/alerts/test', {})
      const count = (sent['destinationIds'] as unknown[]).length
      if (json) out.json(sent)
      else if (count === 0)
        out.line(out.inForm('No destination receives alerts. Create one: switchyard destinations create alerts URL --source system'))
      else
        out.line(
          out.inForm(
            `Sent to ${count === 1 ? '1 destination' : `${count} destinations`}. To see what happened: switchyard trace ${cell(sent['messageId'])}`,
          ),
        )
      return count === 0 ? EXIT.failed : EXIT.ok
    },
  },
]

async function subjectOf({ api, flag }: Call): Promise<{ sourceId: string | undefined; destinationId: string | undefined }> {
  if (flag('source') !== undefined && flag('destination') !== undefined)
    throw new UsageProblem('--source cannot be combined with --destination. Use one of them.')
  return {
    sourceId: await optionalId(api, 'source', flag('source')),
    destinationId: await optionalId(api, 'destination', flag('destination')),
  }
}

function changeOf(rule: string, subjectId: string | undefined, choice: JsonObject | null): JsonObject {
  return subjectId === undefined ? { rules: { [rule]: choice } } : { exceptions: { [rule]: { [subjectId]: choice } } }
}

/** `12 pending deliveries`. */
function countText(measure: unknown): string | null {
  if (measure == null) return null
  const { label, value } = measure as JsonObject
  return value === null ? null : `${cell(value)} ${cell(label)}`
}

function showRule({ out }: Call, { event, description, enabled, notify, settings, options, exceptions }: JsonObject): void {
  out.line(`${cell(event)}: ${cell(description)}`)
  out.line('')
  showFacts(out, [['enabled', enabled], ['sends alerts', notify], ...Object.entries(settings as JsonObject)])
  out.line('')
  for (const [name, option] of Object.entries(options as Record<string, JsonObject>)) {
    out.line(`${name}: ${cell(option['description'])} Default: ${cell(option['default'])}.`)
  }
  for (const { subjectId, subjectName, enabled: isOn, settings: own } of exceptions as JsonObject[]) {
    out.line(`Exception for ${cell(subjectName ?? subjectId)}: ${isOn === true ? settingsText(own) : 'off'}`)
  }
}

function settingsText(settings: unknown): string {
  return Object.entries(settings as JsonObject)
    .map(([name, value]) => `${name}=${cell(value)}`)
    .join(' ')
}
