// Sent with every message as `context.library` and in User-Agent. A test holds it to the root manifest's version.

export const LIBRARY = { name: '@switchyard/node', version: '0.1.0' } as const

export const USER_AGENT = `switchyard-node/${LIBRARY.version}`
