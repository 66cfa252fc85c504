// Loads CommonJS modules like test runners such as Jest: every module in a separate context, without `import()` unless the runner is started
// with a flag. Supports what a published package needs: files, `#imports`, builtins.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import vm from 'node:vm'

type Module = { exports: unknown }
type Wrapper = (module: Module, exports: unknown, require: (specifier: string) => unknown) => void

export function requireSandboxed(from: string, specifier: string): unknown {
  const { process, Buffer, URL, URLSearchParams, AbortSignal, TextEncoder, TextDecoder, fetch, performance, crypto } = globalThis
  const timers = { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, queueMicrotask }
  const context = vm.createContext({
    process,
    Buffer,
    URL,
    URLSearchParams,
    AbortSignal,
    TextEncoder,
    TextDecoder,
    fetch,
    performance,
    crypto,
    ...timers,
  })
  const loaded = new Map<string, Module>()

  function load(file: string): unknown {
    const known = loaded.get(file)
    if (known) return known.exports
    const module: Module = { exports: {} }
    loaded.set(file, module)
    const { resolve } = createRequire(file)
    const wrapper = new vm.Script(`(module, exports, require) => {${readFileSync(file, 'utf8')}\n}`, { filename: file }).runInContext(
      context,
    ) as Wrapper
    wrapper(module, module.exports, (wanted) => (wanted.startsWith('node:') ? createRequire(file)(wanted) : load(resolve(wanted))))
    return module.exports
  }

  return load(createRequire(join(dirname(from), 'index.js')).resolve(specifier))
}
