// A message as a line for a person or for a program. Invariant: no character of a message reaches the terminal as
// anything but itself. Messages are strangers' data, and a terminal obeys escape sequences wherever they come from.

import { styleText } from 'node:util'
import { isoTime, type Message, parseTime } from '@switchyard/protocol'
import type { Arrival, Rejection } from './endpoint.ts'

// Controls (C0, and C1, which JSON.stringify lets through), invisible and direction-changing characters, and line ends.
// The two joiners stay: emoji and many scripts are written with them, and they move nothing.
const UNSAFE = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
const PLAIN_WORD = /^[\w.@:+/-]+$/
const MAX_NAME_CHARS = 60
const MAX_FIELDS_CHARS = 120

/** Unsafe characters as \uXXXX, which is also how JSON writes them. */
export function printable(text: string): string {
  return text.replaceAll(UNSAFE, (unsafe) =>
    Array.from({ length: unsafe.length }, (_, at) => `\\u${unsafe.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''),
  )
}

export function jsonLine(message: Message): string {
  return printable(JSON.stringify(message))
}

export function messageLine(message: Message, arrival: Arrival, colour: boolean): string {
  const paint = painter(colour)
  const time = isoTime(parseTime(message.timestamp) ?? arrival.receivedAtMs)
  const fields = 'properties' in message ? message.properties : 'traits' in message ? message.traits : undefined
  const parts = [paint('dim', time), paint('cyan', message.type.padEnd(8)), paint('bold', subject(message)), who(message)]
  if (fields && Object.keys(fields).length > 0) parts.push(paint('dim', shorten(printable(JSON.stringify(fields)), MAX_FIELDS_CHARS)))
  return parts.filter((part) => part !== '').join('  ')
}

export function rejectionLine({ code, message, index, messageId }: Rejection, colour: boolean): string {
  const paint = painter(colour)
  const place = [index === undefined ? '' : `batch[${index}]`, messageId === null ? '' : word(messageId)]
    .filter((part) => part !== '')
    .join(' ')
  const parts = [paint('dim', isoTime(Date.now())), paint('red', 'rejected'), paint('bold', code), place, message]
  return parts.filter((part) => part !== '').join('  ')
}

/** What a message is about, in a word. */
function subject(message: Message): string {
  switch (message.type) {
    case 'track':
      return word(message.event)
    case 'page':
    case 'screen':
      return [message.category, message.name]
        .map((part) => (part ? word(part) : ''))
        .join(' ')
        .trim()
    case 'group':
      return word(message.groupId)
    case 'alias':
      return `${word(message.previousId)} → ${word(message.userId)}`
    case 'identify':
      return ''
  }
}

function who(message: Message): string {
  if (message.type === 'alias') return ''
  return message.userId ? `user ${word(message.userId)}` : `anonymous ${word(message.anonymousId ?? '')}`
}

/** In quotes unless it is plainly one word, so that a name cannot pass for the columns after it. */
function word(text: string): string {
  return shorten(PLAIN_WORD.test(text) ? text : printable(JSON.stringify(text)), MAX_NAME_CHARS)
}

function shorten(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  // Half of a surrogate pair at the cut would print as a broken character.
  return `${text.slice(0, maxChars - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

function painter(colour: boolean): (style: 'dim' | 'cyan' | 'bold' | 'red', text: string) => string {
  return (style, text) => (colour && text !== '' ? styleText(style, text, { validateStream: false }) : text)
}
