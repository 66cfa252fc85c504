// The setting `order` of a destination while it is edited. Pure.

import { FIELDS } from '../../api/rules.ts'
import type { Destination } from '../kind.ts'
import { lengthProblem, numberProblem, type Problem } from './validation.ts'

type Order = NonNullable<Destination['order']>

export type OrderChoice = 'none' | 'user' | 'source' | 'path'

export interface OrderDraft {
  orderBy: OrderChoice
  /** The path of a field, if that is what messages are ordered by. */
  orderPath: string
  orderOnFailure: NonNullable<Order['onFailure']>
  orderMaxWaiting: number | null
}

/** The values for a destination without the setting are the defaults, so that they are there when it is turned on. */
export function orderDraftOf(order: Order | null): OrderDraft {
  const { by = FIELDS['order.by'].default } = order ?? {}
  const isWord = by === 'user' || by === 'source'
  return {
    orderBy: order === null ? 'none' : isWord ? by : 'path',
    orderPath: isWord ? '' : by,
    orderOnFailure: order?.onFailure ?? FIELDS['order.onFailure'].default,
    orderMaxWaiting: order?.maxWaiting ?? FIELDS['order.maxWaiting'].default,
  }
}

/** What the API gets. The draft must have no problems. */
export function orderOf({ orderBy, orderPath, orderOnFailure, orderMaxWaiting }: OrderDraft): Order | null {
  if (orderBy === 'none') return null
  return {
    by: orderBy === 'path' ? orderPath.trim() : orderBy,
    onFailure: orderOnFailure,
    maxWaiting: orderMaxWaiting ?? FIELDS['order.maxWaiting'].default,
  }
}

export function orderProblems({ orderBy, orderPath, orderMaxWaiting }: OrderDraft): [field: string, problem: Problem][] {
  if (orderBy === 'none') return []
  return [
    ['order.by', orderBy === 'path' ? pathProblem(orderPath.trim()) : null],
    ['order.maxWaiting', numberProblem(orderMaxWaiting, FIELDS['order.maxWaiting'])],
  ]
}

/** With which fields a path may begin is checked by the API. */
function pathProblem(path: string): Problem {
  if (path === '') return 'Enter the path of a field, such as context.groupId.'
  if (path.split('.').includes('')) return 'The path has an empty key. Remove the extra dot.'
  return lengthProblem(path, FIELDS['order.by'])
}
