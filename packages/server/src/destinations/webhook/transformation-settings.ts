// The setting `transformation` of a webhook. Whether the code can be loaded is checked in the sandbox (delivery/sender/transforming/), after this.

import { integer, nullable, object, string, withDefault } from '../../api/schema.ts'

const MAX_CODE_BYTES = 64 * 1024

const CODE = string({
  min: 1,
  max: MAX_CODE_BYTES,
  description:
    'A JavaScript module whose default export is a function `(message, { received, seed })`. It returns the message to send, as an object, or null to drop it. At most 64 KB.',
  check: (code) => {
    if (code.includes('\0')) return 'must not contain NUL characters'
    return Buffer.byteLength(code) > MAX_CODE_BYTES ? 'must be at most 64 KB long' : null
  },
})
const TIMEOUT_MS = integer({ min: 1, max: 1_000, description: 'The most CPU time that one message may take, in milliseconds.' })
const MEMORY_MB = integer({ min: 1, max: 64, description: 'The most memory that the code may use for one message, in megabytes.' })

export const TRANSFORMATION_SETTING = withDefault(
  nullable(
    object(
      { code: CODE, timeoutMs: withDefault(TIMEOUT_MS, 50), memoryMb: withDefault(MEMORY_MB, 8) },
      {
        description:
          'Code that changes or drops each message before the request is built. An update replaces it as a whole; null removes it.',
      },
    ),
  ),
  null,
)

export const SHOWN_TRANSFORMATION = nullable(
  object(
    { code: string(), timeoutMs: TIMEOUT_MS, memoryMb: MEMORY_MB },
    { description: 'Code that changes or drops each message before the request is built.' },
  ),
)
