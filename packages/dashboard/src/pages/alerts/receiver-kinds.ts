// Where alerts can be sent with a form of a few fields: what each kind asks for, and the destination that is made of it. Pure.

import { MAIL_URL_FORM } from '../../api/rules.ts'

export interface ReceiverField {
  name: string
  label: string
  placeholder: string
  about: string
  isSecret?: boolean
}

export interface ReceiverKind {
  id: string
  name: string
  fields: readonly ReceiverField[]
  /** What is wrong with the values, by field; empty if nothing is. */
  problems(values: Values): Record<string, string>
  /** The settings of the destination, without its name and sources. */
  settings(values: Values): ReceiverSettings
}

export type Values = Readonly<Record<string, string>>

export interface ReceiverSettings {
  urls: string[]
  maxInFlight?: number
  secrets?: Record<string, string>
  auth?: { type: 'bearer'; token: string } | { type: 'basic'; username: string; password: string }
  request?: { path?: string; body: Record<string, unknown> }
}

const TEXT = '{{properties.message}}\n{{properties.link}}'
const TITLE = '{{event}}: {{properties.subject.name}}'

const template = (text: string) => ({ '@template': text })
const path = (text: string) => ({ '@path': text })
const replaced = (value: object, ...pairs: readonly (readonly [string, string])[]) => {
  const [[pattern, replacement] = ['', ''], second] = pairs
  const more = second === undefined ? {} : { pattern2: second[0], replacement2: second[1] }
  return { '@replace': { pattern, replacement, ...more, value } }
}

const isUrl = (text: string): boolean => {
  try {
    return /^https?:$/.test(new URL(text).protocol)
  } catch {
    return false
  }
}

/** Divides a URL before its last part, which is a password. */
function withoutLastPart(text: string): { url: string; token: string } {
  const at = text.lastIndexOf('/')
  return { url: text.slice(0, at), token: text.slice(at + 1) }
}

const urlField = (label: string, placeholder: string, about: string): ReceiverField => ({ name: 'url', label, placeholder, about })
const hookProblems =
  (example: RegExp, hint: string) =>
  (values: Values): Record<string, string> =>
    isUrl(values['url'] ?? '') && example.test(values['url'] ?? '') ? {} : { url: hint }
const filled = (names: readonly string[]) => (values: Values) =>
  Object.fromEntries(names.filter((name) => (values[name] ?? '').trim() === '').map((name) => [name, 'Required.']))

const emailBody = (from: string, to: string) => ({
  from: from.trim(),
  to: to.split(',').map((each) => each.trim()),
  subject: template(`${TITLE} ({{properties.state}})`),
  text: template('{{properties.message}}\n\n{{properties.link}}'),
})

/** On port 465, TLS starts with the connection. */
function mailUrl(server = ''): string {
  const text = server.trim()
  if (text.includes('://')) return text
  return `${text.endsWith(':465') ? 'smtps' : 'smtp'}://${text}`
}

