// Routes for alerts: the settings of rules, mutes, and a test message.

import { parseTime } from '@switchyard/protocol'
import { type Choice, type ChoiceChange, type Choices, type Mute, settingsFor, TooMany } from '../../alerts/alert-settings.ts'
import type { Rule } from '../../alerts/rules/rule.ts'
import { RULES } from '../../alerts/rules/rules.ts'
import { readOnly, resource } from '../../api/resources/resource.ts'
import {
  array,
  boolean,
  type Infer,
  integer,
  invalidField,
  nullable,
  number,
  object,
  oneOf,
  optional,
  record,
  type Schema,
  shown,
  string,
  time,
  withDefault,
} from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { type Configuration, type Store, SYSTEM_SOURCE } from '../../store/store.ts'
import { recordAction } from '../routes/audit-entries.ts'
import { listAnswer } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { acknowledgeRoutes, incidentRoutes, RULE, running } from './incidents.ts'

const MINUTE_MS = 60_000
const MAX_MUTE_MINUTES = 366 * 24 * 60

const RULE_VIEW = object(
  {
    rule: RULE,
    event: string({ description: 'The event of the message when an incident is opened.' }),
    closedEvent: string({ description: 'The event of the message when it is closed.' }),
    subject: oneOf(['source', 'destination', 'node', 'service'], { description: 'What the incidents of the rule are about.' }),
    description: string(),
    sentences: array(string(), { description: 'The rule in words, with the names of settings in braces.' }),
    enabled: boolean(),
    notify: boolean({ description: 'Whether alerts are sent. If not, its incidents are only listed.' }),
    settings: record(number(), { description: 'The settings that apply, by name.' }),
    options: record(object({ default: number(), min: number(), max: number(), description: string() }), {
      description: 'The settings of the rule, by name.',
    }),
    exceptions: array(
      object({
        subjectId: string({ description: 'The id of a source or destination.' }),
        subjectName: nullable(string({ description: 'Null if it was deleted.' })),
        enabled: boolean(),
        notify: boolean(),
        settings: record(number()),
      }),
      { description: 'Sources and destinations for which the rule has other settings.' },
    ),
  },
  { title: 'AlertRule', description: 'What is noticed, and when.' },
)
const ALERTS = object(
  {
    rules: array(RULE_VIEW),
    destinationIds: array(string(), { description: 'The destinations that are attached to the source `system`, which receive alerts.' }),
    openIncidents: integer(),
    mutes: integer({ description: 'The number of mutes that have not ended.' }),
  },
  { title: 'Alerts' },
)

/** The settings of a rule, as they are changed. Null: the default applies again. */
function choiceSchema({ settings }: Rule<never>): Schema<Readonly<Record<string, boolean | number | null>>> {
  const numbers = Object.entries(settings).map(
    ([name, { fallback, min, max, description: text }]) =>
      [name, optional(nullable(integer({ min, max, description: `${text} Default: ${fallback}.` })))] as const,
  )
  return object({ enabled: optional(nullable(boolean())), notify: optional(nullable(boolean())), ...Object.fromEntries(numbers) })
}

const ALERTS_PATCH = object({
  rules: optional(
    object(Object.fromEntries(RULES.map((rule) => [rule.id, optional(nullable(choiceSchema(rule)))])), {
      description: 'The settings to change, by rule. Set a setting or a whole rule to null to return to the defaults.',
    }),
  ),
  exceptions: optional(
    object(Object.fromEntries(RULES.map((rule) => [rule.id, optional(record(nullable(choiceSchema(rule))))])), {
      description:
        'The settings for single sources and destinations, by rule and by the id of the source or destination. Null removes an exception.',
    }),
  ),
})

const MUTE = resource(
  {
    id: readOnly(string()),
    rule: withDefault(nullable(RULE), null),
    sourceId: withDefault(nullable(string({ min: 1, max: 100, description: 'Only incidents about this source.' })), null),
    destinationId: withDefault(nullable(string({ min: 1, max: 100, description: 'Only incidents about this destination.' })), null),
    until: {
      create: optional(time({ description: 'When the mute ends, at most a year from now. Send either this or `minutes`.' })),
      view: time(),
    },
    note: withDefault(nullable(string({ max: 500, description: 'Why, for other people.' })), null),
    createdAt: readOnly(time()),
    createdBy: readOnly(object({ id: string(), name: string() })),
  },
  { title: 'Mute', description: 'Incidents that match a mute are recorded, but no alert is sent about them until the mute ends.' },
)
const NEW_MUTE = object({
  ...MUTE.create.fields,
  minutes: optional(integer({ min: 1, max: MAX_MUTE_MINUTES, description: 'For how long.' })),
})

