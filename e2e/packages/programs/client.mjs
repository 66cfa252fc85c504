// The client as an ES module application uses it. Prints what the test compares.
// oxlint-disable-next-line import/no-named-as-default -- the way that the public client's users write it
import Analytics, { AnalyticsError, Context, FetchHTTPClient, Analytics as Named } from '@switchyard/node'

const [host] = process.argv.slice(2)
const analytics = new Analytics({ writeKey: 'e2e', host })
const heard = []
analytics.on('error', (error) => heard.push(error.code)).on('flush', ({ messages }) => heard.push(`flushed ${messages}`))

analytics.identify({ userId: 'u-1', traits: { plan: 'pro' } })
const called = new Promise((resolve) => {
  analytics.track({ userId: 'u-1', event: 'Order Completed', properties: { total: 12.5, note: 'é ✓' } }, (err, ctx) =>
    resolve({ err, ctx }),
  )
})
const result = await analytics.closeAndFlush()
const { err, ctx } = await called

console.log(
  JSON.stringify({
    sameClass: Analytics === Named,
    version: analytics.VERSION,
    error: err === undefined ? 'none' : String(err),
    context: ctx instanceof Context,
    classes: [AnalyticsError, FetchHTTPClient].map((value) => typeof value),
    heard,
    result,
  }),
)
