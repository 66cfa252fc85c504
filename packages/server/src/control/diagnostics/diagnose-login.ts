// The check of single sign-on: whether the identity provider can be used now.

import { PROVIDER_PROBLEMS, ProviderError, type ProviderProblem } from '../access/people/provider-problems.ts'
import type { SingleSignOn } from '../access/people/single-sign-on.ts'
import type { Finding } from './finding.ts'

/** ID tokens are valid for minutes, and accepted within half a minute of these. */
const CLOCK_MS = 30_000

/** What the check itself cannot notice. */
const ONLY_IN_LOGINS: ReadonlySet<ProviderProblem> = new Set(['clock_wrong', 'signature_invalid', 'token_invalid'])

export async function checkSingleSignOn({ name, issuer, people }: SingleSignOn): Promise<Finding> {
  try {
    const { clockAheadMs } = await people.checkProvider()
    const last = people.problem?.reason
    if (last !== undefined && ONLY_IN_LOGINS.has(last)) {
      const { message, advice } = PROVIDER_PROBLEMS[last]
      return { state: 'bad', message: `The last request to ${issuer} failed, although it responds. ${message}`, advice }
    }
    // The Date header is in whole seconds.
    if (clockAheadMs === null || Math.abs(clockAheadMs) <= CLOCK_MS)
      return { state: 'good', message: `The identity provider ${issuer} (${name}) can be used.`, advice: null }
    return {
      state: 'warning',
      message: `The clock of the identity provider ${issuer} is ${Math.round(Math.abs(clockAheadMs) / 1_000)} s ${clockAheadMs > 0 ? 'ahead of' : 'behind'} this machine's.`,
      advice: PROVIDER_PROBLEMS.clock_wrong.advice,
    }
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error
    const { message, advice } = PROVIDER_PROBLEMS[error.reason]
    return { state: 'bad', message: `Single sign-on with ${issuer} does not work. ${message}`, advice }
  }
}
