// Integrations that write to AWS, with access keys of the user: files and records arrive with a valid signature, the role of the user is assumed if
// there is one, nothing else is asked, and no answer, log or export contains the keys.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { Answer } from '../system/receiver.ts'
import { type Service, startService } from '../system/service.ts'
import { type Wiring, wire } from '../system/wiring.ts'
import { signatureProblem } from './aws-signature.ts'
import { type Gateway, type GatewayRequest, startGateway } from './gateway/recording-gateway.ts'
import { acceptedByStandIn } from './seen/seen-actions.ts'

const KEYS = { awsAccessKeyId: 'AKIDOFTHEUSER', awsSecretAccessKey: 'secret-of-the-user/+aB' }
const OTHER_KEYS = { awsAccessKeyId: 'AKIDOFANOTHER', awsSecretAccessKey: 'secret-of-another/+aB' }
const ROLE = { accessKeyId: 'ASIAOFTHEROLE', secret: 'secret-of-the-role', token: 'token-of-the-role' }
const SECRETS = new Map([
  [KEYS.awsAccessKeyId, KEYS.awsSecretAccessKey],
  [OTHER_KEYS.awsAccessKeyId, OTHER_KEYS.awsSecretAccessKey],
  [ROLE.accessKeyId, ROLE.secret],
])
const ROLE_ARN = 'arn:aws:iam::123456789012:role/writer'
const BUCKET = { s3_aws_bucket_name: 'files-of-the-user', s3_aws_region: 'eu-west-1' }

let gateway: Gateway
let service: Service

before(async () => {
  gateway = await startGateway()
  service = await startService({ env: gateway.env })
})
beforeEach(() => {
  gateway.answer = answerOfAws
})
after(async () => {
  await service[Symbol.asyncDispose]()
  await gateway[Symbol.asyncDispose]()
})

/** Refuses a request whose signature is wrong, as AWS does. */
function answerOfAws(request: GatewayRequest): Answer {
  const problem = signatureProblem(request, SECRETS)
  if (problem !== null)
    return {
      status: 403,
      headers: { 'content-type': 'application/xml' },
      body: '<Error><Code>InvalidAccessKeyId</Code><Message>The signature is wrong.</Message></Error>',
    }
  if (request.host.startsWith('sts.')) {
    const credentials = `<AccessKeyId>${ROLE.accessKeyId}</AccessKeyId><SecretAccessKey>${ROLE.secret}</SecretAccessKey><SessionToken>${ROLE.token}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>`
    return {
      headers: { 'content-type': 'text/xml' },
      body: `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>${credentials}</Credentials></AssumeRoleResult></AssumeRoleResponse>`,
    }
  }
  if (request.host.startsWith('kinesis.')) {
    const { Records: records } = JSON.parse(request.body) as { Records: object[] }
    const body = JSON.stringify({ FailedRecordCount: 0, Records: records.map(() => ({ SequenceNumber: '1', ShardId: 's' })) })
    return { headers: { 'content-type': 'application/x-amz-json-1.1' }, body }
  }
  return { headers: { 'content-type': 'application/xml' }, body: '' }
}

const subscription = (action: string, mapping: object): object => ({
  name: 'Write',
  action,
  subscribe: 'type = "track"',
  mapping,
  enabled: true,
})
const s3 = (settings: object, more: object = {}): Promise<Wiring> =>
  wire(service, {
    type: 'integration',
    integration: 'actions-s3',
    settings: { ...BUCKET, ...settings },
    subscriptions: [
      subscription('syncToS3', {
        columns: { user: { '@path': '$.userId' }, event: { '@path': '$.event' } },
        filename_prefix: 'events',
        delimiter: ',',
        file_extension: 'csv',
        enable_batching: true,
        batch_size: 5_000,
      }),
    ],
    retry: { windowMs: 1_000, initialMs: 3_600_000, maxMs: 3_600_000 },
    ...more,
  })
const kinesis = (settings: object, more: object = {}): Promise<Wiring> =>
  wire(service, {
    type: 'integration',
    integration: 'actions-aws-kinesis',
    settings,
    subscriptions: [
      subscription('send', {
        payload: { '@path': '$.properties' },
        partitionKey: { '@path': '$.userId' },
        streamName: 'stream-of-the-user',
        awsRegion: 'eu-central-1',
        max_batch_size: 500,
        batch_bytes: 1_000_000,
      }),
    ],
    retry: { windowMs: 1_000, initialMs: 3_600_000, maxMs: 3_600_000 },
    ...more,
  })

