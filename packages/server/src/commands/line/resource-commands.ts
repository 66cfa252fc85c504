// The commands that resources have in the same form: list, show, delete, and the removal of one of their keys. A resource describes what is its
// own: words, columns, and what to ask before it is deleted.

import type { JsonObject } from '@switchyard/protocol'
import type { Query } from '../service/api.ts'
import type { Call, Command } from './command.ts'
import { confirm, YES_FLAG } from './confirm.ts'
import { type Column, LIMIT_FLAG, showAll, showNewest, showResult } from './listing.ts'
import { at, idOf, type Kind, resourcePath } from './references.ts'

type About = Omit<Command, 'run'>
/** A value, or how to get it for a call. */
type Of<T> = T | ((call: Call) => T | Promise<T>)

interface List extends About {
  path: Of<string>
  columns: Of<readonly Column[]>
  /** What to say if there are no entries. */
  none: Of<string>
  query?: Of<Query>
}

/** Lists all entries. */
export function listCommand(list: List): Command {
  return listing(list, showAll)
}

/** Lists the newest entries, up to --limit. */
export function newestCommand(list: List): Command {
  return listing({ ...list, flags: { ...list.flags, ...LIMIT_FLAG } }, showNewest)
}

function listing({ path, columns, none, query = {}, ...about }: List, show: typeof showAll): Command {
  return {
    ...about,
    run: async (call) => show(call, await of(call, path), await of(call, query), await of(call, columns), await of(call, none)),
  }
}

async function of<T>(call: Call, value: Of<T>): Promise<T> {
  return typeof value === 'function' ? await (value as (call: Call) => T | Promise<T>)(call) : value
}

/** Shows the resource that the first argument names. */
export function showCommand({
  kind,
  show,
  ...about
}: About & { kind: Kind; show: (call: Call, resource: JsonObject) => void | Promise<void> }): Command {
  return { ...about, run: async (call) => show(call, await call.api.get(await resourcePath(call, kind))) }
}

interface Deletion extends About {
  kind: Kind
  /** What to ask, with the name or id that was given and the id. */
  question: (reference: string, id: string, call: Call) => string | Promise<string>
  /** How the result is called. */
  done?: 'deleted' | 'revoked'
}

/** Deletes the resource that the first argument names, if the user confirms it. */
export function deleteCommand({ kind, question, done = 'deleted', ...about }: Deletion): Command {
  return {
    ...about,
    flags: YES_FLAG,
    async run(call) {
      const [reference = ''] = call.arguments
      const id = await idOf(call.api, kind, reference)
      if (!call.has('yes')) await confirm(call, `${await question(reference, id, call)} This cannot be undone.`)
      await call.api.delete(await resourcePath(call, kind, id))
      showResult(call, { id, [done]: true }, `${done === 'deleted' ? 'Deleted' : 'Revoked'} ${kind} ${id}.`)
    },
  }
}

interface KeyRemoval extends About {
  kind: Kind
  /** The part of the path of the resource under which its keys are. */
  keys: string
  /** The name of the key in the result. */
  field: string
  question: (key: string, reference: string) => string
  done: (key: string) => string
}

/** Removes the key that the second argument names, if the user confirms it. */
export function removeKeyCommand({ kind, keys, field, question, done, ...about }: KeyRemoval): Command {
  return {
    ...about,
    flags: YES_FLAG,
    async run(call) {
      const [reference = '', key = ''] = call.arguments
      const path = await resourcePath(call, kind)
      await confirm(call, question(key, reference))
      await call.api.delete(`${path}/${keys}` + at`/${key}`)
      showResult(call, { [field]: key, deleted: true }, done(key))
    },
  }
}
