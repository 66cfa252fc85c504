// What the control API needs of the live feed, declared by its consumer: app.ts hands the implementation in.

export interface StreamEvent {
  event: string
  /** The data, as JSON. */
  json: string
}

export interface LiveFilter {
  sourceId?: string | undefined
  destinationId?: string | undefined
  type?: string | undefined
  messageId?: string | undefined
  event?: string | undefined
  userId?: string | undefined
  what?: 'accepted' | 'rejected' | 'attempt' | 'failure' | undefined
}

export interface Live {
  /** Until the iteration is left. Null if the limit of listeners is reached, in all or for this token. */
  listen(filter: LiveFilter, tokenId: string): AsyncIterable<StreamEvent> | null
}
