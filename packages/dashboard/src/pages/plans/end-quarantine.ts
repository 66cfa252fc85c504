// Releases or deletes messages in quarantine: the API handles only so many in one call, so this calls it until none are left. Pure, except
// for the function that is passed in.

import type { call as callApi } from '../../api/client.ts'
import { ruleTitle } from './plan-text.ts'

export type EndOfQuarantine = 'release' | 'delete'
export type QuarantineSelection = { ids: readonly string[] } | { sourceId: string; rule?: string }

const MAX_IDS = 1_000

/** Returns how many messages were released or deleted. `onProgress` is called after each step. */
export async function endQuarantine(
  end: EndOfQuarantine,
  selection: QuarantineSelection,
  call: typeof callApi,
  onProgress: (count: number) => void,
): Promise<number> {
  let count = 0
  const step = async (body: { ids?: string[]; sourceId?: string; rule?: string }): Promise<boolean> => {
    const answer =
      end === 'release' ? await call('POST /api/quarantine/release', { body }) : await call('POST /api/quarantine/delete', { body })
    count += 'released' in answer ? answer.released : answer.deleted
    onProgress(count)
    return answer.more
  }
  if ('ids' in selection) {
    for (let at = 0; at < selection.ids.length; at += MAX_IDS) await step({ ids: selection.ids.slice(at, at + MAX_IDS) })
  } else {
    while (await step(selection));
  }
  return count
}

/** `3 selected`, `all of Web shop`, `all of Web shop: Order Completed`. */
export function selectionWords(selection: QuarantineSelection, names: ReadonlyMap<string, string> = new Map()): string {
  if ('ids' in selection) return selection.ids.length === 1 ? '1 message' : `${selection.ids.length.toLocaleString()} messages`
  const source = names.get(selection.sourceId) ?? selection.sourceId
  return `all of ${source}${selection.rule === undefined ? '' : `: ${ruleTitle(selection.rule)}`}`
}
