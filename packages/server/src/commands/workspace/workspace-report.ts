// Shows the plan or the result of `switchyard import-workspace`: every entry of the export, with a sign and the reason.

import { counted } from '../../api/counted.ts'
import type { Call } from '../line/command.ts'
import type { PlannedDestination, PlannedPlan, PlannedSource, WorkspacePlan } from './planned-workspace.ts'

const SIGNS = {
  create: ['green', '+'],
  created: ['green', '+'],
  exists: ['dim', '='],
  needs_secrets: ['yellow', '?'],
  not_supported: ['red', '!'],
  failed: ['red', '!'],
} as const

export function report(call: Call, plan: WorkspacePlan, dryRun: boolean): void {
  const { out } = call
  const secrets = Object.fromEntries(
    plan.destinations
      .filter(({ outcome }) => outcome === 'needs_secrets')
      .map((destination) => [destination.name, templateOf(destination)]),
  )
  if (call.json) return out.json(jsonOf(plan, secrets, dryRun))
  const line = ({ outcome, reason }: { outcome: keyof typeof SIGNS; reason: string | null }, text: string, indent = ''): void => {
    const [style, sign] = SIGNS[outcome]
    const after = outcome === 'exists' ? ': already exists' : reason === null ? '' : `: ${reason}`
    out.line(`${indent}${out.paint(style, `${sign} ${text}`)}${after}`)
  }
  const notes = (sentences: readonly string[], indent: string): void => {
    for (const sentence of sentences) out.line(`${indent}${out.paint('yellow', '!')} ${sentence}`)
  }
  const hints = (sentences: readonly string[]): void => {
    for (const sentence of sentences) out.line(`    ${sentence}`)
  }
  for (const source of plan.sources) {
    line(source, `source ${source.name}`)
    notes(source.notes, '    ')
    hints(source.hints)
  }
  for (const destination of plan.destinations) {
    const { name, type, integration, source } = destination
    line(destination, `destination ${name} (${type === 'webhook' ? type : integration}${source === null ? '' : `, from ${source.name}`})`)
    notes(destination.notes, '    ')
    hints(destination.hints)
    for (const subscription of destination.subscriptions) {
      line(subscription, `subscription ${subscription.name}`, '    ')
      notes(subscription.notes, '        ')
    }
  }
  for (const tracking of plan.plans) {
    const rules = tracking.outcome === 'exists' ? '' : ` (${counted(tracking.body.rules.length, 'rule')})`
    line(tracking, `tracking plan ${tracking.name}${rules}`)
    notes(tracking.notes, '    ')
    hints(tracking.hints)
  }
  for (const { part, count, reason } of plan.others)
    line({ outcome: 'not_supported', reason }, `${part}${count === 0 ? '' : ` (${count})`}`)
  if (Object.keys(secrets).length > 0) {
    out.line('The export does not contain secrets. Save this as a file, fill in the values, and run the command again with --secrets FILE:')
    out.text(JSON.stringify(secrets, null, 2))
  }
  out.line(summaryOf(plan, dryRun))
}

function templateOf({ secrets, mappingSecrets }: PlannedDestination): Record<string, unknown> {
  const settings = secrets.map((key) => [key, key === 'oauth' ? { clientId: '…', clientSecret: '…', refreshToken: '…' } : '…'])
  const fields = [...mappingSecrets].map(([name, keys]) => [name, Object.fromEntries(keys.map((key) => [key, '…']))])
  return Object.fromEntries(fields.length === 0 ? settings : [...settings, ['subscriptions', Object.fromEntries(fields)]]) as Record<
    string,
    unknown
  >
}

function summaryOf(plan: WorkspacePlan, dryRun: boolean): string {
  const all = [...plan.sources, ...plan.destinations, ...plan.plans]
  const count = (list: readonly { outcome: string }[], ...outcomes: string[]): number =>
    list.filter(({ outcome }) => outcomes.includes(outcome)).length
  const made = dryRun ? 'create' : 'created'
  const [sources, destinations, plans] = [count(plan.sources, made), count(plan.destinations, made), count(plan.plans, made)]
  const both = [counted(sources, 'source'), counted(destinations, 'destination')]
  const created = plans === 0 ? both.join(' and ') : `${both.join(', ')} and ${counted(plans, 'tracking plan')}`
  return [
    dryRun ? `Would create ${created}.` : `Created ${created}.`,
    ...sentence(count(all, 'exists'), 'already exist'),
    ...sentence(count(all, 'needs_secrets'), 'need secrets'),
    ...sentence(count(all, 'not_supported', 'failed'), 'cannot be imported'),
  ].join(' ')
}

function sentence(count: number, what: string): string[] {
  return count === 0
    ? []
    : [`${count} ${count === 1 ? what.replace(/^already exist$/, 'already exists').replace(/^need /, 'needs ') : what}.`]
}

function jsonOf({ sources, destinations, plans, others }: WorkspacePlan, secrets: object, dryRun: boolean): object {
  return {
    dryRun,
    sources: sources.map(sourceJson),
    destinations: destinations.map(destinationJson),
    plans: plans.map(planJson),
    others,
    secrets,
  }
}

function sourceJson(source: PlannedSource): object {
  const { adopts: _, body: __, ...shown } = source
  return shown
}

function planJson(plan: PlannedPlan): object {
  const { body, sources, ...shown } = plan
  return { ...shown, sources: sources.map(({ name }) => name), rules: body.rules.length }
}

function destinationJson(destination: PlannedDestination): object {
  const { adopts: _, settings: __, source, secrets: missingSecrets, mappingSecrets, subscriptions, ...shown } = destination
  return {
    ...shown,
    source: source?.name ?? null,
    missingSecrets,
    missingFields: Object.fromEntries(mappingSecrets),
    subscriptions: subscriptions.map(withoutBody),
  }
}

function withoutBody<T extends { body: object }>(planned: T): Omit<T, 'body'> {
  const { body: _, ...shown } = planned
  return shown
}
