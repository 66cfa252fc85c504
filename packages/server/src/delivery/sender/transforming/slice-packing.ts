// How messages and results are passed between threads. Copying a thousand small objects costs more than what is done with them, so texts are
// joined to one string. JSON has no line breaks of its own.

import type { SandboxResult } from './sandbox.ts'
import type { TransformInput } from './transformer.ts'

export interface PackedInputs {
  texts: string
  receivedAtMs: number[]
  messageIds: string[]
}

export interface PackedResults {
  /** The texts of messages that were changed and logged nothing; an empty line for others. */
  texts: string
  others: [index: number, result: SandboxResult][]
}

export function packInputs(inputs: readonly TransformInput[]): PackedInputs {
  return {
    texts: inputs.map(({ text }) => text).join('\n'),
    receivedAtMs: inputs.map(({ receivedAtMs }) => receivedAtMs),
    messageIds: inputs.map(({ messageId }) => messageId),
  }
}

export function unpackInputs({ texts, receivedAtMs, messageIds }: PackedInputs): TransformInput[] {
  return texts.split('\n').map((text, at) => ({ text, receivedAtMs: receivedAtMs[at] as number, messageId: messageIds[at] as string }))
}

export function packResults(results: readonly SandboxResult[]): PackedResults {
  const others: PackedResults['others'] = []
  const texts = results.map((result, at) => {
    if (result.kind === 'changed' && result.logs === null) return result.text
    others.push([at, result])
    return ''
  })
  return { texts: texts.join('\n'), others }
}

export function unpackResults({ texts, others }: PackedResults): SandboxResult[] {
  const results = texts.split('\n').map((text): SandboxResult => ({ kind: 'changed', text, logs: null }))
  for (const [at, result] of others) results[at] = result
  return results
}