export const RECEIVER_KINDS: readonly ReceiverKind[] = [
  {
    id: 'slack',
    name: 'Slack',
    fields: [urlField('Webhook URL', 'https://hooks.slack.com/services/T…/B…/…', 'From an incoming webhook of your Slack app.')],
    problems: hookProblems(/\/services\/[^/]+\/[^/]+\/[^/]+$/, 'Enter the whole URL, which ends with /services/ and three parts.'),
    settings({ url = '' }) {
      const { url: base, token } = withoutLastPart(url)
      const text = template(`*${TITLE}* ({{properties.severity}}, {{properties.state}})\n${TEXT}`)
      return {
        urls: [base],
        maxInFlight: 1,
        secrets: { token },
        request: { path: '/{{secrets.token}}', body: { text: replaced(text, ['&', '&amp;'], ['<', '&lt;']) } },
      }
    },
  },
  {
    id: 'pagerduty',
    name: 'PagerDuty',
    fields: [
      { name: 'key', label: 'Integration key', placeholder: '32 characters', about: 'Of an Events API v2 integration.', isSecret: true },
    ],
    problems: ({ key = '' }): Record<string, string> => (/^\w{20,64}$/.test(key) ? {} : { key: 'Enter the key, which has 32 characters.' }),
    settings: ({ key = '' }) => ({
      urls: ['https://events.pagerduty.com/v2/enqueue'],
      secrets: { routingKey: key },
      request: {
        body: {
          routing_key: path('$.secrets.routingKey'),
          event_action: replaced(path('$.properties.state'), ['open', 'trigger'], ['closed', 'resolve']),
          dedup_key: path('$.properties.incidentId'),
          payload: {
            summary: path('$.properties.message'),
            source: 'switchyard',
            severity: replaced(path('$.properties.severity'), ['notice', 'info']),
            timestamp: path('$.timestamp'),
            custom_details: path('$.properties'),
          },
          links: [{ href: path('$.properties.link'), text: 'Dashboard' }],
        },
      },
    }),
  },
  {
    id: 'teams',
    name: 'Microsoft Teams',
    fields: [
      urlField('Workflow URL', 'https://….logic.azure.com/…', 'From the workflow “Send webhook alerts to a channel” of the channel.'),
    ],
    problems: hookProblems(/./, 'Enter the whole URL of the workflow.'),
    settings: ({ url = '' }) => ({
      urls: [url],
      maxInFlight: 1,
      request: {
        body: {
          type: 'message',
          attachments: [
            {
              contentType: 'application/vnd.microsoft.card.adaptive',
              content: {
                type: 'AdaptiveCard',
                version: '1.4',
                body: [
                  {
                    type: 'TextBlock',
                    weight: 'Bolder',
                    wrap: true,
                    text: template(`${TITLE} ({{properties.severity}}, {{properties.state}})`),
                  },
                  { type: 'TextBlock', wrap: true, text: template('{{properties.message}}') },
                ],
                actions: [{ type: 'Action.OpenUrl', title: 'Open the dashboard', url: path('$.properties.link') }],
              },
            },
          ],
        },
      },
    }),
  },
  {
    id: 'discord',
    name: 'Discord',
    fields: [urlField('Webhook URL', 'https://discord.com/api/webhooks/…/…', 'From the integrations of the channel.')],
    problems: hookProblems(/\/webhooks\/[^/]+\/[^/]+$/, 'Enter the whole URL, which ends with /webhooks/ and two parts.'),
    settings({ url = '' }) {
      const { url: base, token } = withoutLastPart(url)
      return {
        urls: [base],
        maxInFlight: 1,
        secrets: { token },
        request: {
          path: '/{{secrets.token}}',
          body: {
            content: template(`**${TITLE}** ({{properties.severity}}, {{properties.state}})\n${TEXT}`),
            allowed_mentions: { parse: [] },
          },
        },
      }
    },
  },
  {
    id: 'email',
    name: 'Email (SMTP)',
    fields: [
      {
        name: 'server',
        label: 'Mail server',
        placeholder: 'mail.example.com:587',
        about: 'TLS is always used: from the start on port 465, and with STARTTLS on other ports.',
      },
      { name: 'user', label: 'User name', placeholder: 'alerts@example.com', about: 'Leave empty if the server needs no login.' },
      { name: 'password', label: 'Password', placeholder: '', about: 'Stored encrypted, and never shown.', isSecret: true },
      { name: 'from', label: 'From', placeholder: 'alerts@example.com', about: 'An address from which the server lets you send.' },
      { name: 'to', label: 'To', placeholder: 'on-call@example.com', about: 'Several addresses are separated by commas.' },
    ],
    problems: (values) => ({
      ...filled(['from', 'to'])(values),
      ...(MAIL_URL_FORM.test(mailUrl(values['server'])) ? {} : { server: 'Enter a host and a port, such as mail.example.com:587.' }),
      ...((values['user'] ?? '') !== '' && (values['password'] ?? '') === '' ? { password: 'Required with a user name.' } : {}),
      ...((values['user'] ?? '').trim() === '' && (values['password'] ?? '') !== '' ? { user: 'Required with a password.' } : {}),
    }),
    settings: ({ server, user = '', password = '', from = '', to = '' }) => ({
      urls: [mailUrl(server)],
      maxInFlight: 1,
      ...(user.trim() === '' ? {} : { auth: { type: 'basic', username: user.trim(), password } }),
      request: { body: emailBody(from, to) },
    }),
  },
  {
    id: 'resend',
    name: 'Email (with Resend)',
    fields: [
      { name: 'key', label: 'API key', placeholder: 're_…', about: 'Of your Resend account.', isSecret: true },
      { name: 'from', label: 'From', placeholder: 'alerts@example.com', about: 'An address of a domain that is verified there.' },
      { name: 'to', label: 'To', placeholder: 'on-call@example.com', about: 'Several addresses are separated by commas.' },
    ],
    problems: filled(['key', 'from', 'to']),
    settings: ({ key = '', from = '', to = '' }) => ({
      urls: ['https://api.resend.com/emails'],
      maxInFlight: 1,
      auth: { type: 'bearer', token: key.trim() },
      request: { body: emailBody(from, to) },
    }),
  },
  {
    id: 'webhook',
    name: 'A webhook',
    fields: [urlField('URL', 'https://example.com/hooks/alerts', 'Receives each alert as a JSON message.')],
    problems: hookProblems(/./, 'Enter a URL that begins with https:// or http://.'),
    settings: ({ url = '' }) => ({ urls: [url] }),
  },
]

