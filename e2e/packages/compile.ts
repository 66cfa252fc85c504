// Type checks of small projects as their owners would run them: strict, including the declarations of the packages, with the compiler and the
// Node.js types of this repository.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../system/run-program.ts'
import { repository } from './installed-packages.ts'

export const ES_MODULES = { module: 'nodenext' }
export const BUNDLER = { module: 'esnext', moduleResolution: 'bundler' }

/** Resolves if the files compile; otherwise rejects with the errors of the compiler. */
export async function compile(project: string, files: string[], options: Record<string, unknown>): Promise<void> {
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2022'],
    strict: true,
    exactOptionalPropertyTypes: true,
    noImplicitOverride: true,
    skipLibCheck: false,
    noEmit: true,
    types: ['node'],
    typeRoots: [join(repository, 'node_modules', '@types')],
    ...options,
  }
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
  await run(join(repository, 'node_modules', '.bin', 'tsc'), ['--project', project], { cwd: project })
}