/** Delivers one message, and returns the requests for it. */
async function deliver(wiring: Wiring, fields: object = {}): Promise<GatewayRequest[]> {
  const first = gateway.arrivals.length
  const { state, attempts } = await wiring.settled(await wiring.track({ properties: { plan: 'pro' }, ...fields }))
  assert.equal(state, 'delivered', JSON.stringify(attempts))
  await acceptedByStandIn(service, wiring.destinationId, attempts)
  return gateway.requests().slice(first)
}

const keyOf = ({ headers }: GatewayRequest): string => /Credential=([^/]+)/.exec(headers['authorization'] ?? '')?.[1] ?? ''

describe('With access keys and without a role', () => {
  test('S3: one file in the bucket, signed with the keys; nothing is asked of STS or of the metadata service', async () => {
    const [request, ...others] = await deliver(await s3(KEYS), { event: 'Signed up' })
    assert.deepEqual(others, [])
    assert.equal(request?.method, 'PUT')
    assert.equal(request.host, 'files-of-the-user.s3.eu-west-1.amazonaws.com')
    assert.match(request.path, /^\/events_\d{4}-\d\d-\d\dT[\d-]+Z\.csv\?/)
    assert.equal(request.body, 'user,event\n"u-1","Signed up"')
    assert.equal(keyOf(request), KEYS.awsAccessKeyId)
    assert.equal(request.headers['x-amz-security-token'], undefined)
  })

  test('S3 CSV: one file for the members of an audience', async () => {
    const wiring = await wire(service, {
      type: 'integration',
      integration: 'actions-s3-csv',
      settings: { ...BUCKET, ...KEYS },
      subscriptions: [
        subscription('syncAudienceToCSV', {
          columns: { audience_name: 'audience', user_id: 'user', audience_action: 'member' },
          audienceName: { '@path': '$.properties.audience' },
          audienceId: 'audience-1',
          spaceId: 'space-1',
          computation_class: 'audience',
          userId: { '@path': '$.userId' },
          timestamp: { '@path': '$.timestamp' },
          messageId: { '@path': '$.messageId' },
          propertiesOrTraits: { '@path': '$.properties' },
          integrationsObject: { '@path': '$.integrations' },
          enable_batching: true,
          batch_size: 5_000,
        }),
      ],
      retry: { windowMs: 1_000, initialMs: 3_600_000, maxMs: 3_600_000 },
    })
    const [request, ...others] = await deliver(wiring, {
      properties: { audience: 'buyers', buyers: true },
      context: { personas: { audience_settings: { delimiter: ',' } } },
    })
    assert.deepEqual(others, [])
    assert.equal(`${request?.method} ${request?.host}`, 'PUT files-of-the-user.s3.eu-west-1.amazonaws.com')
    assert.match(request?.body ?? '', /^audience,member,user\n"buyers","true","u-1"/)
  })

  test('Kinesis: a record in the stream, and several messages in one request', async () => {
    const [request, ...others] = await deliver(await kinesis(KEYS), { properties: { plan: 'pro' } })
    assert.deepEqual(others, [])
    assert.equal(`${request?.method} ${request?.host}${request?.path}`, 'POST kinesis.eu-central-1.amazonaws.com/')
    const { StreamName, Records } = JSON.parse(request?.body ?? '') as {
      StreamName: string
      Records: { Data: string; PartitionKey: string }[]
    }
    assert.equal(StreamName, 'stream-of-the-user')
    assert.deepEqual(
      Records.map(({ Data, PartitionKey }) => [Buffer.from(Data, 'base64').toString(), PartitionKey]),
      [['{"plan":"pro"}', 'u-1']],
    )

    const batched = await kinesis(KEYS, { batch: { size: 3, lingerMs: 60_000 } })
    const first = gateway.arrivals.length
    const ids = ['a', 'b', 'c'].map((name) => `${batched.sourceId}-${name}`)
    await batched.send(ids.map((messageId) => ({ type: 'track', messageId, userId: 'u-1', event: 'E', properties: { messageId } })))
    for (const id of ids) assert.equal((await batched.settled(id)).state, 'delivered')
    const sent = gateway.requests().slice(first)
    assert.deepEqual(
      sent.map(({ body }) => (JSON.parse(body) as { Records: object[] }).Records.length),
      [3],
    )
  })

  test('a wrong secret: the delivery fails with what AWS answered', async () => {
    const wiring = await s3({ ...KEYS, awsSecretAccessKey: 'wrong-secret' })
    const { state, attempts } = await wiring.settled(await wiring.track())
    assert.equal(state, 'expired')
    assert.ok(attempts.some(({ status }) => status === 403))
  })
})

