// The tokens of an integration that uses OAuth 2. The definition renews them; this file decides when, and makes sure that it happens only once for all
// runs that wait for it.

import type { OAuthSettings, Tokens } from './integration.ts'
import type { Scrubber } from './recording/scrub.ts'

/** As the library hands them to the code that renews them. */
export interface OAuthData {
  accessToken: string | undefined
  refreshToken: string | undefined
  clientId: string | undefined
  clientSecret: string | undefined
  refreshTokenUrl: string | undefined
}

export type Renew = (data: OAuthData) => Promise<{ accessToken: string; refreshToken?: string | undefined } | undefined>

export class OAuthTokens {
  readonly #settings: Partial<OAuthSettings>
  readonly #renew: Renew
  readonly #scrubber: Scrubber
  readonly #onTokens: (tokens: Tokens) => void
  readonly #tokenUrl: string | undefined
  #accessToken: string | null
  #refreshToken: string | undefined
  #renewal: Promise<void> | null = null

  /** `tokenUrl` is for code that does not know where tokens are renewed. */
  constructor(settings: Partial<OAuthSettings>, renew: Renew, scrubber: Scrubber, onTokens: (tokens: Tokens) => void, tokenUrl?: string) {
    this.#tokenUrl = tokenUrl
    this.#settings = settings
    this.#renew = renew
    this.#scrubber = scrubber
    this.#onTokens = onTokens
    this.#accessToken = settings.accessToken ?? null
    this.#refreshToken = settings.refreshToken
  }

  get accessToken(): string | null {
    return this.#accessToken
  }

  get refreshToken(): string | undefined {
    return this.#refreshToken
  }

  /** `used` is the token that was not accepted. If another run renewed it in the meantime, there is nothing to do. */
  async renew(used: string | null): Promise<void> {
    if (this.#accessToken !== used) return
    this.#renewal ??= this.#request().finally(() => {
      this.#renewal = null
    })
    await this.#renewal
  }

  async #request(): Promise<void> {
    const { clientId, clientSecret } = this.#settings
    const data = {
      accessToken: this.#accessToken ?? undefined,
      refreshToken: this.#refreshToken,
      clientId,
      clientSecret,
      refreshTokenUrl: this.#tokenUrl,
    }
    const usedRefreshToken = this.#refreshToken
    const renewed = await this.#renew(data)
    if (typeof renewed?.accessToken !== 'string' || renewed.accessToken === '') throw new TokenError('The tool returned no access token.')
    this.#accessToken = renewed.accessToken
    this.#scrubber.add(renewed.accessToken)
    if (typeof renewed.refreshToken === 'string' && renewed.refreshToken !== '') {
      this.#refreshToken = renewed.refreshToken
      this.#scrubber.add(renewed.refreshToken)
    }
    this.#onTokens({ accessToken: renewed.accessToken, refreshToken: this.#refreshToken, usedRefreshToken })
  }
}

/** failures.ts recognizes it by its name. */
class TokenError extends Error {
  override readonly name = 'InvalidAuthenticationError'
}
