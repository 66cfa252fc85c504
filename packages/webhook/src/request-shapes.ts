// The requests that verify() accepts, described by the fields it uses, so that the types of Express, Fastify, fetch and
// Node.js are compatible without a dependency on them. Types only.

/** An IncomingMessage of Node.js, or a request of Express or Fastify. */
export interface ServerRequest {
  headers: { readonly [name: string]: string | readonly string[] | undefined }
  /** The bytes as received, if a middleware kept them. */
  rawBody?: unknown
  /** The body as bytes, as text, or as parsed JSON. */
  body?: unknown
  /** The IncomingMessage behind a Fastify request. */
  raw?: unknown
}

/** A `Request` of the Fetch API, as used by Hono, Next.js, Remix and others. */
export interface FetchRequest {
  headers: { get(name: string): string | null }
  bodyUsed?: boolean
  arrayBuffer(): Promise<ArrayBuffer>
  clone?(): FetchRequest
}

export type WebhookRequest = ServerRequest | FetchRequest