/** An alert as receivers get it. */
export const SAMPLE_ALERT = {
  type: 'track',
  event: 'Destination Failing',
  userId: 'system',
  messageId: 'inc_Zm9vYmFy1234-opened',
  timestamp: '2026-11-18T10:05:00.000Z',
  properties: {
    incidentId: 'inc_Zm9vYmFy1234',
    rule: 'destination_failing',
    state: 'open',
    severity: 'critical',
    cause: 'The receiver refused the connection.',
    subject: { kind: 'destination', id: 'dst_8sVhzvC5zF2y', name: 'warehouse' },
    message:
      'The destination "warehouse" has been failing for 5 minutes: 12 of 12 delivery attempts failed. Failed attempts are retried; 12 deliveries are pending. Last error: The receiver refused the connection.',
    link: 'https://events.example.com/destinations/dst_8sVhzvC5zF2y',
  },
} as const

/** What a receiver gets for the sample, with `(hidden)` instead of secrets: the directives that the table above uses, applied. */
export function previewOf({ request }: ReceiverSettings): unknown {
  return request === undefined ? SAMPLE_ALERT : applied(request.body)
}

function applied(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(applied)
  if (typeof value !== 'object' || value === null) return value
  const { '@template': text, '@path': at, '@replace': replace } = value as Record<string, unknown>
  if (typeof text === 'string') return text.replaceAll(/\{\{([\w.]+)\}\}/g, (_, name: string) => textOf(found(name)))
  if (typeof at === 'string') return found(at.replace('$.', ''))
  if (replace !== undefined) {
    const { pattern, replacement, pattern2, replacement2, value: inner } = replace as Record<string, string>
    const first = textOf(applied(inner)).replaceAll(pattern ?? '', replacement ?? '')
    return pattern2 === undefined ? first : first.replaceAll(pattern2, replacement2 ?? '')
  }
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, applied(each)]))
}

function found(name: string): unknown {
  if (name.startsWith('secrets.')) return '(hidden)'
  let value: unknown = SAMPLE_ALERT
  for (const part of name.split('.')) value = (value as Record<string, unknown> | undefined)?.[part]
  return value
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
