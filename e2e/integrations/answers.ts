// What the tools of the integrations answer: `{}`, unless an integration needs more to go on. Depends on the request alone, so that the service
// and a direct call get the same answers.

import type { Answer } from '../system/receiver.ts'
import type { GatewayRequest } from './gateway/recording-gateway.ts'

/** The first that fits counts. */
const ANSWERS: readonly [host: RegExp, path: RegExp, answer: unknown][] = [
  [/^a\.klaviyo\.com$/, /^\/api\/profiles\/\?/, { data: [{ id: 'profile-1' }] }],
  [/^app\.pendo\.io$/, /visitor$/, { multistatus: [] }],
  [/^amplitude\.com$/, /^\/api\/3\/cohorts\/membership$/, { memberships_result: [{ skipped_ids: [], operations_applied: 1 }] }],
  [/^api\.attio\.com$/, /./, { data: { id: { record_id: 'record-1' } } }],
  [/^api\.sky\.blackbaud\.com$/, /\/search/, { count: 1, value: [{ id: '1' }] }],
  [/^api\.criteo\.com$/, /audience-segments/, { data: [{ id: '1', attributes: { name: 'sample_audience' } }] }],
  [/^api\.devrev\.ai$/, /\.create/, { account: { id: '1' }, rev_user: { id: '1' } }],
  [/^tool\.example\.com$/, /\/leads(\/|\.json)/, { success: true, result: [{ id: 1 }] }],
  [/^api\.devrev\.ai$/, /\.list/, { rev_users: [], accounts: [], rev_orgs: [] }],
  [/^api\.emarsys\.net$/, /./, { replyCode: 0, replyText: 'OK', data: { ids: ['1'], errors: {} } }],
  [/^profiles\.segment\.com$/, /./, { data: [{ type: 'phone', id: '+14155552671' }], traits: {} }],
  [/^cdn\.optimizely\.com$/, /./, { accountId: '1', events: [{ id: '2', key: 'Test Event', experimentIds: [] }], attributes: [] }],
  [/^content\.twilio\.com$/, /./, { types: { 'twilio/text': { body: 'Hello' } } }],
  [
    /^api\.hubapi\.com$/,
    /^\/events\/v3\/event-definitions\/[^/]+\/\?/,
    (path: string) => ({ name: path.split('/')[4], fullyQualifiedName: `pe1_${path.split('/')[4]}`, properties: [], archived: false }),
  ],
  [/^api\.hubapi\.com$/, /\/(contacts|companies)/, { id: '1', properties: {}, results: [] }],
  [/responsys|^sample\.example\.com$/, /\/listExtensions$/, [{ profileExtension: { objectName: 'sample_audience' } }]],
  [/goacoustic\.com$/, /./, '<Envelope><Body><RESULT><SUCCESS>true</SUCCESS></RESULT></Body></Envelope>'],
]

export function answerFor({ host, path }: GatewayRequest): Answer | undefined {
  const [, , answer] = ANSWERS.find(([ofHost, ofPath]) => ofHost.test(host) && ofPath.test(path)) ?? []
  if (answer === undefined) return undefined
  const body = typeof answer === 'function' ? (answer as (path: string) => unknown)(path) : answer
  if (typeof body === 'string') return { headers: { 'content-type': 'text/xml' }, body }
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}
