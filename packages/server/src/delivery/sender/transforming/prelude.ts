// The part of the sandbox that is written in the sandbox's own JavaScript: it calls the user's function and describes what went wrong. It
// runs before the user's code and keeps the functions that it needs, so that the user's code cannot replace them.

/** A script whose value is a function `({ run, load, describe })`; each takes and returns one string, except where noted. */
export const PRELUDE = String.raw`(() => {
  'use strict'
  const { parse, stringify } = JSON
  const { apply } = Reflect
  const classOf = Object.prototype.toString
  const slice = String.prototype.slice
  const charCodeAt = String.prototype.charCodeAt
  const imul = Math.imul
  const { now } = Date
  const { isArray } = Array
  const toText = String

  const MAX_LOG = 2048
  let transform
  let received
  let seed
  let log = ''
  let isConverting = false
  let random
  // Values that are still referenced need not be freed one by one: the whole memory is restored for the next message.
  let kept

  // Garbage collection must not be observable, and there is nobody to share memory with.
  delete globalThis.WeakRef
  delete globalThis.FinalizationRegistry
  delete globalThis.SharedArrayBuffer

  // xoshiro128**, seeded by a hash of the messageId (FNV-1a with a different start for each word).
  const startRandom = () => {
    // Code that uses random numbers while it is loaded is loaded again for each message, like code that reads the clock.
    now()
    const words = []
    for (let word = 0; word < 4; word++) {
      let hash = 2166136261 ^ imul(word + 1, 0x9e3779b9)
      for (let at = 0; at < seed.length; at++) hash = imul(hash ^ apply(charCodeAt, seed, [at]), 16777619)
      hash = imul(hash ^ (hash >>> 16), 0x85ebca6b)
      words[word] = hash ^ (hash >>> 13)
    }
    let [a, b, c, d] = words
    if ((a | b | c | d) === 0) a = 1
    random = () => {
      const product = imul(b, 5)
      const result = imul((product << 7) | (product >>> 25), 9)
      const shifted = b << 9
      c ^= a
      d ^= b
      b ^= c
      a ^= d
      c ^= shifted
      d = (d << 11) | (d >>> 21)
      return result >>> 0
    }
  }
  Math.random = () => {
    if (random === undefined) startRandom()
    return ((random() >>> 5) * 67108864 + (random() >>> 6)) / 9007199254740992
  }

  const shown = (value) => {
    try {
      if (typeof value === 'string') return value
      if (typeof value === 'object' && value !== null && !(value instanceof Error)) {
        const text = stringify(value)
        if (typeof text === 'string') return text
      }
      return toText(value)
    } catch {
      return '(a value that cannot be shown)'
    }
  }
  const write = (...values) => {
    for (let at = 0; at < values.length && log.length < MAX_LOG; at++) {
      log += apply(slice, (at === 0 ? '' : ' ') + shown(values[at]), [0, MAX_LOG - log.length])
    }
    if (log.length < MAX_LOG) log += '\n'
  }
  globalThis.console = { log: write, info: write, debug: write, warn: write, error: write }

  const withLog = (text) => (log === '' ? text : '#' + stringify(log) + '\n' + text)

  return {
    /** Sets what the clock and the seed of the message are, for code that uses them while it is loaded. Takes a JSON array. */
    begin: (text) => {
      const given = parse(text)
      received = given[0]
      seed = given[1]
    },

    /** Takes the namespace of the user's module. */
    load: (namespace) => {
      const { default: exported } = namespace
      if (typeof exported === 'function') transform = exported
      return typeof exported
    },

    /** Takes [message, received, seed] as JSON. Returns the result as JSON, "null" to drop the message, or "!" and what was returned instead. */
    run: (text) => {
      const given = parse(text)
      received = given[1]
      seed = given[2]
      const result = transform(given[0], { received, seed })
      kept = [given, result]
      if (result === null) return withLog('null')
      if (typeof result !== 'object') return withLog('!' + typeof result)
      const name = isArray(result) ? '[object Array]' : apply(classOf, result, [])
      if (name !== '[object Object]') return withLog('!' + apply(slice, name, [8, -1]))
      isConverting = true
      const json = stringify(result)
      isConverting = false
      return withLog(typeof json === 'string' && json[0] === '{' ? json : '!JSON')
    },

    /** Takes what was thrown. Returns JSON: [isConverting, text, stack]. */
    describe: (error) => {
      let text
      let stack = ''
      try {
        if (typeof error === 'object' && error !== null && 'message' in error) {
          text = toText(error.name) + ': ' + toText(error.message)
          stack = toText(error.stack)
        } else {
          text = 'threw ' + (typeof error === 'string' ? stringify(error) : shown(error)) + ', which is not an Error'
        }
      } catch {
        text = 'threw a value that cannot be shown'
      }
      // Strings are written one by one, because an array would be written by the user's code if that has defined Array.prototype.toJSON.
      return withLog('[' + isConverting + ',' + stringify(apply(slice, text, [0, 1000])) + ',' + stringify(apply(slice, stack, [0, 4000])) + ']')
    },
  }
})()`
