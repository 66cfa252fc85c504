// The first code that runs in a host process, before any package is loaded. It prevents an integration from connecting to addresses
// that are not allowed, and from signalling other processes. Node's permission model, which host-channel.ts turns on, prevents the rest.

import { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import tls from 'node:tls'
import type { HostOptions } from '../link/host-channel.ts'
import { createAddressGuard } from '../sender/http/address-guard.ts'
import { createNameLookup } from '../sender/http/name-lookup.ts'
import { guardDials } from './dial-guard.ts'

const { guard, gateway, ca } = JSON.parse(process.argv[2] as string) as HostOptions
guardDials({ guard: createAddressGuard(guard), lookup: createNameLookup(), gateway })
if (ca !== null) tls.setDefaultCACertificates([...tls.getCACertificates('default'), readFileSync(ca, 'utf8')])
// The _debug functions signal a process by its id, which makes the service open a debugger.
for (const name of ['kill', '_kill', '_debugProcess', '_debugEnd', '_debugPause', 'abort']) refuse(process, 'process', name)
refuse(os, 'os', 'setPriority')
syncBuiltinESMExports()

function refuse(target: object, part: string, name: string): void {
  const value = (): never => {
    throw new Error(`${part}.${name}() is not allowed in an integration`)
  }
  Object.defineProperty(target, name, { value, writable: false, configurable: false })
}
