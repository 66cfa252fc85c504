// Sent with every message as `context.library` and in User-Agent. A test checks that it equals the version of the root package.json.

export const LIBRARY = { name: '@switchyard/node', version: '0.1.0' } as const

export const USER_AGENT = `switchyard-node/${LIBRARY.version}`
