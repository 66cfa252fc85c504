import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reasonOf } from './build-failure.ts'

const CASES: [title: string, output: string, reason: string][] = [
  [
    'a platform package that is not installed',
    `file:///app/node_modules/rolldown/dist/shared/binding.mjs:599
\t\t\tconst error = new Error("Cannot find native binding. npm has a bug related to optional dependencies.");
\t\t\t              ^

Error: Cannot find native binding. npm has a bug related to optional dependencies (https://github.com/npm/cli/issues/4828). Please try \`npm i\` again.
    at file:///app/node_modules/rolldown/dist/shared/binding.mjs:599:34
  cause: Error: Cannot find module '@rolldown/binding-linux-x64-gnu'
`,
    'Cannot find native binding',
  ],
  [
    'a module that is not there',
    `✗ Build failed in 304ms
error during build:
Build failed with 1 error:

\u001b[31m[UNRESOLVED_IMPORT] \u001b[0mCould not resolve './nowhere' in src/main.tsx
   ╭─[ src/main.tsx:1:15 ]
    at unwrapBindingResult (file:///app/node_modules/rolldown/dist/shared/error.mjs:20:128)
`,
    "[UNRESOLVED_IMPORT] Could not resolve './nowhere' in src/main.tsx",
  ],
  [
    'a folder that cannot be written to',
    `failed to load config from /app/packages/dashboard/vite.config.ts
error during build:
Error: EROFS: read-only file system, open '/app/node_modules/.vite-temp/vite.config.ts.timestamp-1.mjs'
    at async open (node:internal/fs/promises:639:25)
`,
    "EROFS: read-only file system, open '/app/node_modules/.vite-temp/vite.config.ts.timestamp-1.mjs'",
  ],
  ['nothing', '', 'the build ended without a message'],
]

for (const [title, output, reason] of CASES)
  test(`the reason of a failed build in one line: ${title}`, () => assert.equal(reasonOf(output), reason))
