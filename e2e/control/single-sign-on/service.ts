// A service with single sign-on for tests: on a port that is known before it starts, because the identity provider must know the address.

import { freePort } from '../../../packages/server/src/store/fixtures/free-port.ts'
import { type Service, type ServiceOptions, startService } from '../../system/service.ts'

export interface Address {
  port: number
  url: string
  redirectUri: string
  backchannelUri: string
}

export async function newAddress(): Promise<Address> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  return {
    port,
    url,
    redirectUri: `${url}/api/login/oidc/callback`,
    backchannelUri: `${url}/api/login/oidc/backchannel-logout`,
  }
}

export interface SignOnOptions extends ServiceOptions {
  issuer: string
  clientId: string
  clientSecret: string
  roles: readonly object[]
}

export function startServiceAt(
  { port, url }: Address,
  { issuer, clientId, clientSecret, roles, env, ...options }: SignOnOptions,
): Promise<Service> {
  return startService({
    ...options,
    env: {
      SWITCHYARD_PORT: String(port),
      SWITCHYARD_PUBLIC_URL: url,
      SWITCHYARD_OIDC_ISSUER: issuer,
      SWITCHYARD_OIDC_CLIENT_ID: clientId,
      SWITCHYARD_OIDC_CLIENT_SECRET: clientSecret,
      SWITCHYARD_OIDC_ROLES: JSON.stringify(roles),
      ...env,
    },
  })
}
