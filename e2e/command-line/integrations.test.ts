// Integrations on the command line and in a configuration file, against real services. Nothing is sent.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { ON_POSTGRES } from '../../packages/server/src/store/fixtures/test-store.ts'
import { asJson, folderFor, type Named, switchyard, switchyardWith } from '../system/command-line.ts'
import { startService } from '../system/service.ts'

const KEYS = { API_KEY: 'very-secret-api-key', SECRET_KEY: 'very-secret-key' }
const AMPLITUDE = ['--integration', 'actions-amplitude', '--set', 'apiKey=env:API_KEY', '--set', 'secretKey=env:SECRET_KEY']
const SLACK_URL = 'https://hooks.slack.com/services/T0/B0/very-secret-path'
const SUBSCRIPTIONS = `
subscriptions:
  - name: Orders
    action: postToChannel
    subscribe: type = "track" and event = "Order Completed"
    mapping:
      url: ${SLACK_URL}
      text: { '@template': 'Costs $\{properties.total}: {{event}}' }
      channel: orders
`

suite('Integrations on the command line', { concurrency: 2 }, () => {
  test('the catalogue is searched and shown, and a destination is created, changed and shown without its secrets', async () => {
    await using service = await startService()
    const found = await switchyard(service, 'catalog', 'slack')
    assert.equal(found.code, 0, found.stderr)
    assert.match(found.stdout, /actions-slack/)
    const shown = await switchyard(service, 'catalog', 'show', 'actions-amplitude')
    assert.match(shown.stdout, /setting apiKey +.*\(required, secret, string\)/)
    assert.match(shown.stdout, /endpoint.*one of north_america, europe/)
    assert.match(shown.stdout, /action logEventV2: /)
    assert.match(shown.stdout, /usually runs if +type = "track"/)
    assert.match(shown.stdout, /event_type +.*\(required, string, default \{"@path":"\$\.event"\}\)/)
    const one = await switchyard(service, 'catalog', 'show', 'actions-amplitude', '--action', 'logEventV2')
    assert.match(one.stdout, /event_type/)
    assert.doesNotMatch(one.stdout, /setting apiKey|action identifyUser/)
    assert.match(
      (await switchyard(service, 'catalog', 'show', 'actions-amplitude', '--action', 'x')).stderr,
      /Its actions are: .*logEventV2/,
    )
    assert.match((await switchyard(service, 'catalog', 'show', 'nothing')).stderr, /integration_not_found/)

    const made = await switchyardWith(
      KEYS,
      service,
      '--json',
      'destinations',
      'create',
      'amplitude',
      ...AMPLITUDE,
      '--set',
      'endpoint=europe',
    )
    assert.equal(made.code, 0, made.stderr)
    const destination = JSON.parse(made.stdout) as Named
    assert.deepEqual([destination['settings'], destination['secretSettings']], [{ endpoint: 'europe' }, ['apiKey', 'secretKey']])
    const updated = await switchyard(service, 'destinations', 'update', 'amplitude', '--set', 'endpoint=none', '--timeout', '20s')
    assert.equal(updated.code, 0, updated.stderr)
    assert.match(updated.stdout, /integration +.*\(actions-amplitude\)/)
    assert.match(updated.stdout, /subscription .* if type = /)
    assert.doesNotMatch(updated.stdout + made.stdout, /very-secret/)
    assert.match((await switchyard(service, 'destinations')).stdout, /Amplitude/)

    const wrong = await switchyard(service, 'destinations', 'create', 'x', '--integration', 'actions-amplitude')
    assert.match(wrong.stderr, /settings\.apiKey is required/)
    const both = await switchyard(service, 'destinations', 'create', 'x', 'https://receiver.example/', '--integration', 'actions-slack')
    assert.match(both.stderr, /Give one of these: a URL.*--integration/)
  })

  test('--set gives a value the type that the definition has for the setting', async () => {
    await using service = await startService()
    const made = async (slug: string, ...args: string[]): Promise<{ settings: Record<string, unknown>; secretSettings: string[] }> => {
      const created = await switchyardWith(
        { TOKEN: '12345' },
        service,
        '--json',
        'destinations',
        'create',
        slug,
        '--integration',
        slug,
        ...args,
      )
      assert.equal(created.code, 0, created.stderr)
      return JSON.parse(created.stdout)
    }
    const pixel = await made('tiktok-conversions', '--set', 'accessToken=env:TOKEN', '--set', 'pixelCode=1')
    assert.deepEqual([pixel.settings, pixel.secretSettings], [{ pixelCode: '1' }, ['accessToken']])
    const flags = ['--set', 'apiKey=env:TOKEN', '--set', 'secretKey=env:TOKEN', '--set', 'endpoint=none']
    assert.deepEqual((await made('actions-amplitude', ...flags)).settings, {})
    const pardot = await made(
      'actions-pardot',
      '--set',
      'businessUnitID=007',
      '--set',
      'accountID=1',
      '--set',
      'isSandbox=true',
      '--set',
      'oauth.accessToken=env:TOKEN',
    )
    assert.deepEqual([pardot.settings, pardot.secretSettings], [{ businessUnitID: '007', accountID: '1', isSandbox: true }, ['oauth']])
    const wrong = await switchyard(service, 'destinations', 'update', 'actions-pardot', '--set', 'isSandbox=maybe')
    assert.match(wrong.stderr, /settings\.isSandbox must be true or false/)
  })

  test('an export has no secret of an integration, changes nothing when it is applied, and makes another installation equal', async (t) => {
    const folder = folderFor(t)
    const path = (name: string, text = ''): string => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
    await using one = await startService()
    const slack = [
      'destinations',
      'create',
      'slack',
      '--integration',
      'actions-slack',
      '--subscriptions-file',
      path('s.yaml', SUBSCRIPTIONS),
    ]
    // Its keys are settings of ours, beside those of the definition.
    const keys = ['--set', 'awsAccessKeyId=very-secret-id', '--set', 'awsSecretAccessKey=very-secret-access-key']
    const kinesis = ['destinations', 'create', 'kinesis', '--integration', 'actions-aws-kinesis', ...keys]
    for (const args of [['destinations', 'create', 'amplitude', ...AMPLITUDE, '--set', 'endpoint=europe'], slack, kinesis]) {
      const made = await switchyardWith(KEYS, one, ...args)
      assert.equal(made.code, 0, made.stderr)
    }
    const file = path('switchyard.yaml')
    assert.equal((await switchyard(one, 'export', file)).code, 0)
    const text = readFileSync(file, 'utf8')
    assert.doesNotMatch(text, /very-secret|sub_/)
    const parts = ['type: integration', '${AMPLITUDE_APIKEY}', '${SLACK_ORDERS_URL}', 'endpoint: europe', '$${properties.total}']
    for (const part of [...parts, '${KINESIS_AWSACCESSKEYID}', '${KINESIS_AWSSECRETACCESSKEY}'])
      assert.ok(text.includes(part), `${part} in\n${text}`)
    assert.doesNotMatch(text, /timeoutMs|urls/)
    const dry = await switchyard(one, 'apply', file, '--dry-run')
    assert.equal(dry.code, 0, dry.stdout + dry.stderr)

    await using two = await startService()
    const missing = await switchyard(two, 'apply', file)
    assert.match(missing.stderr, /settings\.apiKey: the environment variable AMPLITUDE_APIKEY is not set/)
    const variables = {
      AMPLITUDE_APIKEY: 'very-secret-api-key',
      AMPLITUDE_SECRETKEY: 'very-secret-key',
      SLACK_ORDERS_URL: SLACK_URL,
      KINESIS_AWSACCESSKEYID: 'very-secret-id',
      KINESIS_AWSSECRETACCESSKEY: 'very-secret-access-key',
    }
    const applied = await switchyardWith(variables, two, 'apply', file)
    assert.equal(applied.code, 0, applied.stderr)
    assert.doesNotMatch(applied.stdout, /very-secret/)
    assert.equal((await switchyard(two, 'export')).stdout.trimEnd(), text.trimEnd())
    const plain = (list: Named[]): unknown[] =>
      list.map(({ name, settings, secretSettings, subscriptions }) => [
        name,
        settings,
        secretSettings,
        (subscriptions as { mapping: unknown; subscribe: string }[]).map(({ mapping, subscribe }) => [subscribe, mapping]),
      ])
    const [left, right] = [await asJson<Named[]>(one, 'destinations'), await asJson<Named[]>(two, 'destinations')]
    assert.deepEqual(new Set(plain(left).map(String)), new Set(plain(right).map(String)))
    assert.deepEqual(right.find(({ name }) => name === 'kinesis')?.['secretSettings'], ['awsAccessKeyId', 'awsSecretAccessKey'])

    // A new secret, a removed setting and a changed mapping are changes; ids stay.
    writeFileSync(file, text.replace(/\n +endpoint: europe/, '').replace('channel: orders', 'channel: sales'))
    const changed = await switchyardWith({ ...variables, AMPLITUDE_APIKEY: 'very-secret-2' }, two, 'apply', file)
    assert.equal(changed.code, 0, changed.stderr)
    assert.doesNotMatch(changed.stdout, /very-secret/)
    const after = await asJson<Named[]>(two, 'destinations')
    const find = (list: Named[], name: string): Named => list.find((entry) => entry.name === name) as Named
    assert.deepEqual(find(after, 'amplitude')['settings'], {})
    const ids = (entry: Named): string[] => (entry['subscriptions'] as { id: string }[]).map(({ id }) => id)
    assert.deepEqual(ids(find(after, 'slack')), ids(find(right, 'slack')))
    assert.equal((await switchyardWith({ ...variables, AMPLITUDE_APIKEY: 'very-secret-2' }, two, 'apply', file, '--dry-run')).code, 0)
  })

  test('no secret of an integration is readable in the files of the store or in the log', async () => {
    await using service = await startService()
    const made = await switchyardWith(KEYS, service, 'destinations', 'create', 'amplitude', ...AMPLITUDE)
    assert.equal(made.code, 0, made.stderr)
    const body = { type: 'integration', name: 'slack', integration: 'actions-slack', subscriptions: [] as unknown[] }
    body.subscriptions.push({ action: 'postToChannel', subscribe: 'type = "track"', mapping: { url: SLACK_URL, text: 'x' } })
    const { id } = await service.api<Named>('/destinations', { method: 'POST', body })
    await service.api(`/destinations/${id}`, { method: 'PATCH', body: { settings: {}, paused: true } })
    await switchyardWith({ API_KEY: 'very-secret-3' }, service, 'destinations', 'update', 'amplitude', '--set', 'apiKey=env:API_KEY')
    const files = readdirSync(service.folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
    const bytes = files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'))
    for (const text of [...bytes, JSON.stringify(service.log())]) assert.ok(!text.includes('very-secret'))
    if (!ON_POSTGRES)
      assert.ok(
        bytes.some((text) => text.includes('actions-slack')),
        'the files were read',
      )
  })
})
