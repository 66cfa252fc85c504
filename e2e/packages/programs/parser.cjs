// The protocol's parser in CommonJS. Prints what the test compares.
const { isoTime, MAX_MESSAGE_BYTES, MESSAGE_TYPES, parseMessage, parseTime } = require('@switchyard/protocol')

const taken = parseMessage({ type: 'track', userId: 'u-1', event: 'Order Completed' })
const refused = parseMessage({ type: 'track', event: 'Order Completed' })
const time = isoTime(parseTime('2026-11-14T09:00:00Z'))
console.log(JSON.stringify({ taken: taken.ok, refused: refused.code, types: MESSAGE_TYPES.length, bytes: MAX_MESSAGE_BYTES, time }))
