// Integrations that do not speak HTTP send as well: Kafka to a broker, SFTP to a server, both created with the form's defaults and what a user types.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type CatalogIntegration, readIntegration } from '@switchyard/integrations/catalog'
import { startKafkaBroker } from '../../packages/integrations/src/fixtures/kafka-broker.ts'
import { type Service, startService } from '../system/service.ts'
import { type Delivery, type Wiring, wire } from '../system/wiring.ts'
import { fillInForm, type Typed } from './form/fill-in-form.ts'
import { startSftpServer } from './receivers/sftp-server.ts'
import { acceptedByStandIn } from './seen/seen-actions.ts'

const ACCOUNT = { username: 'switchyard', password: 'password of the user' }

let service: Service
before(async () => {
  service = await startService()
})
after(() => service[Symbol.asyncDispose]())

async function create(slug: string, typed: Typed): Promise<Wiring> {
  const integration = (await readIntegration(slug)) as CatalogIntegration
  return await wire(service, fillInForm(integration, typed))
}

async function delivered(wiring: Wiring, messageId: string): Promise<Delivery> {
  const delivery = await wiring.settled(messageId)
  assert.equal(delivery.state, 'delivered', JSON.stringify(delivery.attempts))
  await acceptedByStandIn(service, wiring.destinationId, delivery.attempts)
  return delivery
}

test('Kafka: the message becomes a record of the topic, with its key and headers', async () => {
  await using broker = await startKafkaBroker({ ...ACCOUNT, topic: 'events' })
  const wiring = await create('actions-kafka', {
    settings: { clientId: 'switchyard', brokers: `127.0.0.1:${broker.port}`, mechanism: 'plain', ...ACCOUNT, ssl_enabled: false },
    action: 'send',
    mapping: { topic: 'events', key: { '@path': '$.userId' }, headers: { origin: 'switchyard' } },
  })
  const messageId = await wiring.track({ event: 'Order Completed', properties: { total: 42 } })
  await delivered(wiring, messageId)
  const [{ topic, key, value, headers }, ...others] = broker.records as [(typeof broker.records)[0]]
  assert.deepEqual([topic, key, headers, others], ['events', 'u-1', { origin: 'switchyard' }, []])
  const sent = JSON.parse(value) as Record<string, unknown>
  assert.deepEqual([sent['messageId'], sent['event'], sent['properties']], [messageId, 'Order Completed', { total: 42 }])
})

test('Kafka: a wrong password and an unknown topic are not counted as delivered', async () => {
  await using broker = await startKafkaBroker({ ...ACCOUNT, topic: 'events' })
  const settings = { clientId: 'switchyard', brokers: `127.0.0.1:${broker.port}`, mechanism: 'plain', ...ACCOUNT, ssl_enabled: false }
  const wrong = await create('actions-kafka', {
    settings: { ...settings, password: 'wrong' },
    action: 'send',
    mapping: { topic: 'events' },
  })
  const { attempts } = await wrong.attempted(await wrong.track(), 1)
  assert.match(attempts[0]?.error ?? '', /KafkaJSSASLAuthenticationError/)
  const unknown = await create('actions-kafka', { settings, action: 'send', mapping: { topic: 'other' } })
  const second = await unknown.attempted(await unknown.track(), 1)
  assert.match(second.attempts[0]?.error ?? '', /Kafka Producer Error/)
  assert.deepEqual(broker.records, [])
})

test('SFTP: a file with a header and one row for the message, for both actions', async () => {
  await using server = await startSftpServer({ ...ACCOUNT, folder: '/uploads' })
  const settings = { sftp_host: '127.0.0.1', sftp_port: server.port, sftp_username: ACCOUNT.username, sftp_password: ACCOUNT.password }
  const typed = { sftp_folder_path: '/uploads', filename_prefix: 'switchyard' }
  const expected = {
    syncEvents: ['user,plan,audience_action,batch_size', '"u-1","say ""pro""","","1"'],
    syncModelToSFTP: ['user,plan,batch_size', '"u-1","say ""pro""","1"'],
  }
  for (const [action, lines] of Object.entries(expected)) {
    server.files.clear()
    const mapping = { ...typed, columns: { user: { '@path': '$.userId' }, plan: { '@path': '$.properties.plan' } } }
    const wiring = await create('actions-sftp', { settings, action, mapping })
    await delivered(wiring, await wiring.track({ properties: { plan: 'say "pro"' } }))
    const [[path, content], ...others] = [...server.files] as [[string, string]]
    assert.deepEqual([others, content.split('\n')], [[], lines])
    assert.match(path, /^\/uploads\/switchyard__.*\.csv$/)
  }
})

test('SFTP: a wrong password and a folder that does not exist are not counted as delivered', async () => {
  await using server = await startSftpServer({ ...ACCOUNT, folder: '/uploads' })
  const settings = { sftp_host: '127.0.0.1', sftp_port: server.port, sftp_username: ACCOUNT.username, sftp_password: 'wrong' }
  const mapping = { sftp_folder_path: '/uploads', filename_prefix: 'switchyard', columns: { user: { '@path': '$.userId' } } }
  const wrong = await create('actions-sftp', { settings, action: 'syncEvents', mapping })
  const { attempts } = await wrong.attempted(await wrong.track(), 1)
  assert.match(attempts[0]?.error ?? '', /authentication methods failed/)
  const right = { ...settings, sftp_password: ACCOUNT.password }
  const missing = await create('actions-sftp', {
    settings: right,
    action: 'syncEvents',
    mapping: { ...mapping, sftp_folder_path: '/missing' },
  })
  const { state, attempts: second } = await missing.settled(await missing.track())
  assert.equal(state, 'failed')
  assert.match(second[0]?.error ?? '', /Could not find path/)
  assert.equal(server.files.size, 0)
})