const TEST_ANSWER = object({
  messageId: string({ description: 'GET /api/messages/{messageId} shows what happened to it.' }),
  destinationIds: array(string(), { description: 'The destinations that it is sent to.' }),
})

export function alertRoutes(parts: ControlParts): Route[] {
  return [...incidentRoutes(parts), ...acknowledgeRoutes(parts), ...ruleRoutes(parts), ...muteRoutes(parts), testRoute(parts)]
}

function ruleRoutes(parts: ControlParts): Route[] {
  const { store, clock, alerts } = parts
  return [
    route('GET', '/alerts', {
      summary: 'Retrieve the rules for alerts, with their settings',
      access: { role: 'viewer', sources: 'limited' },
      answer: ALERTS,
      tagged: true,
      handle: () => alertsView(parts),
    }),
    route('PATCH', '/alerts', {
      summary: 'Change the settings of rules',
      access: { role: 'admin', sources: 'all' },
      body: ALERTS_PATCH,
      answer: ALERTS,
      async handle({ body, actor }) {
        const { sources, destinations } = store.configuration()
        for (const [rule, own] of Object.entries(body.exceptions ?? {})) {
          const kind = RULES.find(({ id }) => id === rule)?.subject
          for (const [id, choice] of Object.entries(own ?? {})) {
            const isKnown = kind === 'source' ? sources.has(id) : kind === 'destination' && destinations.has(id)
            // An exception of something that was deleted can still be removed.
            if (!isKnown && choice !== null)
              throw invalidField(
                `exceptions.${rule}`,
                kind === 'source' || kind === 'destination' ? `has no ${kind} with the id ${id}` : 'cannot have exceptions',
              )
          }
        }
        const { before, after } = await running(alerts)
          .settings.change(body as ChoiceChange, clock.wallMs())
          .catch(asApiError)
        await store.history.noteAudit({ actor, action: 'alerts.update', subject: null, before: { ...before }, after: { ...after } })
        return alertsView(parts)
      },
    }),
  ]
}

function muteRoutes({ store, clock, alerts }: ControlParts): Route[] {
  return [
    route('GET', '/alerts/mutes', {
      summary: 'List the mutes that have not ended',
      access: { role: 'viewer', sources: 'limited' },
      answer: listAnswer(MUTE.view),
      async handle() {
        const mutes = await running(alerts).settings.mutes(clock.wallMs())
        return { data: mutes.map((mute) => muteView(mute, store.configuration())), next: null }
      },
    }),
    route('POST', '/alerts/mutes', {
      summary: 'Mute alerts of a rule, of a source, of a destination, or all of them, for some time',
      access: { role: 'editor', sources: 'limited' },
      description: 'Incidents are still recorded. If an incident is still open when the mute ends, the alert is sent then.',
      body: NEW_MUTE,
      status: 201,
      answer: MUTE.view,
      errors: ['source_not_found', 'destination_not_found', 'shared_destination'],
      async handle({ body, actor }) {
        const { rule, sourceId, destinationId, note } = body
        const { sources, destinations } = store.configuration()
        if (sourceId !== null && destinationId !== null)
          throw invalidField('destinationId', 'cannot be combined with sourceId. Send only one of them')
        if (sourceId !== null && !sources.has(sourceId)) throw new ApiError('source_not_found')
        if (destinationId !== null && !destinations.has(destinationId)) throw new ApiError('destination_not_found')
        const nowMs = clock.wallMs()
        const untilMs = endOf(body, nowMs)
        const made = {
          rule,
          subjectId: sourceId ?? destinationId,
          untilMs,
          note,
          createdAtMs: nowMs,
          createdBy: { id: actor.id, name: actor.name },
        }
        const view = muteView(await running(alerts).settings.mute(made).catch(asApiError), store.configuration())
        await recordAction(store.history, { actor, action: 'mute.create', subject: view.id, after: view, sources: sourcesOf(view, store) })
        return view
      },
    }),
    route('DELETE', '/alerts/mutes/:id', {
      summary: 'End a mute',
      access: { role: 'editor', sources: 'limited', subject: 'mute' },
      status: 204,
      errors: ['mute_not_found'],
      async handle({ params, actor }) {
        const ended = await running(alerts).settings.unmute(params['id'] ?? '')
        if (ended === undefined) throw new ApiError('mute_not_found')
        const view = muteView(ended, store.configuration())
        const sources = sourcesOf(view, store)
        await store.history.noteAudit({ actor, action: 'mute.delete', subject: ended.id, before: view, after: null, sources })
      },
    }),
  ]
}

