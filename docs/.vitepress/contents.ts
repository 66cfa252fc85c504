// The pages of the site, in reading order: one table for the sidebar, the navigation and the tests. Pages that do not exist yet
// are left out, so that the site builds without them; a test fails if a page is missing, or is in no section.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const DOCS = join(import.meta.dirname, '..')

export interface Section {
  title: string
  folder: string
  /** File names without their extension, and their titles in the sidebar. */
  pages: readonly (readonly [name: string, title: string])[]
}

export const SECTIONS: readonly Section[] = [
  {
    title: 'Start',
    folder: 'guide',
    pages: [
      ['concepts', 'Concepts'],
      ['quick-start-sender', 'Send messages'],
      ['quick-start-receiver', 'Receive webhooks'],
      ['quick-start-operator', 'Run the service'],
      ['single-sign-on', 'Single sign-on'],
    ],
  },
  {
    title: 'Send to tools and receivers',
    folder: 'guide',
    pages: [
      ['integrations', 'Send events to your tools'],
      ['requests', 'Send to any HTTP API'],
      ['transformations', 'Transformations'],
      ['authentication', 'Authentication to receivers'],
      ['shape-in-the-dashboard', 'Shape requests in the dashboard'],
      ['versions', 'Versions and preview'],
      ['examples', 'Examples'],
    ],
  },
  {
    title: 'Delivery',
    folder: 'guide',
    pages: [
      ['delivery', 'Delivery and retries'],
      ['order', 'Order'],
      ['lake', 'Lakes and warehouses'],
      ['warehouse-parquet', 'Parquet lakes'],
      ['warehouse-postgresql', 'PostgreSQL warehouses'],
      ['warehouse-clickhouse', 'ClickHouse warehouses'],
      ['numbers', 'What the numbers count'],
      ['alerts', 'Alerts'],
    ],
  },
  {
    title: 'Receive',
    folder: 'guide',
    pages: [['verifying-webhooks', 'Verifying webhooks']],
  },
  {
    title: 'Data you can trust',
    folder: 'guide',
    pages: [
      ['tracking-plan', 'Tracking plans'],
      ['events', 'Event catalogue'],
      ['typed-calls', 'Typed calls'],
      ['privacy', 'Privacy rules'],
      ['oauth', 'OAuth 2.0'],
    ],
  },
  {
    title: 'Move to Switchyard',
    folder: 'guide',
    pages: [
      ['comparison', 'Comparison'],
      ['compatibility', 'Client compatibility'],
      ['move-a-segment-workspace', 'Move a Segment workspace'],
      ['migrate-from-segment', 'Migrate from Segment'],
      ['migrate-from-rudderstack', 'Migrate from RudderStack'],
    ],
  },
  {
    title: 'Recipes',
    folder: 'guide/recipes',
    pages: [
      ['slack', 'Slack'],
      ['discord', 'Discord'],
      ['pagerduty', 'PagerDuty'],
      ['google-analytics', 'Google Analytics 4'],
      ['posthog', 'PostHog'],
      ['clickhouse', 'ClickHouse'],
      ['elasticsearch', 'Elasticsearch'],
      ['loki', 'Grafana Loki'],
      ['postgrest', 'PostgREST'],
      ['oauth2-api', 'OAuth 2 API'],
    ],
  },
  {
    title: 'Operations',
    folder: 'operations',
    pages: [
      ['deployment', 'Deployment'],
      ['sizing', 'Sizing'],
      ['postgresql', 'PostgreSQL and several nodes'],
      ['backup', 'Backup and restore'],
      ['upgrade', 'Upgrade'],
      ['fault-ledger', 'Fault ledger'],
      ['soak', 'Soak test'],
      ['alerts', 'Alerts with Prometheus'],
    ],
  },
  {
    title: 'Reference',
    folder: 'reference',
    pages: [
      ['http', 'HTTP API'],
      ['cli', 'Command line'],
      ['config', 'Settings'],
      ['errors', 'Errors'],
      ['metrics', 'Metrics'],
      ['logs', 'Logs'],
      ['tested-integrations', 'Tested integrations'],
      ['feature-flags', 'Feature flags of integrations'],
    ],
  },
]

/** Has its own sidebar, like the decisions. scripts/reference.ts writes its pages, one per tag of the API. */
export const HTTP_API: Section = {
  title: 'HTTP API',
  folder: 'reference',
  pages: [
    ['http', 'Overview'],
    ['http/tracking', 'Tracking'],
    ['http/oauth-2-0', 'OAuth 2.0'],
    ['http/sources', 'Sources'],
    ['http/destinations', 'Destinations'],
    ['http/catalogue', 'Catalogue'],
    ['http/warehouses', 'Warehouses'],
    ['http/sql', 'SQL'],
    ['http/tracking-plans', 'Tracking plans'],
    ['http/messages', 'Messages'],
    ['http/event-catalogue', 'Event catalogue'],
    ['http/quarantine', 'Quarantine'],
    ['http/deliveries', 'Deliveries'],
    ['http/replays', 'Replays'],
    ['http/deletions', 'Deletions'],
    ['http/suppressions', 'Suppressions'],
    ['http/alerts', 'Alerts'],
    ['http/oauth-applications', 'OAuth applications'],
    ['http/control-tokens', 'Control tokens'],
    ['http/sessions', 'Sessions'],
    ['http/people', 'People'],
    ['http/audit-log', 'Audit log'],
    ['http/ledger-and-statistics', 'Ledger and statistics'],
    ['http/operations', 'Operations'],
    ['http/live-events', 'Live events'],
    ['http/openapi-document', 'OpenAPI document'],
    ['http/health-and-metrics', 'Health and metrics'],
  ],
}

/** Also with its own sidebar: one page for each first word of a command. */
export const COMMAND_LINE: Section = {
  title: 'Command line',
  folder: 'reference',
  pages: [
    ['cli', 'Overview'],
    ...readdirSync(join(DOCS, 'reference', 'cli'))
      .filter((file) => file.endsWith('.md'))
      .map((file) => file.replace(/\.md$/, ''))
      .sort()
      .map((word): [string, string] => [`cli/${word}`, word]),
  ],
}

/** The service serves this document; it is not a page of the site, so the link has the full path. */
export const OPENAPI = { text: 'OpenAPI document', link: '/docs/openapi.json', target: '_self' }

interface Item {
  text: string
  link: string
}

export function itemsOf({ folder, pages }: Section): Item[] {
  return pages
    .filter(([name]) => existsSync(join(DOCS, folder, `${name}.md`)))
    .map(([name, text]) => ({ text, link: `/${folder}/${name}` }))
}

/** Pages that are in the table but not in the folder yet. */
export function unwritten(): string[] {
  return [...SECTIONS, HTTP_API, COMMAND_LINE]
    .flatMap(({ folder, pages }) => pages.map(([name]) => `${folder}/${name}`))
    .filter((page) => !existsSync(join(DOCS, `${page}.md`)))
}

/** The decision pages: files that begin with a number, titled by their first heading. */
export function decisions(): Item[] {
  return readdirSync(join(DOCS, 'decisions'))
    .filter((file) => /^\d{4}-.*\.md$/.test(file))
    .sort()
    .map((file) => ({ text: headingOf(join(DOCS, 'decisions', file)) ?? file, link: `/decisions/${file.replace(/\.md$/, '')}` }))
}

function headingOf(file: string): string | undefined {
  return /^# (.+)$/m.exec(readFileSync(file, 'utf8'))?.[1]?.replaceAll('`', '')
}
