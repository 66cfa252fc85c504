// What a limited caller never needs. The routes that use it are for admins, who are never limited. If a route reaches it nevertheless, the request
// fails, so that nothing is shown or changed.

export function outOfReach(what: string): never {
  throw new Error(`${what} is out of reach for a caller that is limited to sources`)
}

/** A method that is out of reach. */
export function unreachable(what: string): () => never {
  return () => outOfReach(what)
}
