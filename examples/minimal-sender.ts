// The smallest useful program: say who the user is and what they did, and leave when it is delivered.
// Run: SWITCHYARD_WRITE_KEY=… npm run example examples/minimal-sender.ts
// The key is the one that `npm start` printed; another host can be its argument or in SWITCHYARD_HOST_URL.

import { Analytics } from '@switchyard/node'

const host = process.argv[2] ?? process.env['SWITCHYARD_HOST_URL'] ?? 'http://localhost:8080'
const analytics = new Analytics({ writeKey: process.env['SWITCHYARD_WRITE_KEY'] ?? 'dev', host })

// A call never throws. What goes wrong is told here, or in a callback of the call.
analytics.on('error', (error) => console.error(`${error.code}: ${error.message}`))

analytics.identify({ userId: 'user-1', traits: { name: 'Ada', plan: 'pro' } })
analytics.track({ userId: 'user-1', event: 'Order Completed', properties: { orderId: 'order-1', total: 42 } })

// Calls only queue: without this line the messages would go out on their own, but the program could not say how it went.
const { delivered, failed, pending } = await analytics.closeAndFlush({ timeout: 10_000 })

console.log(`${host}: ${delivered} delivered, ${failed} failed, ${pending} pending`)
process.exitCode = failed + pending === 0 ? 0 : 1
