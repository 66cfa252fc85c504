// The client with every setting that reaches for more of the runtime: disk, compression, signals, keys. Ends by a signal
// to itself, so that the drain on SIGTERM is what delivers.
import { Analytics } from '@switchyard/node'

const [host, dir, clientKey] = process.argv.slice(2)
const analytics = new Analytics({
  writeKey: 'e2e',
  host,
  gzip: true,
  handleSignals: true,
  spool: { dir },
  oauthSettings: { clientId: 'app', clientKey, keyId: 'key-1' },
})
analytics.on('error', (error) => console.error(error.code, error.message))
analytics.track({ userId: 'u-1', event: 'Terminated', properties: { note: 'é ✓' } })
process.on('SIGTERM', () => console.log('asked to end'))
process.kill(process.pid, 'SIGTERM')
