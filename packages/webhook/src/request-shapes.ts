// What verify() takes, described by the parts that are used: the types of Express, Fastify, fetch and Node.js itself fit
// these without being depended upon. Types only.

/** An IncomingMessage of Node.js, a request of Express, or one of Fastify. */
export interface ServerRequest {
  headers: { readonly [name: string]: string | readonly string[] | undefined }
  /** The bytes as received, where a middleware kept them. */
  rawBody?: unknown
  /** Bytes, text, or what a JSON parser made of them. */
  body?: unknown
  /** Fastify's way to the IncomingMessage. */
  raw?: unknown
}

/** `Request` of fetch, as Hono, Next.js, Remix and others pass it on. */
export interface FetchRequest {
  headers: { get(name: string): string | null }
  bodyUsed?: boolean
  arrayBuffer(): Promise<ArrayBuffer>
  clone?(): FetchRequest
}

export type WebhookRequest = ServerRequest | FetchRequest
