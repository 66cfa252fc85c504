// The client as a CommonJS application uses it. Prints what the test compares.
const { Analytics, AnalyticsError, Context, FetchHTTPClient, default: Default } = require('@switchyard/node')

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

async function main() {
  const result = await analytics.closeAndFlush()
  const { err, ctx } = await called
  console.log(
    JSON.stringify({
      sameClass: Analytics === Default,
      version: analytics.VERSION,
      error: err === undefined ? 'none' : String(err),
      context: ctx instanceof Context,
      classes: [AnalyticsError, FetchHTTPClient].map((value) => typeof value),
      heard,
      result,
    }),
  )
}

void main()
