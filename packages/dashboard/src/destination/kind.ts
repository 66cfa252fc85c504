// What the dashboard asks of a kind of destination. Each kind is a folder in kinds/ and an entry in kinds/kinds.tsx; pages ask the kind of a
// destination and never which kind it is. The summary is loaded with every page that shows a destination, so it must stay small; the
// pages of a kind are loaded when they are opened.

import type { ComponentType, LazyExoticComponent } from 'react'
import type { Schemas } from '../api/client.ts'

export type Destination = Schemas['Destination']
export type DestinationType = Destination['type']
export type DestinationOf<Type extends DestinationType> = Extract<Destination, { type: Type }>
export type Attempt = Schemas['Attempt']

export interface AttemptProps {
  attempt: Attempt
  withAdvice?: boolean
}

/** A way to add a destination of this kind, offered in the catalogue. */
export interface AddCard {
  /** `/destinations/new?type=…` shows the page `New` of a kind; without a type, that of webhooks. */
  to: string
  title: string
  about: string
  details: string
  Icon: ComponentType<{ size?: number }>
}

export interface KindSummary<Of extends Destination> {
  /** Where it sends messages, in a few words. */
  target: (destination: Of) => string
  /** Everything that it sends to: the list of destinations finds it by these texts. */
  targets: (destination: Of) => readonly string[]
  /** Shown beside the name; null for none. */
  Icon: ComponentType<{ destination: Of; size: number }> | null
  /** What to do about a failure. */
  advice: (reason: string) => string
  /** The URL and the method of a delivery's request. Null if the attempts show the requests. */
  request: ((destination: Of) => { url: string | null; method: string }) | null
  /** Whether an attempt is of this kind, where its destination is not known. */
  ownsAttempt: (attempt: Attempt) => boolean
  Attempt: ComponentType<AttemptProps>
  /** Null if the catalogue lists what can be added. */
  card: AddCard | null
}

export interface Kind<Of extends Destination = Destination> extends KindSummary<Of> {
  /** The page of a destination. */
  Page: LazyExoticComponent<ComponentType<{ destination: Of }>>
  /** The page that adds a destination. */
  New: LazyExoticComponent<ComponentType>
}
