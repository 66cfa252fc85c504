import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import Fastify from 'fastify'
import { curlOf } from './curl.ts'
import { registerDocs } from './docs.ts'
import { html, prose } from './html.ts'
import { referencePage } from './page.ts'
import { type OperationNode, operationsOf, type ReferenceDocument } from './reference-document.ts'

/** No site was built here: see site.test.ts. */
const NOWHERE = join(import.meta.dirname, 'nowhere')
const EVIL = '<script>alert("x")</script>'

/** Hostile wherever it has words. */
function evilDocument(): ReferenceDocument {
  const operation: Omit<OperationNode, 'method' | 'path'> = {
    operationId: 'postThing',
    tags: ['Things'],
    summary: EVIL,
    description: `${EVIL} \`${EVIL}\``,
    security: [{ controlToken: [] }],
    'x-role': EVIL,
    parameters: [{ name: 'id', in: 'path', required: true, description: EVIL, schema: { type: 'string', enum: [EVIL] }, example: EVIL }],
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: { type: 'object', properties: { [EVIL]: { type: 'string', default: EVIL } } },
          example: { it: "isn't" },
        },
      },
    },
    responses: { 200: { description: EVIL, content: { 'application/json': { schema: { $ref: '#/components/schemas/Thing' } } } } },
  }
  return {
    info: { title: EVIL, version: EVIL, summary: EVIL, description: EVIL },
    tags: [{ name: 'Things', description: EVIL }],
    paths: { '/things/{id}': { post: operation } },
    components: {
      schemas: {
        Thing: { title: 'Thing', type: 'object', description: EVIL, properties: { self: { $ref: '#/components/schemas/Thing' } } },
      },
      responses: {},
      securitySchemes: { controlToken: { type: 'http', scheme: 'bearer', description: EVIL } },
    },
  }
}

test('whatever stands in a template is escaped, once, unless it was made by one', () => {
  assert.equal(
    html`<p title="${`"'`}">${EVIL}${[html`<b>${'&amp;'}</b>`, ' < ']}${null}</p>`.text,
    '<p title="&quot;&#39;">&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;<b>&amp;amp;</b> &lt; </p>',
  )
})

test('backticks make code of words, and of markup just words', () => {
  assert.equal(prose('a `b` <i> `<i>`').text, 'a <code>b</code> &lt;i&gt; <code>&lt;i&gt;</code>')
})

test('a description that holds markup shows it', () => {
  const page = referencePage(evilDocument())
  assert.equal(page.match(/<script>/g)?.length, 1, 'only the script of the page itself')
  assert.doesNotMatch(page, /alert\("x"\)/)
})

test('a schema that holds itself comes to an end', () => {
  assert.match(referencePage(evilDocument()), /id="schema-Thing"/)
})

test('a command can be pasted into a shell whatever its example holds', () => {
  const [operation] = operationsOf(evilDocument())
  assert.ok(operation !== undefined)
  const command = curlOf({
    ...operation,
    parameters: [{ name: 'id', in: 'path', required: true, description: '', schema: {}, example: 'THING_ID' }],
  })
  assert.equal(
    command,
    [
      `curl '%ORIGIN%/things/THING_ID'`,
      `-H "Authorization: Bearer $TOKEN"`,
      `-H 'Content-Type: application/json'`,
      `-d '{"it":"isn'\\''t"}'`,
    ].join(' \\\n  '),
  )
})

test('the document is asked for once, when somebody looks', async (t) => {
  let asked = 0
  const app = Fastify()
  t.after(() => app.close())
  registerDocs(app, {
    document: () => {
      asked += 1
      return evilDocument()
    },
    site: NOWHERE,
  })
  await app.ready()
  assert.equal(asked, 0)
  for (const url of ['/docs/api', '/docs/openapi.json', '/docs/api']) assert.equal((await app.inject({ url })).statusCode, 200)
  assert.equal(asked, 1)
})

test('nothing of a request gets into the page', async (t) => {
  const app = Fastify()
  t.after(() => app.close())
  registerDocs(app, { document: evilDocument, site: NOWHERE })
  for (const host of ['example.com:8080', 'a"b', '$(id)', '$&']) {
    const { body } = await app.inject({ url: '/docs/api?a=<b>', headers: { host } })
    assert.match(body, /data-origin="http:\/\/localhost:8080"/, host)
    assert.ok(!body.includes(host), host)
  }
})

test('page and document are made and compressed once, however often they are asked for', async (t) => {
  const app = Fastify()
  t.after(() => app.close())
  const sent: unknown[] = []
  app.addHook('onSend', (_request, _reply, payload, next) => {
    sent.push(payload)
    next(null, payload)
  })
  registerDocs(app, { document: evilDocument, site: NOWHERE })
  for (const url of ['/docs/api', '/docs/openapi.json']) {
    for (const encoding of ['identity', 'gzip', 'br']) {
      sent.length = 0
      for (const host of ['a', 'b']) await app.inject({ url, headers: { host, 'accept-encoding': encoding } })
      assert.ok(sent[0] instanceof Buffer)
      assert.equal(sent[0], sent[1], `${url} ${encoding}`)
    }
    const { headers } = await app.inject({ url })
    assert.equal((await app.inject({ url, headers: { 'if-none-match': String(headers['etag']) } })).statusCode, 304)
  }
})

test('the page and its document are compressed for whoever takes that, and for nobody else', async (t) => {
  const app = Fastify()
  registerDocs(app, { document: evilDocument, site: NOWHERE })
  t.after(() => app.close())
  for (const url of ['/docs/api', '/docs/openapi.json']) {
    const ask = (encoding?: string) =>
      app.inject({ url, headers: { host: 'localhost:1', ...(encoding ? { 'accept-encoding': encoding } : {}) } })
    const plain = await ask()
    assert.equal(plain.headers['content-encoding'], undefined)
    for (const refusing of ['identity', 'gzip;q=0', 'br;q=0, gzip; q=0.0', 'x-gzipped'])
      assert.equal((await ask(refusing)).headers['content-encoding'], undefined, refusing)
    for (const taking of ['gzip', 'br;q=0, gzip;q=0.5', 'gzip, deflate']) {
      const packed = await ask(taking)
      assert.equal(packed.headers['content-encoding'], 'gzip', taking)
      assert.match(String(packed.headers.vary), /accept-encoding/)
      assert.equal(gunzipSync(packed.rawPayload).toString('utf8'), plain.payload)
    }
  }
})
