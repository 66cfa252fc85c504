// Calls once and ends, without a flush: the message must not be lost, nor the process held until the flush interval.
const { Analytics } = require('@switchyard/node')

new Analytics({ writeKey: 'e2e', host: process.argv[2], flushInterval: 3_600_000 }).track({ userId: 'u-1', event: 'Left Early' })