describe('With access keys and a role', () => {
  test('S3: the role is assumed with the keys, and the file is written with the credentials of the role', async () => {
    const wiring = await s3({ ...KEYS, iam_role_arn: ROLE_ARN, iam_external_id: 'external-id-1' })
    const [assume, put, ...others] = await deliver(wiring)
    assert.deepEqual(others, [])
    assert.equal(assume?.host, 'sts.eu-west-1.amazonaws.com')
    const asked = new URLSearchParams(assume.body)
    assert.deepEqual([asked.get('RoleArn'), asked.get('ExternalId'), keyOf(assume)], [ROLE_ARN, 'external-id-1', KEYS.awsAccessKeyId])
    assert.deepEqual([put && keyOf(put), put?.headers['x-amz-security-token']], [ROLE.accessKeyId, ROLE.token])
  })

  test('Kinesis: likewise, and without an external ID if there is none', async () => {
    const [assume, put, ...others] = await deliver(await kinesis({ ...KEYS, iamRoleArn: ROLE_ARN }))
    assert.deepEqual(others, [])
    const asked = new URLSearchParams(assume?.body)
    assert.deepEqual([asked.get('RoleArn'), asked.get('ExternalId')], [ROLE_ARN, null])
    assert.deepEqual([put?.host, put && keyOf(put)], ['kinesis.eu-central-1.amazonaws.com', ROLE.accessKeyId])
  })

  test('the credentials of the role are neither shown nor stored, also if S3 repeats them in an error', async () => {
    const SHOWS_ROLE = /ASIAOFTHEROLE|secret-of-the-role|token-of-the-role/
    gateway.answer = (request) =>
      request.host.includes('.s3.') && request.body.includes('refused')
        ? { status: 400, body: `<Error><AWSAccessKeyId>${ROLE.accessKeyId}</AWSAccessKeyId><Token>${ROLE.token}</Token></Error>` }
        : answerOfAws(request)
    const files = await s3({ ...KEYS, iam_role_arn: ROLE_ARN })
    const stream = await kinesis({ ...KEYS, iamRoleArn: ROLE_ARN })
    for (const [wiring, event, ends] of [
      [files, 'taken', 'delivered'],
      [stream, 'taken', 'delivered'],
      [files, 'refused', 'expired'],
    ] as const) {
      const id = await wiring.track({ event, properties: { plan: 'pro' } })
      const delivery = await wiring.settled(id)
      assert.equal(delivery.state, ends, JSON.stringify(delivery.attempts))
      const asked = delivery.attempts.find(({ url }) => url.includes('://sts.'))
      assert.deepEqual([asked?.status, asked?.responseStart], [200, '(hidden)'])
      assert.doesNotMatch(JSON.stringify([delivery, await wiring.message(id)]), SHOWS_ROLE)
    }
    await service.stop()
    for (const [place, bytes] of await service.stored()) assert.doesNotMatch(bytes.toString('latin1'), SHOWS_ROLE, place)
    service = await service.restart()
  })
})

test('two destinations that write at the same time each use their own keys', async () => {
  const wirings = [await s3(KEYS), await s3(OTHER_KEYS)] as const
  const first = gateway.arrivals.length
  const sent = await Promise.all(
    Array.from({ length: 10 }, async (_, at) => {
      const wiring = wirings[at % 2] as Wiring
      return { wiring, id: await wiring.track({ userId: at % 2 === 0 ? 'of-the-user' : 'of-another' }) }
    }),
  )
  for (const { wiring, id } of sent) assert.equal((await wiring.settled(id)).state, 'delivered')
  const requests = gateway.requests().slice(first)
  assert.equal(requests.length, 10)
  for (const request of requests)
    assert.equal(keyOf(request), request.body.includes('of-the-user') ? KEYS.awsAccessKeyId : OTHER_KEYS.awsAccessKeyId)
})

test('the keys are required, are never shown, and are kept when other settings change', async () => {
  await assert.rejects(s3({ awsAccessKeyId: KEYS.awsAccessKeyId }), /settings\.awsSecretAccessKey/)
  const wiring = await s3(KEYS)
  const shown = await service.api<{ settings: object; secretSettings: string[] }>(`/destinations/${wiring.destinationId}`)
  assert.deepEqual(shown.settings, BUCKET)
  assert.deepEqual(shown.secretSettings.sort(), Object.keys(KEYS).sort())
  await wiring.change({ timeoutMs: 20_000 })
  await deliver(wiring)
  const everything = [
    await service.api('/destinations?limit=1000'),
    await service.api('/audit?limit=1000'),
    await service.api(`/deliveries?limit=1000`),
  ]
  assert.doesNotMatch(JSON.stringify(everything), /AKIDOF|secret-of|token-of/)
})
