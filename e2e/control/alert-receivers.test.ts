// The destinations that the dashboard makes for alerts: the service accepts each, and sends what the preview of the form shows.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { previewOf, RECEIVER_KINDS, SAMPLE_ALERT } from '../../packages/dashboard/src/pages/alerts/receiver-kinds.ts'
import { type Service, startService } from '../system/service.ts'

const VALUES: Readonly<Record<string, Record<string, string>>> = {
  slack: { url: 'https://hooks.slack.com/services/T0/B0/secret-token' },
  pagerduty: { key: '0123456789abcdef0123456789abcdef' },
  teams: { url: 'https://example.logic.azure.com/workflows/1?sig=secret-token' },
  discord: { url: 'https://discord.com/api/webhooks/1/secret-token' },
  email: {
    server: 'mail.example.com',
    user: 'alerts@example.com',
    password: 'secret-token',
    from: 'alerts@example.com',
    to: 'a@example.com',
  },
  resend: { key: 're_secret-token', from: 'alerts@example.com', to: 'a@example.com, b@example.com' },
  webhook: { url: 'https://example.com/hooks/alerts' },
}

interface Preview {
  data: { request: { url: string; body: string } | null; error?: { sentence: string } }[]
}

suite('receivers of alerts', () => {
  let service: Service
  before(async () => {
    service = await startService()
  })
  after(() => service[Symbol.asyncDispose]())

  for (const kind of RECEIVER_KINDS) {
    test(`${kind.name}: the request is the one that the form shows`, async () => {
      const values = VALUES[kind.id] ?? {}
      assert.deepEqual(kind.problems(values), {})
      assert.notDeepEqual(kind.problems({}), {})
      const settings = kind.settings(values)
      const body = { name: `Alerts in ${kind.name}`, sourceIds: ['system'], ...settings }
      const made = await service.api<{ id: string }>('/destinations', { method: 'POST', body })
      assert.ok(!JSON.stringify(made).includes('"secret-token"'))
      const preview = await service.api<Preview>(`/destinations/${made.id}/preview`, { method: 'POST', body: { message: SAMPLE_ALERT } })
      const [sent] = preview.data
      assert.ok(sent?.request, JSON.stringify(sent))
      const request = JSON.parse(sent.request.body) as Record<string, unknown>
      if (settings.request === undefined) assert.deepEqual(request['properties'], SAMPLE_ALERT.properties)
      else assert.deepEqual(request, previewOf(settings))
    })
  }

  test('the example for Slack in the guide escapes what Slack would interpret', async () => {
    const guide = readFileSync(join(import.meta.dirname, '../../docs/guide/alerts.md'), 'utf8')
    const examples = [...guide.matchAll(/```json\n(.*?)```/gs)].map(([, text]) => JSON.parse(text as string) as { name?: string })
    const body = examples.find(({ name }) => name === 'Alerts in Slack') ?? assert.fail('the guide has no example for Slack')
    const made = await service.api<{ id: string }>('/destinations', { method: 'POST', body: { ...body, name: 'Slack of the guide' } })
    const properties = { ...SAMPLE_ALERT.properties, message: '<!channel> A & B failed.', link: '/alerts' }
    const message = { ...SAMPLE_ALERT, properties }
    const { data } = await service.api<Preview>(`/destinations/${made.id}/preview`, { method: 'POST', body: { message } })
    assert.deepEqual(JSON.parse(data[0]?.request?.body ?? ''), {
      text: '*Destination Failing* (open): &lt;!channel> A &amp; B failed. /alerts',
    })
  })
})
