import assert from 'node:assert/strict'
import test from 'node:test'
import { lasted, type Mute, muteScope, settingLabel } from './incident-text.ts'

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
