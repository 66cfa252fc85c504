// Parses a token request from its form. Errors have the codes, statuses and shape of RFC 6749 instead of those of the other APIs,
// because OAuth clients only understand these. No error description quotes what was sent.

import { SCOPE } from './access-token.ts'

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const PARAMETERS = ['grant_type', 'client_assertion_type', 'client_assertion', 'client_id', 'scope'] as const
type Parameter = (typeof PARAMETERS)[number]

export type TokenErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'temporarily_unavailable'
  | 'server_error'

export class TokenError extends Error {
  override name = 'TokenError'
  readonly code: TokenErrorCode
  readonly status: number

  /** `message` becomes the description. RFC 6749 allows it no quotes and no backslashes. */
  constructor(code: TokenErrorCode, message: string, status: number = code === 'invalid_client' ? 401 : 400) {
    super(message)
    this.code = code
    this.status = status
  }

  get body(): { error: string; error_description: string } {
    return { error: this.code, error_description: this.message }
  }
}

export interface TokenRequest {
  assertion: string
  /** The optional parameter client_id. */
  clientId: string | undefined
}

/** Throws TokenError. */
export function parseTokenRequest(form: string): TokenRequest {
  const given = new URLSearchParams(form)
  const parameters: Partial<Record<Parameter, string>> = {}
  for (const name of PARAMETERS) {
    const values = given.getAll(name)
    if (values.length > 1) throw new TokenError('invalid_request', `The parameter ${name} is given more than once. Send it only once.`)
    // A parameter with an empty value counts as missing.
    if (values[0]) parameters[name] = values[0]
  }
  const { grant_type: grant, client_assertion_type: type, client_assertion: assertion, client_id: clientId, scope } = parameters
  if (grant === undefined) throw new TokenError('invalid_request', 'The parameter grant_type is missing. It must be client_credentials.')
  if (grant !== 'client_credentials') throw new TokenError('unsupported_grant_type', 'The parameter grant_type must be client_credentials.')
  if (assertion === undefined) throw new TokenError('invalid_client', 'The parameter client_assertion is missing. It must be a signed JWT.')
  if (type !== ASSERTION_TYPE) throw new TokenError('invalid_client', `The parameter client_assertion_type must be ${ASSERTION_TYPE}.`)
  if (scope !== undefined && scope.split(' ').some((each) => each !== SCOPE)) {
    throw new TokenError('invalid_scope', `The only supported scope is ${SCOPE}. Set the parameter scope to it or leave it out.`)
  }
  return { assertion, clientId }
}
