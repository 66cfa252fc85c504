// The reference as one HTML page that needs nothing else: made from the description of the API and the tables of errors and
// settings. Rendered once; only the address in its examples differs from one request to the next.

import { createHash } from 'node:crypto'
import { REFUSALS } from '@switchyard/protocol'
import { flagOf, SETTINGS, type Setting } from '../config.ts'
import { ERROR_ADVICE } from '../error-advice.ts'
import { API_ERRORS } from '../errors.ts'
import { type Html, html, NOTHING, paragraphs, prose } from './html.ts'
import { brokenPath, operationView } from './operation-view.ts'
import { type OperationNode, operationsOf, type ReferenceDocument, type SchemaNode } from './reference-document.ts'
import { fieldList } from './schema-view.ts'
import { SCRIPT } from './script.ts'
import { ICON, STYLE } from './style.ts'

/** Nothing is loaded from anywhere, and of what is in the page only this style and this script count. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src '${hashOf(STYLE)}'`,
  `script-src '${hashOf(SCRIPT)}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export function referencePage(document: ReferenceDocument): string {
  const { info, tags } = document
  const operations = operationsOf(document)
  const parts = tags.map(({ name, description }) => ({
    name,
    description,
    operations: operations.filter(({ tags: [own] }) => own === name),
  }))
  const page = html`<!doctype html>
<html lang="en" data-origin="%ORIGIN%">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${info.title} API reference</title>
<meta name="description" content="${info.summary}">
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(ICON)}">
<style>%STYLE%</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="top"><a class="brand" href="#content">%ICON%<span>${info.title}</span></a> <span class="version">API reference · ${info.version}</span> <a class="back" href="/docs/">Documentation</a></header>
<nav class="side" aria-label="Contents">
<details class="menu" open><summary>Contents</summary>
<p class="find" hidden><input type="search" id="filter" placeholder="Filter: word, path or code" aria-label="Filter operations" autocomplete="off" spellcheck="false"><span id="found" role="status"></span></p>
<ul class="parts">
<li><a href="#start">Start here</a></li>
<li><a href="#authentication">Authentication</a></li>
${parts.map(navigationPart)}
<li class="part"><a href="#errors">Errors</a></li>
<li class="part"><a href="#settings">Settings</a></li>
<li class="part"><a href="#schemas">Schemas</a></li>
</ul>
</details>
</nav>
<main id="content">
${startView(document)}
${authenticationView(document)}
${parts.map((part) => partView(document, part))}
${errorsView()}
${settingsView()}
${schemasView(document)}
</main>
<div id="said" role="status" class="unseen"></div>
<script>%SCRIPT%</script>
</body>
</html>
`
  // Not through the template, which would escape them; the function form takes $ for what it is.
  return page.text
    .replace('%STYLE%', () => STYLE)
    .replace('%ICON%', () => ICON)
    .replace('%SCRIPT%', () => SCRIPT)
}

interface PagePart {
  name: string
  description: string
  operations: readonly OperationNode[]
}

function navigationPart({ name, operations }: PagePart): Html {
  const entries = operations
    .filter((operation) => operation['x-alias-of'] === undefined)
    .map(
      ({ operationId, method, path }) =>
        html`<li><a href="#${operationId}" data-operation="${operationId}"><span class="verb ${method}">${method === 'delete' ? 'DEL' : method.toUpperCase()}</span> <span class="where">${brokenPath(path.replace(/^\/api(?=\/)/, ''))}</span></a></li>`,
    )
  return html`<li class="part"><a href="#${anchorOf(name)}">${name}</a><ul>${entries}</ul></li>`
}

function partView(document: ReferenceDocument, { name, description, operations }: PagePart): Html {
  const own = operations.filter((operation) => operation['x-alias-of'] === undefined)
  return html`<section class="chapter" id="${anchorOf(name)}"><h2>${name}</h2><p class="lead">${prose(description)}</p>
${own.map((operation) =>
  operationView(
    document,
    operation,
    operations.filter((other) => other['x-alias-of'] === operation.path),
  ),
)}</section>`
}

function startView({ info }: ReferenceDocument): Html {
  const send = `curl '%ORIGIN%/v1/track' \\\n  -u "$WRITE_KEY:" \\\n  -H 'Content-Type: application/json' \\\n  -d '{"userId":"u-1","event":"Order Completed"}'`
  const webhook = `curl '%ORIGIN%/api/destinations' \\\n  -H "Authorization: Bearer $TOKEN" \\\n  -H 'Content-Type: application/json' \\\n  -d '{\n  "name": "mine",\n  "sourceIds": ["SOURCE_ID"],\n  "urls": ["https://example.com/webhook"]\n}'`
  const look = `curl '%ORIGIN%/api/messages?limit=1' \\\n  -H "Authorization: Bearer $TOKEN"`
  return html`<section class="chapter" id="start"><h1>${info.title} API</h1><p class="lead">${info.summary}</p>
<div class="operation plain"><div class="say">${paragraphs(info.description)}
<p>The commands take <code>WRITE_KEY</code> and <code>TOKEN</code> from your shell. The service shows a write key whenever it starts, and the token when it starts for the first time.</p>
<p>For machines: <a href="/docs/openapi.json">openapi.json</a> (OpenAPI 3.1).</p></div>
<div class="show">
<figure class="sample"><figcaption>Send a message</figcaption><pre tabindex="0"><code class="copy">${send}</code></pre></figure>
<figure class="sample"><figcaption>Have it delivered to a webhook</figcaption><pre tabindex="0"><code class="copy">${webhook}</code></pre></figure>
<figure class="sample"><figcaption>See what became of it</figcaption><pre tabindex="0"><code class="copy">${look}</code></pre></figure>
</div></div></section>`
}

function authenticationView({ components }: ReferenceDocument): Html {
  const rows = Object.entries(components.securitySchemes).map(([name, scheme]) => {
    const { description = '' } = scheme as { description?: string }
    return html`<li><div class="field"><code class="name">${name}</code> <span class="type">${schemeText(scheme)}</span></div><div class="about">${prose(description)}</div></li>`
  })
  return html`<section class="chapter" id="authentication"><h2>Authentication</h2><ul class="fields wide">${rows}</ul></section>`
}

function schemeText(scheme: { type?: string; scheme?: string; in?: string; name?: string }): string {
  if (scheme.type === 'http') return scheme.scheme === 'basic' ? 'Basic authentication' : 'Authorization: Bearer …'
  if (scheme.type === 'apiKey') return `${scheme.in ?? ''} ${scheme.name ?? ''}`
  return 'OAuth 2.0, client credentials'
}

function errorsView(): Html {
  const codes = [
    ...Object.entries(API_ERRORS).map(([code, [status, sentence]]) => ({ code, status: String(status), sentence: sentence as string })),
    ...Object.entries(REFUSALS)
      .filter(([code]) => !Object.hasOwn(API_ERRORS, code))
      .map(([code, sentence]) => ({ code, status: '400', sentence: sentence as string })),
  ]
  const advice: Readonly<Record<string, string>> = ERROR_ADVICE
  const rows = codes.map(
    ({ code, status, sentence }) =>
      html`<tr id="error-${code}"><th scope="row"><code>${code}</code></th><td><span class="status bad">${status}</span></td><td>${sentence}</td><td>${advice[code] ?? ''}</td></tr>`,
  )
  return html`<section class="chapter" id="errors"><h2>Errors</h2>
<p class="lead">One shape everywhere: <code>{ "success": false, "error": code, "code": code, "message": sentence, "field"?: path }</code>. Codes stay; sentences may get better.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Errors"><table><thead><tr><th scope="col">Code</th><th scope="col">Status</th><th scope="col">Meaning</th><th scope="col">What to do</th></tr></thead><tbody>${rows}</tbody></table></div></section>`
}

function settingsView(): Html {
  const rows = Object.values(SETTINGS).map((setting: Setting<unknown>) => {
    const { variable, usual, sentence } = setting
    return html`<tr id="setting-${variable}"><th scope="row"><code>${variable}</code><br><code class="flag">${flagOf(setting)}</code></th><td>${usual}</td><td>${sentence}</td></tr>`
  })
  return html`<section class="chapter" id="settings"><h2>Settings</h2>
<p class="lead">Of the service, as environment variables or flags; the flag wins.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Settings"><table><thead><tr><th scope="col">Setting</th><th scope="col">Default</th><th scope="col">Meaning</th></tr></thead><tbody>${rows}</tbody></table></div></section>`
}

function schemasView(document: ReferenceDocument): Html {
  const items = Object.entries(document.components.schemas).map(([name, schema]) => {
    const { description, oneOf } = schema as SchemaNode
    const variants = oneOf === undefined ? NOTHING : html`<p>One of ${oneOf.map(({ $ref = '' }) => link($ref))}</p>`
    return html`<section class="schema" id="schema-${name}"><h3>${name} <a class="anchor" href="#schema-${name}" aria-label="Link to this schema">#</a></h3>${description === undefined ? NOTHING : html`<p>${prose(description)}</p>`}${variants}${fieldList(document, schema)}</section>`
  })
  return html`<section class="chapter" id="schemas"><h2>Schemas</h2>${items}</section>`
}

function link(reference: string): Html {
  const name = reference.slice(reference.lastIndexOf('/') + 1)
  return html`<a href="#schema-${name}">${name}</a> `
}

function anchorOf(name: string): string {
  return `part-${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}