/** Null: the mute is about everything, or about something that was deleted. */
function sourcesOf({ sourceId, destinationId }: Infer<typeof MUTE.view>, store: Store): readonly string[] | null {
  if (sourceId !== null) return [sourceId]
  return store.configuration().destinations.get(destinationId ?? '')?.sourceIds ?? null
}

function testRoute({ store, alerts }: ControlParts): Route {
  return route('POST', '/alerts/test', {
    summary: 'Send a test alert to all destinations of the source system',
    access: { role: 'admin', sources: 'all' },
    description: 'The message has the event `Alert Test`. It is routed and delivered like an alert.',
    answer: TEST_ANSWER,
    async handle({ actor }) {
      const sent = await running(alerts).test(actor)
      await recordAction(store.history, { actor, action: 'alerts.test', subject: null, after: sent })
      return sent
    },
  })
}

async function alertsView({ store, clock, alerts }: ControlParts) {
  const { settings } = running(alerts)
  const choices = await settings.choices()
  return {
    rules: RULES.map((rule) => ruleView(rule, choices, store.configuration())),
    destinationIds: [...store.configuration().destinations.values()]
      .filter(({ sourceIds }) => sourceIds.includes(SYSTEM_SOURCE))
      .map(({ id }) => id),
    openIncidents: await running(alerts).openCount(),
    mutes: (await settings.mutes(clock.wallMs())).length,
  }
}

function endOf({ until, minutes }: { until?: string | undefined; minutes?: number | undefined }, nowMs: number): number {
  if ((until === undefined) === (minutes === undefined))
    throw invalidField('until', 'or minutes is required (only one of them), because every mute has an end')
  const untilMs = minutes === undefined ? (parseTime(until) ?? 0) : nowMs + minutes * MINUTE_MS
  if (untilMs <= nowMs) throw invalidField('until', 'must be in the future')
  if (untilMs > nowMs + MAX_MUTE_MINUTES * MINUTE_MS) throw invalidField('until', 'must be at most a year from now')
  return untilMs
}

function asApiError(error: unknown): never {
  if (error instanceof TooMany)
    throw new ApiError('invalid_request', { message: `The change was not made: ${error.message}. Remove some first.` })
  throw error
}

function ruleView(rule: Rule<never>, choices: Choices, { sources, destinations }: Configuration) {
  const { id, settings } = rule
  const { enabled, notifies: notify, values } = settingsFor(choices, rule, null)
  const exceptions: Readonly<Record<string, Choice>> = choices.exceptions[id] ?? {}
  return {
    ...rule,
    rule: id,
    enabled,
    notify,
    settings: values,
    options: Object.fromEntries(Object.entries(settings).map(([name, { fallback, ...rest }]) => [name, { default: fallback, ...rest }])),
    exceptions: Object.keys(exceptions).map((subjectId) => {
      const own = settingsFor(choices, rule, subjectId)
      const subjectName = (sources.get(subjectId) ?? destinations.get(subjectId))?.name ?? null
      return { subjectId, subjectName, enabled: own.enabled, notify: own.notifies, settings: own.values }
    }),
  }
}

function muteView(mute: Mute, { sources }: Configuration) {
  const { subjectId } = mute
  const isSource = subjectId !== null && sources.has(subjectId)
  const subject = { sourceId: isSource ? subjectId : null, destinationId: isSource ? null : subjectId }
  return shown(MUTE.view, { ...mute, ...subject }) as Infer<typeof MUTE.view>
}
