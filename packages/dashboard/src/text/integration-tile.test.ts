import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TILE_COLORS, tileColor, tileLetters } from './integration-tile.ts'

const luminance = (hex: string): number => {
  const [r = 0, g = 0, b = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

test('white letters can be read on every colour', () => {
  for (const color of TILE_COLORS) assert.ok(1.05 / (luminance(color) + 0.05) >= 4.5, `${color}: ${1.05 / (luminance(color) + 0.05)}`)
})

test('the colour follows from the slug, and slugs spread over the colours', () => {
  assert.equal(tileColor('actions-slack'), tileColor('actions-slack'))
  assert.ok(new Set(Array.from({ length: 100 }, (_, at) => tileColor(`actions-${at}`))).size > 8)
})

test('the letters are the initials of two words, or the start of one', () => {
  assert.equal(tileLetters('Google Analytics 4'), 'GA')
  assert.equal(tileLetters('Amplitude'), 'Am')
  assert.equal(tileLetters('SendGrid'), 'Se')
  assert.equal(tileLetters('1Flow'), '1f')
  assert.equal(tileLetters('…'), '?')
})
