// How a login with single sign-on can fail, as errors that the routes turn into pages.

import { PROVIDER_PROBLEMS, type ProviderProblem } from './provider-problems.ts'

/**
 * Why a login failed. `login_expired`: the callback does not belong to a login of this browser, or is used again. `login_refused`: the provider
 * said no, for example because the person cancelled. Otherwise what is wrong with the provider.
 */
export type LoginProblem = ProviderProblem | 'login_expired' | 'login_refused'

/** The reasons with which the login page is shown, in words. The others are pages of their own. */
export const LOGIN_PROBLEMS = {
  ...PROVIDER_PROBLEMS,
  login_refused: {
    message: 'The identity provider refused the login.',
    advice: 'If you did not cancel it yourself, ask who runs the identity provider whether you may use this application.',
  },
} as const satisfies Partial<Record<LoginProblem, { message: string; advice: string }>>

export class LoginFailed extends Error {
  override name = 'LoginFailed'
  readonly reason: LoginProblem
  readonly returnTo: string

  constructor(reason: LoginProblem, returnTo = '/', cause?: unknown) {
    super(reason, { cause })
    this.reason = reason
    this.returnTo = returnTo
  }
}

/** The callback is not an answer of the provider to this login. */
export class InvalidCallback extends Error {
  override name = 'InvalidCallback'
}

/** No rule gives the person a role. */
export class NoAccess extends Error {
  override name = 'NoAccess'
}
