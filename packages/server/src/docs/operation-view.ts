// One operation of the reference: what it does, what it takes, what it answers, and the command that asks for it.

import { curlOf } from './curl.ts'
import { type Html, html, NOTHING, paragraphs, prose } from './html.ts'
import { answersOf, errorsOf, type OperationNode, type ReferenceDocument, schemaName } from './reference-document.ts'
import { fieldList, fieldRow, sampleOf, typeText } from './schema-view.ts'

export function operationView(document: ReferenceDocument, operation: OperationNode, aliases: readonly OperationNode[]): Html {
  const { operationId, method, path, summary, description, parameters = [] } = operation
  return html`<section class="operation" id="${operationId}" aria-labelledby="${operationId}-title">
<div class="say">
<h3 id="${operationId}-title">${prose(summary)} <a class="anchor" href="#${operationId}" aria-label="Link to this operation">#</a></h3>
<p class="path"><span class="method ${method}">${method.toUpperCase()}</span> <code>${brokenPath(path)}</code>${roleBadge(operation)}</p>
${description === undefined ? NOTHING : paragraphs(description)}
${aliases.map((alias) => html`<p class="alias" id="${alias.operationId}">Also <code>${alias.method.toUpperCase()} ${alias.path}</code>: ${prose(alias.summary)}.</p>`)}
${parameterList(document, parameters)}
${bodyView(document, operation)}
${answersOf(document, operation).map((answer) => answerView(document, answer, summary))}
${errorList(document, operation)}
</div>
<div class="show">
<figure class="sample"><figcaption>Request</figcaption><pre tabindex="0"><code class="copy">${curlOf(operation)}</code></pre></figure>
${answerSample(document, operation)}
</div>
</section>`
}

function roleBadge(operation: OperationNode): Html {
  const role = operation['x-role']
  if (role === undefined) return NOTHING
  return html` <span class="role" title="What the role of the token must be at least">${role}</span>`
}

/** A long path may break after its slashes, and nowhere else. */
export function brokenPath(path: string): Html {
  return html`${path.split(/(?<=\/)/).map((part) => html`${part}<wbr>`)}`
}

function parameterList(document: ReferenceDocument, parameters: NonNullable<OperationNode['parameters']>): Html {
  if (parameters.length === 0) return NOTHING
  const rows = parameters.map(({ name, required, description, schema }) =>
    fieldRow(document, { name, field: { ...schema, description }, required }),
  )
  return html`<h4>Parameters</h4><ul class="fields">${rows}</ul>`
}

function bodyView(document: ReferenceDocument, { requestBody }: OperationNode): Html {
  const [type, media] = Object.entries(requestBody?.content ?? {})[0] ?? []
  if (media?.schema === undefined) return NOTHING
  const form = type === 'application/json' ? NOTHING : html` <span class="type">${type ?? ''}</span>`
  return html`<h4>Body${form}</h4>${fieldList(document, media.schema)}`
}

function answerView(document: ReferenceDocument, { status, response }: ReturnType<typeof answersOf>[number], summary: string): Html {
  const { description, content } = response
  const [type, media] = Object.entries(content ?? {})[0] ?? []
  const schema = media?.['x-event-data'] ?? media?.schema
  const name = schema === undefined ? undefined : schemaName(schema)
  const shape = name === undefined || schema === undefined ? NOTHING : html` <span class="type">${typeText(schema)}</span>`
  const fields = schema === undefined || name !== undefined ? NOTHING : fieldList(document, schema)
  const title = media?.['x-event-data'] === undefined ? 'Fields of the answer' : 'Data of each event'
  return html`<h4>Answer <span class="status">${status}</span>${shape}${type === undefined || type === 'application/json' ? NOTHING : html` <span class="type">${type}</span>`}</h4>
${description === `${summary}.` ? NOTHING : html`<p>${prose(description)}</p>`}${fields === NOTHING ? NOTHING : html`<details><summary>${title}</summary>${fields}</details>`}`
}

function errorList(document: ReferenceDocument, operation: OperationNode): Html {
  const rows = errorsOf(document, operation)
  if (rows.length === 0) return NOTHING
  const lines = rows.map(({ status, codes }) => {
    return html`<li><span class="status bad">${status}</span> ${codes.map((code) => html`<a href="#error-${code}"><code>${code}</code></a> `)}</li>`
  })
  return html`<details class="errors"><summary>Errors</summary><ul>${lines}</ul></details>`
}

function answerSample(document: ReferenceDocument, operation: OperationNode): Html {
  const [first] = answersOf(document, operation)
  const media = first?.response.content?.['application/json']
  if (media === undefined) return NOTHING
  const sample = media.example ?? (media.schema === undefined ? undefined : sampleOf(document, media.schema))
  if (sample === undefined || JSON.stringify(sample) === '{}') return NOTHING
  return html`<figure class="sample"><figcaption>Answer <span class="status">${first?.status ?? ''}</span></figcaption><pre tabindex="0"><code>${JSON.stringify(sample, null, 2)}</code></pre></figure>`
}
