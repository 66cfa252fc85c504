// The settings of single sign-on (SWITCHYARD_OIDC_*), as rows of the table in config.ts.

import { parseInteger, parseIssuer, parsePath, parseScopes, parseText } from '../parse-values.ts'
import { parseRoleMapping, type RoleRule } from './role-rules.ts'
import { type Setting, setting } from './setting.ts'

export const LOGIN_SETTINGS = {
  oidcIssuer: setting<string | null>({
    variable: 'SWITCHYARD_OIDC_ISSUER',
    placeholder: 'URL',
    parse: parseIssuer,
    fallback: null,
    description:
      'The issuer of the OpenID Connect provider with which people log in, such as https://login.example.com/realms/main. Requires SWITCHYARD_OIDC_CLIENT_ID, SWITCHYARD_OIDC_CLIENT_SECRET, SWITCHYARD_OIDC_ROLES and SWITCHYARD_PUBLIC_URL.',
  }),
  oidcClientId: setting<string | null>({
    variable: 'SWITCHYARD_OIDC_CLIENT_ID',
    placeholder: 'ID',
    parse: (text) => parseText(text, 500),
    fallback: null,
    description: 'The client id that the provider gave to this service.',
  }),
  oidcClientSecret: setting<string | null>({
    variable: 'SWITCHYARD_OIDC_CLIENT_SECRET',
    placeholder: 'SECRET',
    parse: (text) => parseText(text, 2_000),
    fallback: null,
    description: 'The client secret that belongs to SWITCHYARD_OIDC_CLIENT_ID.',
    secret: true,
  }),
  oidcClientSecretFile: setting<string | null>({
    variable: 'SWITCHYARD_OIDC_CLIENT_SECRET_FILE',
    placeholder: 'PATH',
    parse: parsePath,
    fallback: null,
    description: 'A file that contains the client secret, instead of SWITCHYARD_OIDC_CLIENT_SECRET.',
  }),
  oidcScopes: setting<string>({
    variable: 'SWITCHYARD_OIDC_SCOPES',
    placeholder: 'SCOPES',
    parse: parseScopes,
    fallback: 'openid email profile',
    description:
      'The scopes that the service asks the provider for, separated by spaces. Add offline_access if tokens of people should keep working after their session at the provider has ended.',
  }),
  oidcRoles: setting<readonly RoleRule[] | null>({
    variable: 'SWITCHYARD_OIDC_ROLES',
    placeholder: 'RULES',
    parse: parseRoleMapping,
    fallback: null,
    description:
      'Which claims of the provider give which role and which sources, as a list in YAML or JSON. The first entry that matches applies: [{ "claim": "groups", "value": "data-eng", "role": "editor", "sources": ["shop"] }]. Sources are names or ids, or "all".',
  }),
  oidcName: setting<string>({
    variable: 'SWITCHYARD_OIDC_NAME',
    placeholder: 'NAME',
    parse: (text) => parseText(text, 100),
    fallback: 'single sign-on',
    description: 'The name of the provider on the login page.',
  }),
  oidcContact: setting<string | null>({
    variable: 'SWITCHYARD_OIDC_CONTACT',
    placeholder: 'TEXT',
    parse: (text) => parseText(text, 500),
    fallback: null,
    description: 'Whom people without access should ask, such as an email address. It is shown to them when they log in.',
  }),
  oidcGrace: setting<number>({
    variable: 'SWITCHYARD_OIDC_GRACE',
    placeholder: 'SECONDS',
    parse: (text) => parseInteger(text, 0, 86_400),
    fallback: 900,
    description: 'For how many seconds sessions continue while the provider does not respond.',
  }),
}

type LoginName = keyof typeof LOGIN_SETTINGS
type LoginConfig = { readonly [K in LoginName]: (typeof LOGIN_SETTINGS)[K]['fallback'] } & { readonly publicUrl: string | null }

/** The settings that single sign-on cannot do without. */
const REQUIRED: readonly LoginName[] = ['oidcIssuer', 'oidcClientId', 'oidcRoles']

/**
 * Single sign-on that is set up by half would look as if it were on, and nobody could log in with it. `placeOf` returns where a setting was
 * given; null if it was not.
 */
export function halfSetLogin(
  config: LoginConfig,
  placeOf: (setting: Pick<Setting<unknown>, 'variable'>) => string | null,
): { setting: string; message: string }[] {
  const at = Object.values(LOGIN_SETTINGS).flatMap((row) => placeOf(row) ?? [])[0]
  if (at === undefined) return []
  const { oidcClientSecret: secret, oidcClientSecretFile: file, publicUrl } = config
  const missing: string[] = REQUIRED.filter((name) => config[name] === null).map((name) => LOGIN_SETTINGS[name].variable)
  if (secret === null && file === null) missing.push('SWITCHYARD_OIDC_CLIENT_SECRET or SWITCHYARD_OIDC_CLIENT_SECRET_FILE')
  if (publicUrl === null) missing.push('SWITCHYARD_PUBLIC_URL')
  const problems = missing.map((name) => ({
    setting: name,
    message: `${name} must be set, because ${at} is: single sign-on needs both. To turn single sign-on off, remove all settings that start with SWITCHYARD_OIDC_.`,
  }))
  if (secret !== null && file !== null)
    problems.push({
      setting: LOGIN_SETTINGS.oidcClientSecretFile.variable,
      message: 'SWITCHYARD_OIDC_CLIENT_SECRET and SWITCHYARD_OIDC_CLIENT_SECRET_FILE are both set. Remove one of them.',
    })
  return problems
}
