import assert from 'node:assert/strict'
import test from 'node:test'
import {
  causeInFull,
  causeLinks,
  causeLinkText,
  groupedBySubject,
  hasCount,
  type Incident,
  lasted,
  type Mute,
  mostUrgentFirst,
  muteScope,
  repeatsCause,
  sentenceParts,
  settingLabel,
  unattended,
  uncountedText,
} from './incident-text.ts'

test('an open incident lasts until now, a closed one until it was closed', () => {
  const since = '2026-11-17T10:00:00.000Z'
  const nowMs = Date.parse('2026-11-17T12:00:00.000Z')
  assert.equal(lasted({ since, closedAt: null }, nowMs), '2 h')
  assert.equal(lasted({ since, closedAt: '2026-11-17T10:05:00.000Z' }, nowMs), '5 min')
})

test('names of settings are shown as words', () => {
  assert.equal(settingLabel('openAfterMinutes'), 'Open after minutes')
})

test('a mute says what it is about', () => {
  const mute = { rule: null, sourceId: null, destinationId: null } as Mute
  const events = new Map([['source_silent', 'Source Silent']])
  const nameOf = (id: string): string => id.toUpperCase()
  assert.equal(muteScope(mute, events, nameOf), 'All alerts')
  assert.equal(muteScope({ ...mute, rule: 'source_silent', sourceId: 'web' }, events, nameOf), 'Source Silent, source WEB')
  assert.equal(muteScope({ ...mute, destinationId: 'crm' }, events, nameOf), 'destination CRM')
})

test('a sentence of a rule is divided where a setting is named', () => {
  assert.deepEqual(sentenceParts('Open when {leastPending} wait for {openAfterMinutes} minutes.'), [
    { text: 'Open when ' },
    { text: '{leastPending}', name: 'leastPending' },
    { text: ' wait for ' },
    { text: '{openAfterMinutes}', name: 'openAfterMinutes' },
    { text: ' minutes.' },
  ])
})

test('what nobody takes care of comes first, then the most severe, then what affects the most messages', () => {
  const incident = (id: string, severity: 'critical' | 'warning' | 'notice', value: number | null, more: object = {}): Incident =>
    ({
      id,
      severity,
      measure: value === null ? null : { value },
      acknowledged: null,
      muted: false,
      since: '2026-11-17T10:00:00.000Z',
      ...more,
    }) as Incident
  const all = [
    incident('taken', 'critical', 9, { acknowledged: {} }),
    incident('few', 'warning', 3),
    incident('many', 'warning', 30),
    incident('info', 'notice', null),
    incident('worst', 'critical', 1),
    incident('quiet', 'warning', 2, { muted: true }),
  ]
  assert.deepEqual(
    mostUrgentFirst(all).map(({ id }) => id),
    ['worst', 'many', 'few', 'quiet', 'info', 'taken'],
  )
  assert.deepEqual(
    unattended(all).map(({ id }) => id),
    ['few', 'many', 'worst'],
  )
  assert.equal(uncountedText(all), '1 for information, 1 acknowledged, 1 muted')
  assert.equal(uncountedText(unattended(all)), '')
})

test('incidents about the same thing are together, and the cause is said once', () => {
  const incident = (id: string, subject: string, cause: string | null): Incident =>
    ({ id, cause, subject: { kind: 'destination', id: subject, name: subject } }) as Incident
  const grouped = groupedBySubject([
    incident('failing', 'crm', 'It answered 422.'),
    incident('other', 'mail', 'It answered 422.'),
    incident('failed', 'crm', 'It answered 422.'),
    incident('expired', 'crm', 'It refused the connection.'),
    incident('delayed', 'crm', null),
  ])
  assert.deepEqual(
    grouped.map((each, at) => [each.id, repeatsCause(each, grouped[at - 1])]),
    [
      ['failing', false],
      ['failed', true],
      ['expired', false],
      ['delayed', false],
      ['other', false],
    ],
  )
})

test('a cause is shown in full if the destination still fails for this reason', () => {
  const cause = 'The integration rejected the message: a value that its action needs is missing or invalid.'
  const failure = { reason: 'invalid_payload', error: 'HubSpot: "email" is missing.' }
  const other = { reason: 'http_500', error: 'The receiver answered 500 Internal Server Error.' }
  const about = (kind: 'destination' | 'source', text: string | null = cause) => ({
    subject: { kind, id: 'crm', name: 'CRM' },
    cause: text,
  })
  const health = (latest: typeof failure | null, frequent: typeof failure | null, responseStart: string | null = null) => [
    { destinationId: 'mail', failure, mostFrequentFailure: null },
    { destinationId: 'crm', failure: latest, mostFrequentFailure: frequent && { ...frequent, responseStart, attempts: 3 } },
  ]
  const crm = about('destination')
  assert.deepEqual(causeInFull(crm, health(failure, other)), [failure.error])
  assert.deepEqual(causeInFull(crm, health(other, failure, '{"a":1}')), [failure.error, 'The response began with “{"a":1}”.'])
  assert.deepEqual(causeInFull(about('destination', other.error), health(null, other)), [other.error])
  assert.deepEqual(causeInFull(crm, health(other, other)), [cause])
  assert.deepEqual(causeInFull(crm, health(null, null)), [cause])
  assert.deepEqual(causeInFull(crm, []), [cause])
  assert.deepEqual(causeInFull(about('source'), health(failure, failure)), [cause])
  assert.deepEqual(causeInFull(about('destination', null), health(failure, failure)), [])
})

test('a number that is zero or unknown is not shown', () => {
  const measure = (value: number | null) => ({ measure: { label: 'pending deliveries', value, readings: [] } })
  assert.deepEqual([measure(2), measure(0), measure(null), { measure: null }].map(hasCount), [true, false, false, false])
})

test('an incident whose deliveries can be replayed links to them, once', () => {
  const actions = [
    { action: 'retry', destinationId: 'd' },
    { action: 'replay', destinationId: 'd', states: ['failed'] },
  ] as unknown as Incident['actions']
  const failed = '/deliveries?destinationId=d&state=failed'
  assert.deepEqual(causeLinks({ link: '/destinations/d', actions }), ['/destinations/d', failed])
  assert.deepEqual(causeLinks({ link: failed, actions }), [failed])
  assert.deepEqual(causeLinks({ link: '/destinations/d', actions: [] }), ['/destinations/d'])
})

test('a link says what it leads to', () => {
  assert.deepEqual(
    ['/deliveries?destinationId=d&state=failed', '/destinations/d', '/plans?tab=quarantine&source=s', '/#ledger'].map(causeLinkText),
    ['View failed deliveries', 'View destination', 'View quarantine', 'View ledger'],
  )
})
